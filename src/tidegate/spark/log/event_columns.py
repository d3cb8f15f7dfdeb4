"""Events in the columns of a log, as Arrow has them.

The first column has the publication times; each other one is an attribute, named as it is and of
one type. An attribute that changes its type from event to event has a column for each type. Absent
is null, and nothing else is: a NaN becomes null when it comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import EventError
from tidegate.language.events import ATTRIBUTES_MAX, Event
from tidegate.language.values import Value, from_us, to_us
from tidegate.matching.batches import EventBatch

LogColumn = Any
"""An Arrow array; its stubs do not know all the types that a column may have."""

TIME_TYPE = pa.timestamp("us", "UTC")
VALUE_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int64(): "integer",
    pa.float64(): "float",
    pa.string(): "string",
    TIME_TYPE: "timestamp",
}
"""The types of attributes, and what people call them."""

EVENT_CHARS_MAX = 16 * 2**20
"""The strings of one event, all in all."""

# Each file has the columns of all its events, so events that have little in common must not share
# one: a thousand events with ten attributes of their own each would make ten million cells.
_CHUNK_EVENTS_MAX = 50_000
_CHUNK_CELLS_MAX = 4_000_000
_CHUNK_CHARS_MAX = 4 * EVENT_CHARS_MAX

_TIME_FIELD = pa.field("_time", TIME_TYPE, nullable=False)


def chunked(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Cut a sequence of events into pieces that are small enough for one table each.

    >>> [len(chunk) for chunk in chunked([Event({"a": 1})] * 120_000)]
    [50000, 50000, 20000]
    """
    chunk: list[Event] = []
    columns: set[tuple[str, type]] = set()
    chars = 0
    for event in events:
        own = {(name, type(value)) for name, value in event.attributes.items()}
        own_chars = sum(len(v) for v in event.attributes.values() if type(v) is str)
        if own_chars > EVENT_CHARS_MAX:
            raise EventError(
                f"the strings of an event have {own_chars} characters; "
                f"at most {EVENT_CHARS_MAX} are taken"
            )
        cells = (len(chunk) + 1) * len(columns | own)
        full = len(chunk) == _CHUNK_EVENTS_MAX or cells > _CHUNK_CELLS_MAX
        if chunk and (full or chars + own_chars > _CHUNK_CHARS_MAX):
            yield chunk
            chunk, columns, chars = [], set(), 0
        chunk.append(event)
        columns |= own
        chars += own_chars
    if chunk:
        yield chunk


def columns_of(events: Sequence[Event], now: datetime) -> pa.RecordBatch:
    """Events as columns; those without a time were published ``now``."""
    present = to_us(now)
    time_us = [present if event.time is None else to_us(event.time) for event in events]
    times = pa.array(time_us, pa.int64()).cast(TIME_TYPE)
    return _assembled(times, EventBatch.of_events(events).columns)


def columns_from(batch: pa.RecordBatch, times: LogColumn | None, now: datetime) -> pa.RecordBatch:
    """Take a batch of events as Arrow has it (see ``EventBatch.of``), with their times if known.

    >>> now = datetime.fromisoformat("2026-01-02T03:04:05Z")
    >>> taken = columns_from(pa.record_batch({"a": [1, None], "b": [{"c": "x"}, None]}), None, now)
    >>> taken.schema.names, events_of(taken)[1].attributes
    (['_time', 'a', 'b.c'], {})
    """
    found = EventBatch.of(batch).columns
    if len(found) > ATTRIBUTES_MAX:
        raise EventError(
            f"the events have {len(found)} attributes; at most {ATTRIBUTES_MAX} are taken"
        )
    columns = []
    for name, column in found:
        if not name:
            raise EventError("a column has no name; it is the name of an attribute")
        if not pa.types.is_null(column.type):
            columns.append((name, _checked(name, column)))
    present = pa.scalar(to_us(now), pa.int64()).cast(TIME_TYPE)
    if times is None:
        times = pa.nulls(batch.num_rows, TIME_TYPE)
    return _assembled(pc.fill_null(times, present), columns)


def events_of(batch: pa.RecordBatch) -> list[Event]:
    """The events that stand in columns."""
    rows: list[dict[str, Value]] = [{} for _ in range(batch.num_rows)]
    for name, column in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
        for row, value in zip(rows, values_of(column), strict=True):
            if value is not None:
                row[name] = value
    times: LogColumn = batch.column(0).cast(pa.int64())
    return [Event(row, from_us(time)) for row, time in zip(rows, times.to_pylist(), strict=True)]


def values_of(column: LogColumn) -> list[Value | None]:
    """The values of a column, None where there is none."""
    if column.type == TIME_TYPE:  # what Arrow makes of one has a zone of another class
        time_us = column.cast(pa.int64()).to_pylist()
        return [None if each is None else from_us(each) for each in time_us]
    values: list[Value | None] = column.to_pylist()
    return values


def _assembled(times: LogColumn, columns: Iterable[tuple[str, LogColumn]]) -> pa.RecordBatch:
    fields, arrays = [_TIME_FIELD], [times]
    for name, column in columns:
        fields.append(pa.field(name, column.type))
        arrays.append(_without_nan(column))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _checked(name: str, column: LogColumn) -> LogColumn:
    """A column of strings in plain form, if all are text and none is too long."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_string(column.type):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise EventError(f"column {name!r}: a string must be valid Unicode") from None
    lengths: LogColumn = pc.binary_length(column)
    longest: int = pc.max(lengths).as_py() or 0
    if longest > EVENT_CHARS_MAX:
        raise EventError(
            f"column {name!r}: a string has {longest} bytes; at most {EVENT_CHARS_MAX} are taken"
        )
    return column


def _without_nan(column: LogColumn) -> LogColumn:
    if not pa.types.is_float64(column.type):
        return column
    nan = pc.is_nan(column)
    if not pc.any(nan).as_py():
        return column
    return pc.if_else(nan, pa.scalar(None, pa.float64()), column)
