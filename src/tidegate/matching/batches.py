"""Batches of events in columns, as Arrow has them, and the matches that come out.

An Arrow table is a batch of events: each column an attribute, each null an absent value; structs
flatten to dotted names. A batch of mappings becomes such columns where their kinds agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import EventError
from tidegate.language.events import Event
from tidegate.language.values import Value, to_us, to_value
from tidegate.language.variables import VariableState
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.subscription import Moment

Column = Any
"""An Arrow array of one of the types that ``as_value_array`` gives."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of an event (its index in the batch) and a subscription (its id)."""

    events: npt.NDArray[np.int64]
    subscriptions: Column

    @classmethod
    def joined(cls, parts: Sequence[Matches]) -> Matches:
        """The pairs of several parts of a batch, one after the other."""
        if not parts:
            return cls(np.zeros(0, np.int64), pa.array([], pa.string()))
        if len(parts) == 1:
            return parts[0]
        ids: Column = pa.chunked_array([each.subscriptions for each in parts])
        events = np.concatenate([each.events for each in parts])
        return cls(events, ids.unify_dictionaries().combine_chunks())

    def moved(self, by: int) -> Matches:
        """The same pairs, of events that stand so many places further back."""
        return replace(self, events=self.events + by) if by else self

    def to_table(self) -> pa.Table:
        """The pairs as an Arrow table with the columns `event` and `subscription`."""
        return pa.table({"event": pa.array(self.events), "subscription": self.subscriptions})


@dataclass(frozen=True, slots=True)
class VersionColumns:
    """What is known of versions, by number."""

    subscription: pa.StringArray
    subscriber: pa.StringArray
    since: Column
    """From when on each holds; null where that is not known."""


@dataclass(frozen=True, slots=True)
class VersionMatches:
    """Pairs of an event (its index in the batch) and a version (its number)."""

    events: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]
    columns: VersionColumns


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events in columns. ``times_us`` has the time at which each is judged, or is None.

    An attribute that changes its kind from event to event has a column for each kind, with nulls
    where it is of another.
    """

    length: int
    columns: Sequence[tuple[str, Column]]
    times_us: npt.NDArray[np.int64] | None = None
    known: VariableState = field(default_factory=VariableState)
    _seen: dict[int | None, Mapping[str, Value]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, table: pa.Table | pa.RecordBatch) -> EventBatch:
        """Take an Arrow table or record batch; raises EventError for a column of no value type."""
        columns: dict[str, Column] = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            for full_name, array in _flattened(name, column):
                if full_name in columns:
                    raise EventError(f"column {full_name!r} stands in the table twice")
                columns[full_name] = array
        return cls(table.num_rows, list(columns.items()))

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> EventBatch:
        """Take events one by one; those that have a time are judged at it."""
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

    def knowing(self, variables: Mapping[str, Value] | VariableState) -> EventBatch:
        """The same events, with these variables of the broker."""
        known = variables if isinstance(variables, VariableState) else VariableState(variables)
        return replace(self, known=known)

    def part(self, begin: int, end: int) -> EventBatch:
        """The events from one place to before another."""
        columns = [(name, column.slice(begin, end - begin)) for name, column in self.columns]
        times_us = None if self.times_us is None else self.times_us[begin:end]
        return replace(self, length=end - begin, columns=columns, times_us=times_us)

    def column(self, name: str) -> Column | None:
        """The column of an attribute that has just one."""
        found = [column for column_name, column in self.columns if column_name == name]
        return found[0] if len(found) == 1 else None

    def moment(self, index: int) -> Moment:
        """The moment at which an event is judged."""
        time_us = self.time(index)
        return Moment(time_us, self.variables_at(time_us))

    def variables_at(self, time_us: int | None) -> Mapping[str, Value]:
        """What filters see as variables at a time; a provider is asked once for each."""
        seen = self._seen.get(time_us)
        if seen is None:
            seen = self._seen[time_us] = self.known.at(time_us)
        return seen

    def time(self, index: int) -> int | None:
        """The time at which an event is judged, if it has one."""
        time_us = NO_TIME if self.times_us is None else self.times_us[index]
        return None if time_us == NO_TIME else int(time_us)

    def present(self, name: str) -> npt.NDArray[np.bool_]:
        """Which events have an attribute."""
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


def presence(column: Column) -> npt.NDArray[np.bool_]:
    """Which rows of a column have a value."""
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


def _flattened(name: str, column: Column) -> list[tuple[str, Column]]:
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
            for pair in _flattened(f"{name}.{field_name}", part)
        ]
    return [(name, as_value_array(name, array))]


def as_value_array(name: str, array: Column) -> Column:
    """A column as one of null, bool, int64, float64, string, dictionary of string, timestamp."""
    kind = array.type
    types = pa.types
    if types.is_null(kind) or types.is_boolean(kind) or types.is_int64(kind):
        return array
    if types.is_float64(kind) or types.is_string(kind):
        return array
    if types.is_uint64(kind):
        return _cast(name, array, pa.int64(), "a value does not fit in 64 bits with a sign")
    if types.is_integer(kind):
        return array.cast(pa.int64())
    if types.is_floating(kind):
        return array.cast(pa.float64())
    if types.is_large_string(kind) or kind == pa.string_view():
        return array.cast(pa.string())
    if types.is_dictionary(kind):
        values = as_value_array(name, array.dictionary)
        if types.is_string(values.type):
            return pa.DictionaryArray.from_arrays(array.indices, values)
        return as_value_array(name, array.dictionary_decode())
    if types.is_timestamp(kind):
        return _as_us(name, array)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        raise EventError(f"column {name!r}: a list is not a value")
    raise EventError(
        f"column {name!r}: {kind} is not a value type; "
        "take booleans, integers, floats, strings or timestamps"
    )


def _as_us(name: str, array: Column) -> Column:
    """A column of timestamps in microseconds, UTC; those that Python's do not reach are refused."""
    in_utc = pa.timestamp("us", "UTC")
    reason = "a timestamp must lie in the years 1 to 9999 in UTC"
    if array.type.unit == "ns":
        whole = pc.floor_temporal(array, unit="microsecond")
        time_us = whole.cast(pa.timestamp("us", array.type.tz)).cast(in_utc)
    else:
        time_us = _cast(name, array, in_utc, reason)
    numbers = time_us.cast(pa.int64()).drop_null().to_numpy(zero_copy_only=False)
    if len(numbers) and (numbers.min() < _FIRST_US or numbers.max() > _LAST_US):
        raise EventError(f"column {name!r}: {reason}")
    return time_us


def _cast(name: str, array: Column, kind: pa.DataType, reason: str) -> Column:
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        raise EventError(f"column {name!r}: {reason}") from None


def times_us_of(array: Column, name: str) -> npt.NDArray[np.int64]:
    """A column of timestamps as microseconds since 1970; every event must have one."""
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
