"""Subscriptions as rows of files and tables: an id, a filter, and optional fields.

A row is checked in two steps. `SubscriptionRecord.of` checks the fields: names, types, timestamps.
`subscription_of` parses the filter and checks the parameters against it. They are apart because the
filter is parsed where the subscription is used (a Spark worker, a fold of changes) and with the
parser of that place; a bad field is reported with its row, a bad filter with its subscription.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from tidegate.errors import BadValueError, SubscriptionError, TidegateError
from tidegate.language.evolve import Evolve, parse_evolve
from tidegate.language.expressions import ParameterRef
from tidegate.language.filters import Filter, check_values
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.spaces import Space
from tidegate.language.values import INT_MAX, Value, parse_timestamp, to_us, to_value
from tidegate.matching.subscription import Subscription

CHUNK_ROWS = 4_096
"""The rows of a table that are Python objects at once, which take far more memory than Arrow's."""
FIELDS = ("id", "filter", "subscriber", "params", "evolve", "since", "until")


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A row whose fields are checked; the filter is not parsed yet.

    ``origin`` is the time from which `t` counts, if that is not ``since``. It is no field of a row:
    only a version of a subscription that was updated has another origin.
    """

    id: str
    filter: str
    params: Mapping[str, object] = field(default_factory=dict)
    subscriber: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    origin: datetime | None = None
    evolve: Evolve | None = None

    @classmethod
    def of(cls, row: Mapping[str, object]) -> SubscriptionRecord:
        """Check the fields of a row; raises SubscriptionError that names the field."""
        check_fields(row, FIELDS, "a subscription")
        return cls(
            required_text(row, "id"),
            required_text(row, "filter"),
            params_of(row) or {},
            text_of(row, "subscriber"),
            time_of(row, "since"),
            time_of(row, "until"),
            evolve=evolve_of(row),
        )


def subscription_of(
    record: SubscriptionRecord, parser: BulkParser | None, space: Space | None = None
) -> Subscription:
    """The subscription of a record, with its filter parsed, in bulk if there is a parser for that.

    In a space, strings are timestamps where the filter compares them with one. Raises
    SubscriptionError that names the subscription, also if it does not fit the space.
    """
    try:
        if parser is None:
            filter = Filter(parse_filter(record.filter))
        else:
            filter = Filter.of_shape(*parser.read(record.filter))
        _, row = filter.shape_and_row
        names = [each.name for each in row if isinstance(each, ParameterRef)]
        checked = checked_parameters(names, record.params)
        if space is not None:
            checked = space.with_timestamps(filter, checked)
        values = {name: value for name, value in checked.items() if value is not None}
        if space is not None:
            space.check_filter(filter, values, text=record.filter)
    except TidegateError as error:
        raise SubscriptionError(f"subscription {record.id!r}: {error}") from error
    return Subscription(
        record.id,
        filter,
        values,
        None if record.since is None else to_us(record.since),
        record.subscriber,
        None if record.until is None else to_us(record.until),
        None if record.origin is None else to_us(record.origin),
        record.evolve,
    )


def checked_parameters(names: Sequence[str], raw: Mapping[str, object]) -> dict[str, Value | None]:
    """Parameter values as values of the language.

    Raises SubscriptionError for a parameter that is not among the ``names`` of the filter, and
    BadValueError for an object that is not a value.
    """
    unknown = [name for name in raw if name not in names]
    if unknown:
        known = ", ".join(f":{name}" for name in dict.fromkeys(names)) or "none"
        raise SubscriptionError(f"the filter has no parameter :{unknown[0]}; it has {known}")
    return check_values("parameter :", raw)


def records_of(table: pa.Table | pa.RecordBatch) -> Iterator[SubscriptionRecord]:
    """The subscriptions of an Arrow table; an error names the row, counted from 0."""
    for index, row in enumerate(rows_of(table)):
        try:
            yield SubscriptionRecord.of(row)
        except SubscriptionError as error:
            raise SubscriptionError(f"row {index}: {error}") from None


# -- the fields of a row ----------------------------------------------------------------------


def check_fields(row: Mapping[str, object], known: tuple[str, ...], what: str) -> None:
    """Raise SubscriptionError if a row has a field that is not known; ``what`` names the row."""
    for name in row:
        if name not in known:
            raise SubscriptionError(f"there is no field {name!r}; {what} has {', '.join(known)}")


def text_of(row: Mapping[str, object], name: str) -> str | None:
    """A field that must be a non-empty string; None if it is absent."""
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise SubscriptionError(f"{name}: must be a string, not {_json_kind(value)}")
    if not value:
        raise SubscriptionError(f"{name}: is empty")
    try:
        to_value(value)
    except BadValueError as error:
        raise SubscriptionError(f"{name}: {error}") from None
    return value


def required_text(row: Mapping[str, object], name: str) -> str:
    """A field that must be present and a non-empty string."""
    value = text_of(row, name)
    if value is None:
        raise SubscriptionError(f"{name}: is missing")
    return value


def time_of(row: Mapping[str, object], name: str) -> datetime | None:
    """A field that must be a timestamp, or a string with one; None if it is absent."""
    value = row.get(name)
    if value is None:
        return None
    try:
        time = parse_timestamp(value) if isinstance(value, str) else to_value(value)
    except BadValueError as error:
        raise SubscriptionError(f"{name}: {error}") from None
    if not isinstance(time, datetime):
        raise SubscriptionError(f"{name}: must be a timestamp, as 2026-01-02T03:04:05Z")
    return time


def evolve_of(row: Mapping[str, object]) -> Evolve | None:
    """The evolve mode of a row, as `periodic 1 s`; None if it is absent."""
    text = text_of(row, "evolve")
    try:
        return None if text is None else parse_evolve(text)
    except BadValueError as error:
        raise SubscriptionError(f"evolve: {error}") from None


def params_of(row: Mapping[str, object]) -> dict[str, object] | None:
    """The parameters of a row by name; None if the field is absent.

    In a table they may also be a map, which Arrow returns as a list of pairs, or JSON in a string.
    """
    raw = row.get("params")
    if raw is None:
        return None
    if isinstance(raw, str):
        try:
            return decode_object(raw)
        except BadValueError as error:
            raise SubscriptionError(f"params: {error}") from None
    if isinstance(raw, list) and all(isinstance(each, tuple) for each in raw):
        if len(dict(raw)) < len(raw):
            raise SubscriptionError("params: a name occurs twice")
        raw = dict(raw)
    if not isinstance(raw, Mapping):
        raise SubscriptionError("params: must be an object of names and values")
    return {str(name): value for name, value in raw.items()}


# -- from Arrow and from JSON -----------------------------------------------------------------


def rows_of(table: pa.Table | pa.RecordBatch) -> Iterator[dict[str, object]]:
    """The rows of an Arrow table as Python objects, a chunk of them at a time.

    A null in a struct counts as absent: a table has no other way to leave a field out.
    """
    for begin in range(0, table.num_rows, CHUNK_ROWS):
        yield from _plain_rows(table.slice(begin, CHUNK_ROWS))


def _plain_rows(table: pa.Table | pa.RecordBatch) -> Iterator[dict[str, object]]:
    columns: dict[str, list[object]] = {}
    column: Any
    for name, column in zip(table.schema.names, table.columns, strict=True):
        kind = _without_nanoseconds(column.type)
        plain = column if kind == column.type else column.cast(kind, safe=False)
        try:
            columns[name] = plain.to_pylist()
        except OverflowError:
            raise SubscriptionError(
                f"column {name!r}: a timestamp must lie in the years 1 to 9999 in UTC"
            ) from None
    for index in range(table.num_rows):
        yield {name: _without_nulls(values[index]) for name, values in columns.items()}


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if each is not None}
    return value


def _without_nanoseconds(kind: pa.DataType) -> pa.DataType:
    """The type with timestamps in microseconds: Arrow refuses to make nanoseconds a datetime."""
    if isinstance(kind, pa.TimestampType):
        return pa.timestamp("us", kind.tz) if kind.unit == "ns" else kind
    if isinstance(kind, pa.StructType):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([each.with_type(_without_nanoseconds(each.type)) for each in fields])
    if isinstance(kind, pa.MapType):
        return pa.map_(kind.key_type, _without_nanoseconds(kind.item_type))
    return kind


def decode_object(text: str) -> dict[str, object]:
    """Read a JSON object strictly: each name once, nothing after it.

    >>> decode_object('{"price": 9.5}')
    {'price': 9.5}
    """
    decoded = decode_json(text)
    if not isinstance(decoded, dict):
        raise BadValueError(f"must be a JSON object, not {_json_kind(decoded)}")
    return decoded


def decode_json(text: str) -> object:
    """Read JSON as strictly; raises BadValueError."""
    try:
        try:
            return _DECODER.decode(text)
        except json.JSONDecodeError:
            raise
        except ValueError:  # Python refuses to read an integer of thousands of digits
            return _SHORTENING_DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        line = f"line {error.lineno}, " if "\n" in text else ""
        raise BadValueError(f"not valid JSON: {reason} at {line}column {error.colno}") from None
    except RecursionError:
        raise BadValueError("is nested too deeply") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; raises BadValueError if a name is in it twice, where json keeps the last."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadValueError(f"the name {twice!r} occurs twice in one object")
    return fields


def _shortened_integer(digits: str) -> int:
    """An integer, or if it is very long another one that does not fit in 64 bits either.

    So it is refused later like any integer that is too large, with the name of its attribute.
    """
    return int(digits) if len(digits) < 30 else INT_MAX + 1


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_SHORTENING_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_shortened_integer)


def _json_kind(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return f"the number {value}" if abs(value) < 2**64 else "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case None:
            return "null"
        case _:
            return type(value).__name__
