"""Events as the Arrow columns of a log.

The first column holds the publication times. Each other column is an attribute: it has the name of
the attribute, and one type. An attribute whose type differs from event to event has a column for
each type, all of the same name. A null means that the attribute is absent, and absent attributes
are always null: NaN becomes null before it is stored.
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
"""An Arrow array; the stubs of PyArrow cannot express all types that a column may have."""

TIME_TYPE = pa.timestamp("us", "UTC")
VALUE_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int64(): "integer",
    pa.float64(): "float",
    pa.string(): "string",
    TIME_TYPE: "timestamp",
}
"""The types of attributes, with their names for messages."""

EVENT_CHARS_MAX = 16 * 2**20
"""The largest total length of the strings of one event."""

# A chunk has the columns of all its events, so events with few attributes in common must not share
# one: a thousand events with ten attributes each that no other event has would make ten million
# cells. Hence a limit on cells, that is rows times columns, besides the one on events.
CHUNK_EVENTS_MAX = 50_000
CHUNK_CELLS_MAX = 4_000_000
CHUNK_CHARS_MAX = 4 * EVENT_CHARS_MAX

_TIME_FIELD = pa.field("_time", TIME_TYPE, nullable=False)


def chunked(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Divide a sequence of events into chunks that are small enough for one table each.

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
                f"at most {EVENT_CHARS_MAX} are accepted"
            )
        cells = (len(chunk) + 1) * len(columns | own)
        full = len(chunk) == CHUNK_EVENTS_MAX or cells > CHUNK_CELLS_MAX
        if chunk and (full or chars + own_chars > CHUNK_CHARS_MAX):
            yield chunk
            chunk, columns, chars = [], set(), 0
        chunk.append(event)
        columns |= own
        chars += own_chars
    if chunk:
        yield chunk


def events_to_columns(events: Sequence[Event], now: datetime) -> pa.RecordBatch:
    """Events as columns; events without a time are published ``now``."""
    now_us = to_us(now)
    times_us = [now_us if event.time is None else to_us(event.time) for event in events]
    times = pa.array(times_us, pa.int64()).cast(TIME_TYPE)
    return _to_batch(times, EventBatch.of_events(events).columns)


def batch_to_columns(
    batch: pa.RecordBatch, times: LogColumn | None, now: datetime
) -> pa.RecordBatch:
    """An Arrow batch of events (see ``EventBatch.of``) as columns of a log.

    Events whose time is null, or all of them if ``times`` is None, are published ``now``.

    >>> now = datetime.fromisoformat("2026-01-02T03:04:05Z")
    >>> batch = pa.record_batch({"a": [1, None], "b": [{"c": "x"}, None]})
    >>> columns = batch_to_columns(batch, None, now)
    >>> columns.schema.names, columns_to_events(columns)[1].attributes
    (['_time', 'a', 'b.c'], {})
    """
    flattened = EventBatch.of(batch).columns
    if len(flattened) > ATTRIBUTES_MAX:
        raise EventError(
            f"the events have {len(flattened)} attributes; at most {ATTRIBUTES_MAX} are accepted"
        )
    columns = []
    for name, column in flattened:
        if not pa.types.is_null(column.type):
            columns.append((name, _checked_strings(name, column)))
    now_scalar = pa.scalar(to_us(now), pa.int64()).cast(TIME_TYPE)
    if times is None:
        times = pa.nulls(batch.num_rows, TIME_TYPE)
    return _to_batch(pc.fill_null(times, now_scalar), columns)


def columns_to_events(batch: pa.RecordBatch) -> list[Event]:
    """The events in the columns of a log."""
    rows: list[dict[str, Value]] = [{} for _ in range(batch.num_rows)]
    for name, column in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
        for row, value in zip(rows, values_of(column), strict=True):
            if value is not None:
                row[name] = value
    times: LogColumn = batch.column(0).cast(pa.int64())
    return [Event(row, from_us(time)) for row, time in zip(rows, times.to_pylist(), strict=True)]


def values_of(column: LogColumn) -> list[Value | None]:
    """The values of a column, None for nulls."""
    if column.type == TIME_TYPE:
        # Arrow would make datetimes whose zone is another class than datetime.UTC.
        times_us = column.cast(pa.int64()).to_pylist()
        return [None if each is None else from_us(each) for each in times_us]
    values: list[Value | None] = column.to_pylist()
    return values


def _to_batch(times: LogColumn, columns: Iterable[tuple[str, LogColumn]]) -> pa.RecordBatch:
    fields, arrays = [_TIME_FIELD], [times]
    for name, column in columns:
        fields.append(pa.field(name, column.type))
        arrays.append(_nan_to_null(column))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _checked_strings(name: str, column: LogColumn) -> LogColumn:
    """A column whose strings, if it has any, are decoded and not too long."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_string(column.type):
        return column
    lengths: LogColumn = pc.binary_length(column)
    longest: int = pc.max(lengths).as_py() or 0
    if longest > EVENT_CHARS_MAX:
        raise EventError(
            f"column {name!r}: a string has {longest} bytes; at most {EVENT_CHARS_MAX} are accepted"
        )
    return column


def _nan_to_null(column: LogColumn) -> LogColumn:
    if not pa.types.is_float64(column.type):
        return column
    nan = pc.is_nan(column)
    if not pc.any(nan).as_py():
        return column
    return pc.if_else(nan, pa.scalar(None, pa.float64()), column)
