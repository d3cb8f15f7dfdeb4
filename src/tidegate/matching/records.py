"""Subscriptions as they stand in files and tables: an id, a filter, and what else is wanted."""

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
from tidegate.language.values import INT_MAX, Value, parse_timestamp, to_us, to_value
from tidegate.matching.subscription import Subscription

ROWS_AT_A_TIME = 4_096
FIELDS = ("id", "filter", "subscriber", "params", "evolve", "since", "until")


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A subscription as a row of a file or table has it; the filter is still a text.

    ``origin`` is the time from which `t` counts, where that is not ``since``.
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


def subscription_of(record: SubscriptionRecord, parser: BulkParser | None) -> Subscription:
    """The subscription that a record says; filters are read in bulk if there is a parser for that.

    Raises SubscriptionError that names the subscription.
    """
    try:
        if parser is None:
            filter = Filter(parse_filter(record.filter))
        else:
            filter = Filter.of_shape(*parser.read(record.filter))
        _, row = filter.shape_and_row
        names = [each.name for each in row if isinstance(each, ParameterRef)]
        values = checked_parameters(names, record.params)
    except TidegateError as error:
        raise SubscriptionError(f"subscription {record.id!r}: {error}") from error
    return Subscription(
        record.id,
        filter,
        {name: value for name, value in values.items() if value is not None},
        None if record.since is None else to_us(record.since),
        record.subscriber,
        None if record.until is None else to_us(record.until),
        None if record.origin is None else to_us(record.origin),
        record.evolve,
    )


def checked_parameters(names: Sequence[str], raw: Mapping[str, object]) -> dict[str, Value | None]:
    """Values for the parameters of a filter, which has those names and no others."""
    unknown = [name for name in raw if name not in names]
    if unknown:
        there = ", ".join(f":{name}" for name in dict.fromkeys(names)) or "none"
        raise SubscriptionError(f"the filter has no parameter :{unknown[0]}; it has {there}")
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
    """Refuse a row that has a field of another name than those ``what`` has."""
    for name in row:
        if name not in known:
            raise SubscriptionError(f"there is no field {name!r}; {what} has {', '.join(known)}")


def text_of(row: Mapping[str, object], name: str) -> str | None:
    """A field that is a string, not empty, if it is there."""
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
    """A field that is a string and must be there."""
    value = text_of(row, name)
    if value is None:
        raise SubscriptionError(f"{name}: is missing")
    return value


def time_of(row: Mapping[str, object], name: str) -> datetime | None:
    """A field that is a timestamp, or a string that says one, if it is there."""
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
    """When the filter of a row is evaluated, if the row says so: `periodic 1 s`."""
    text = text_of(row, "evolve")
    try:
        return None if text is None else parse_evolve(text)
    except BadValueError as error:
        raise SubscriptionError(f"evolve: {error}") from None


def params_of(row: Mapping[str, object]) -> dict[str, object] | None:
    """The parameters of a row by name, if it has the field.

    In a table they may also be a map, which Arrow gives as a list of pairs, or JSON in a string.
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
            raise SubscriptionError("params: a name stands there twice")
        raw = dict(raw)
    if not isinstance(raw, Mapping):
        raise SubscriptionError("params: must be an object of names and values")
    return {str(name): value for name, value in raw.items()}


# -- from Arrow and from JSON -----------------------------------------------------------------


def rows_of(table: pa.Table | pa.RecordBatch) -> Iterator[dict[str, object]]:
    """The rows of an Arrow table as plain objects.

    A null in a struct counts as not there: a table has no other way to leave a field out. Only
    some rows at a time are Python objects.
    """
    for begin in range(0, table.num_rows, ROWS_AT_A_TIME):
        yield from _plain_rows(table.slice(begin, ROWS_AT_A_TIME))


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
    """The type with microseconds in their place, which is what Python can hold."""
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
    try:
        try:
            made = _DECODER.decode(text)
        except json.JSONDecodeError:
            raise
        except ValueError:  # Python reads no integer of thousands of digits
            made = _SHORTENING_DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise BadValueError(f"not valid JSON: {reason} at column {error.colno}") from None
    except RecursionError:
        raise BadValueError("is nested too deeply") from None
    if not isinstance(made, dict):
        raise BadValueError(f"must be a JSON object, not {_json_kind(made)}")
    return made


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadValueError(f"the name {twice!r} stands twice in one object")
    return made


def _shortened_integer(digits: str) -> int:
    """Where an integer does not fit in 64 bits, another one that does not either."""
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
