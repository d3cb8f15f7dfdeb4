"""Batches of events in Arrow columns, and the matches that result from them.

An Arrow table is a batch of events: each column is an attribute, each null an absent value; structs
flatten to dotted names. Events given one by one become such columns, one for each attribute and
type.

Columns are converted and checked once, when a batch is made: whatever a table has (small integers,
large strings, timestamps of any unit and zone), behind `EventBatch` there are only the types that
`as_value_array` returns, with values that the language allows. Matchers rely on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import EventError
from tidegate.language.events import Event
from tidegate.language.spaces import Space
from tidegate.language.values import Value, from_us, to_us, to_value
from tidegate.language.variables import VariableState
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.subscription import Moment

Column = Any
"""An Arrow array of one of the types that ``as_value_array`` returns."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of an event (its index in the batch) and a subscription (its id)."""

    events: npt.NDArray[np.int64]
    subscriptions: Column
    """Strings, or a dictionary of strings where the same ids match many events."""

    @classmethod
    def concatenated(cls, chunks: Sequence[Matches]) -> Matches:
        """The pairs of several chunks of a batch, one after the other."""
        if not chunks:
            return cls(np.zeros(0, np.int64), pa.array([], pa.string()))
        if len(chunks) == 1:
            return chunks[0]
        ids: Column = pa.chunked_array([each.subscriptions for each in chunks])
        events = np.concatenate([each.events for each in chunks])
        # chunks may have dictionaries of their own, which combine_chunks refuses
        return cls(events, ids.unify_dictionaries().combine_chunks())

    def shifted(self, by: int) -> Matches:
        """The same pairs with ``by`` added to the indexes of events."""
        return replace(self, events=self.events + by) if by else self

    def to_table(self) -> pa.Table:
        """The pairs as an Arrow table with the columns `event` and `subscription`."""
        return pa.table({"event": pa.array(self.events), "subscription": self.subscriptions})


@dataclass(frozen=True, slots=True)
class VersionColumns:
    """The versions of an index as columns; a row is the number of a version."""

    subscription: pa.StringArray
    subscriber: pa.StringArray
    since: Column
    """The time from which each version is in force; null where it is not known."""


@dataclass(frozen=True, slots=True)
class VersionMatches:
    """Pairs of an event (its index in the batch) and a version (its number)."""

    events: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]
    columns: VersionColumns


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events in columns, with the times at which they are judged and the variables they see.

    Invariants. All columns have ``length`` rows. An attribute whose values change their type from
    event to event has a column for each type; in each row at most one of them is not null. NaN is
    left in the columns and counts as absent, as null does.
    """

    length: int
    columns: Sequence[tuple[str, Column]]
    times_us: npt.NDArray[np.int64] | None = None
    """The time of each event in microseconds, NO_TIME for one without; None if none has a time."""
    variables: VariableState = field(default_factory=VariableState)
    _variables_by_time: dict[int | None, Mapping[str, Value]] = field(
        default_factory=dict, init=False
    )
    """So that a provider is called once for all events of a time. ``replace`` does not copy it: a
    batch with other variables starts with an empty one."""

    @classmethod
    def of(
        cls, table: pa.Table | pa.RecordBatch, only: Collection[str] | None = None
    ) -> EventBatch:
        """The events of an Arrow table or record batch; with ``only``, just these attributes.

        Raises EventError for a column of a type that has no values, and for two columns of one
        name, as a struct `a` with a field `b` and a column `a.b` are.
        """
        columns: dict[str, Column] = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            for full_name, array in _flattened(name, column, only):
                if full_name in columns:
                    raise EventError(f"the table has two columns {full_name!r}")
                columns[full_name] = array
        return cls(table.num_rows, list(columns.items()))

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> EventBatch:
        """The attributes of events in columns; their times are not taken over."""
        columns: dict[tuple[str, type], list[Value | None]] = {}
        for index, event in enumerate(events):
            for name, value in event.attributes.items():
                key = (name, type(value))
                if key not in columns:
                    columns[key] = [None] * len(events)
                columns[key][index] = value
        arrays = [(name, pa.array(v, _ARROW_TYPES[kind])) for (name, kind), v in columns.items()]
        return cls(len(events), arrays)

    def at(self, time: datetime | None) -> EventBatch:
        """The same events, all judged at one time."""
        if time is None:
            return self
        return self.judged_at(np.full(self.length, to_us(time)))

    def judged_at(self, times_us: npt.NDArray[np.int64]) -> EventBatch:
        """The same events, each judged at its time."""
        return replace(self, times_us=times_us)

    def with_variables(self, variables: Mapping[str, Value] | VariableState) -> EventBatch:
        """The same events, judged with these variables of the broker."""
        state = variables if isinstance(variables, VariableState) else VariableState(variables)
        return replace(self, variables=state)

    def chunk(self, begin: int, end: int) -> EventBatch:
        """The events from index ``begin`` to before ``end``; copies no values."""
        columns = [(name, column.slice(begin, end - begin)) for name, column in self.columns]
        times_us = None if self.times_us is None else self.times_us[begin:end]
        return replace(self, length=end - begin, columns=columns, times_us=times_us)

    def column(self, name: str) -> Column | None:
        """The column of an attribute; None if it has none, or several of different types."""
        found = [column for column_name, column in self.columns if column_name == name]
        return found[0] if len(found) == 1 else None

    def distinct_times(self) -> Iterator[int | None]:
        """The times of the events in microseconds, each once; None if an event has none."""
        if self.times_us is None:
            yield None
            return
        for time_us in np.unique(self.times_us).tolist():
            yield None if time_us == NO_TIME else time_us

    def moment(self, index: int) -> Moment:
        """The moment at which an event is judged."""
        time_us = self.time(index)
        return Moment(time_us, self.variables_at(time_us))

    def variables_at(self, time_us: int | None) -> Mapping[str, Value]:
        """The variables at a time; a provider is called once for each time."""
        variables = self._variables_by_time.get(time_us)
        if variables is None:
            variables = self._variables_by_time[time_us] = self.variables.at(time_us)
        return variables

    def time(self, index: int) -> int | None:
        """The time at which an event is judged, in microseconds; None if it has none."""
        time_us = NO_TIME if self.times_us is None else self.times_us[index]
        return None if time_us == NO_TIME else int(time_us)

    def present(self, name: str) -> npt.NDArray[np.bool_]:
        """A mask of the events that have an attribute."""
        found = np.zeros(self.length, np.bool_)
        for column_name, column in self.columns:
            if column_name == name:
                found |= presence(column)
        return found

    def event(self, index: int) -> Event:
        """One event of the batch."""
        attributes: dict[str, Value] = {}
        for name, column in self.columns:
            value = to_value(column[index].as_py())
            if value is not None:
                attributes[name] = value
        return Event(attributes)

    def timed_event(self, index: int) -> Event:
        """One event of the batch, published at the time at which it is judged."""
        time_us = self.time(index)
        return Event(self.event(index).attributes, None if time_us is None else from_us(time_us))


def misfits(batch: EventBatch, space: Space) -> Iterator[tuple[int, str]]:
    """The events that do not fit a space: their rows, and why.

    Column by column; an event that has several wrong attributes is returned for each.
    """
    for name, column in batch.columns:
        rows = np.flatnonzero(presence(column))
        if pa.types.is_floating(column.type) and space.misfit(name, 0.0) is None:
            numbers = column.fill_null(0).to_numpy(zero_copy_only=False)[rows]
            rows = rows[np.isinf(numbers) | (np.floor(numbers) != numbers)]
        for row in rows.tolist():
            value = to_value(column[row].as_py())
            reason = None if value is None else space.misfit(name, value)
            # A column has one type, and of floats only those with a fraction are left; so if one
            # value fits, all do.
            if reason is None:
                break
            yield row, reason


def presence(column: Column) -> npt.NDArray[np.bool_]:
    """A mask of the rows of a column that have a value: neither null nor NaN."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    present: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
        present = present & ~np.isnan(numbers)
    return present


_FIRST_US = to_us(datetime.min.replace(tzinfo=UTC))
_LAST_US = to_us(datetime.max.replace(tzinfo=UTC))

_ARROW_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    datetime: pa.timestamp("us", "UTC"),
}


def _flattened(
    name: str, column: Column, only: Collection[str] | None, prefix: str = ""
) -> list[tuple[str, Column]]:
    """A column as (name, value array) pairs: one, or for a struct one for each field in it."""
    if not name:
        raise EventError(f"{prefix}{name!r}: the name of an attribute is a string, not empty")
    name = prefix + name
    array: Column = column
    if isinstance(column, pa.ChunkedArray):
        chunks = column.chunks
        array = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.nulls(0)])
    kind = array.type
    if pa.types.is_struct(kind):
        return [
            pair
            for field_name, part in zip(
                [kind.field(i).name for i in range(kind.num_fields)], array.flatten(), strict=True
            )
            for pair in _flattened(field_name, part, only, f"{name}.")
        ]
    if only is not None and name not in only:
        return []
    return [(name, as_value_array(name, array))]


def as_value_array(name: str, array: Column) -> Column:
    """A column as null, bool, int64, float64, string, dictionary of strings, or timestamp.

    Timestamps are in microseconds, UTC. Raises EventError for a type that is not a value type, and
    for values out of range.
    """
    kind = array.type
    types = pa.types
    if types.is_null(kind) or types.is_boolean(kind) or types.is_int64(kind):
        return array
    if types.is_float64(kind):
        return array
    if types.is_string(kind):
        return _validated(name, array)
    if types.is_uint64(kind):
        return _cast(name, array, pa.int64(), "a value does not fit in 64 bits with a sign")
    if types.is_integer(kind):
        return array.cast(pa.int64())
    if types.is_floating(kind):
        return array.cast(pa.float64())
    if types.is_large_string(kind) or kind == pa.string_view():
        return _validated(name, array).cast(pa.string())
    if types.is_dictionary(kind):
        values = as_value_array(name, _validated(name, array).dictionary)
        # strings stay encoded: a matcher looks up each distinct one once. Others are cheap decoded.
        if types.is_string(values.type):
            return pa.DictionaryArray.from_arrays(array.indices, values)
        return as_value_array(name, array.dictionary_decode())
    if types.is_timestamp(kind):
        return _as_us(name, array)
    if types.is_date(kind):  # midnight UTC
        return _as_us(name, array.cast(pa.timestamp("ms")))
    if types.is_decimal(kind):
        return _as_numbers(array)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        raise EventError(f"column {name!r}: a list is not a value")
    raise EventError(
        f"column {name!r}: {kind} is not a value type; "
        "take booleans, numbers, strings, timestamps or dates"
    )


def _as_numbers(array: Column) -> Column:
    """A column of decimals as integers if they have no fraction and fit, else as floats."""
    if array.type.scale <= 0 and array.type.precision - array.type.scale <= 18:
        return array.cast(pa.int64())
    # by way of texts, as Arrow's own cast to floats is off by one place now and then
    return array.cast(pa.string()).cast(pa.float64())


def _as_us(name: str, array: Column) -> Column:
    """A column of timestamps in microseconds, UTC, of years that Python's datetime has."""
    in_utc = pa.timestamp("us", "UTC")
    reason = "a timestamp must lie in the years 1 to 9999 in UTC"
    if array.type.unit == "ns":
        # Rounded down, before 1970 too, as an event's timestamp is: a cast would refuse to round,
        # and Arrow's own rounding needs to know the time zone and fails at both ends of the range.
        time_ns = array.cast(pa.int64())
        nulls = time_ns.is_null().to_numpy(zero_copy_only=False)
        floored = time_ns.fill_null(0).to_numpy(zero_copy_only=False) // 1000
        time_us = pa.array(floored, pa.int64(), mask=nulls).cast(in_utc)
    else:
        time_us = _cast(name, array, in_utc, reason)
    numbers = time_us.cast(pa.int64()).drop_null().to_numpy(zero_copy_only=False)
    if len(numbers) and (numbers.min() < _FIRST_US or numbers.max() > _LAST_US):
        raise EventError(f"column {name!r}: {reason}")
    return time_us


def _validated(name: str, array: Column) -> Column:
    """A column as it is; raises EventError if its buffers are not what its type says."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise EventError(f"column {name!r}: {error}") from None
    return array


def _cast(name: str, array: Column, kind: pa.DataType, reason: str) -> Column:
    """A column as another type; raises EventError with a reason if a value does not fit."""
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        raise EventError(f"column {name!r}: {reason}") from None


def times_us_of(array: Column, name: str) -> npt.NDArray[np.int64]:
    """A column of timestamps as microseconds since 1970.

    Raises EventError if the column has another type, or if an event has none.
    """
    if not pa.types.is_timestamp(array.type):
        raise EventError(f"column {name!r} holds the time of events and must be of timestamps")
    if array.null_count:
        row = array.is_null().to_pylist().index(True)
        raise EventError(f"column {name!r} holds the time of events; event {row} has none")
    result: npt.NDArray[np.int64] = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return result


def wall_clock() -> datetime:
    """The time now."""
    return datetime.now(UTC)
