"""Files of events, read in chunks.

An event is identified by its index: the number of events before it in the file. Bad lines count
too, so that indexes do not change when bad lines are corrected.

A chunk keeps the form of its file: JSON lines become `Event` objects, because each may have other
attributes and kinds of values; Parquet stays an Arrow table, which the engine encodes by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import Advance, InputFile
from tidegate.errors import BadValueError, EventError, TidegateError
from tidegate.language.events import Event
from tidegate.language.spaces import Space
from tidegate.language.values import Value, parse_timestamp, to_us
from tidegate.matching.batches import EventBatch, misfits, times_us_of
from tidegate.matching.json_lines import decode_line

CHUNK_EVENTS = 20_000
"""Number of events that are read at once; bounds the memory of a command."""

_TIME_TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class TimeAttributes:
    """The attributes of events that are timestamps, which JSON can only write as strings.

    ``event_time`` is the attribute with the time of the event; every event needs it.
    """

    event_time: str | None = None
    others: frozenset[str] = frozenset()

    @classmethod
    def from_options(
        cls, event_time: str | None, timestamps: str, space: Space | None = None
    ) -> TimeAttributes:
        """Parse the values of --event-time, a name, and --timestamps, names with commas between.

        The attributes that are timestamps in the space of --space are added.
        """
        names = {name.strip() for name in timestamps.split(",")} - {""}
        if space is not None:
            names |= {name for name, kind in space.attributes.items() if kind is datetime}
        return cls(event_time, frozenset(names))

    @property
    def names(self) -> frozenset[str]:
        return self.others if self.event_time is None else self.others | {self.event_time}

    def to_event(self, source: Mapping[str, object]) -> Event:
        """Make an event of a JSON object; raises EventError."""
        event = Event.of(source)
        if not self.names:
            return event
        attributes = dict(event.attributes)
        for name in self.others & attributes.keys():
            attributes[name] = _to_time(name, attributes[name])
        if self.event_time is None:
            return Event(attributes)
        if self.event_time not in attributes:
            raise self.missing_time()
        time = _to_time(self.event_time, attributes[self.event_time])
        attributes[self.event_time] = time
        return Event(attributes, time)

    def missing_time(self) -> EventError:
        """The error for an event without a time."""
        return EventError(f"the event has no {self.event_time!r}, the attribute with its time")


def _to_time(name: str, value: Value) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise EventError(f"attribute {name!r}: must be a timestamp, as '2026-01-02T03:04:05Z'")
    try:
        return parse_timestamp(value)
    except BadValueError as error:
        raise EventError(f"attribute {name!r}: {error}") from None


@dataclass(frozen=True, slots=True)
class EventChunk:
    """A chunk of events with their indexes in the file, as objects or as an Arrow table.

    ``event_time`` is the attribute with the time of each event; None if events have no times.
    """

    indexes: npt.NDArray[np.int64]
    events: Sequence[Event] | pa.Table
    event_time: str | None = None

    @classmethod
    def concat(cls, chunks: Sequence[EventChunk], event_time: str | None) -> EventChunk:
        """All chunks of a file as one; they are all tables or all lists of events."""
        if not chunks:
            return cls(np.zeros(0, np.int64), [], event_time)
        tables = [each.events for each in chunks if isinstance(each.events, pa.Table)]
        lists = [each.events for each in chunks if not isinstance(each.events, pa.Table)]
        events = (
            # Arrow cannot combine chunks of a column whose dictionaries differ.
            pa.concat_tables(tables).unify_dictionaries().combine_chunks()
            if tables
            else list(chain.from_iterable(lists))
        )
        return cls(np.concatenate([each.indexes for each in chunks]), events, event_time)

    def __len__(self) -> int:
        return len(self.indexes)

    def slice(self, start: int, stop: int) -> EventChunk:
        """The events at positions from ``start`` on and before ``stop``."""
        if isinstance(self.events, pa.Table):
            events: Sequence[Event] | pa.Table = self.events.slice(start, stop - start)
        else:
            events = self.events[start:stop]
        return EventChunk(self.indexes[start:stop], events, self.event_time)

    def sorted_by_time(self) -> tuple[EventChunk, npt.NDArray[np.int64]]:
        """The events in the order of their times, and these times in microseconds since 1970."""
        time_us = self.time_us()
        order = np.argsort(time_us, kind="stable")
        if isinstance(self.events, pa.Table):
            ordered: Sequence[Event] | pa.Table = self.events.take(order)
        else:
            ordered = [self.events[position] for position in order.tolist()]
        return EventChunk(self.indexes[order], ordered, self.event_time), time_us[order]

    def time_us(self) -> npt.NDArray[np.int64]:
        """The times of the events, in microseconds since 1970."""
        if isinstance(self.events, pa.Table) and self.event_time is not None:
            column = EventBatch.of(self.events.select([self.event_time])).columns[0][1]
            return times_us_of(column, self.event_time)
        return np.array([to_us(each.time) for each in self.as_events() if each.time], np.int64)

    def as_events(self) -> Iterable[Event]:
        """The events as objects, each with its time."""
        if not isinstance(self.events, pa.Table):
            return self.events
        batch = EventBatch.of(self.events)
        return (self._with_time(batch.event(row)) for row in range(batch.length))

    def _with_time(self, event: Event) -> Event:
        time = None if self.event_time is None else event.attributes.get(self.event_time)
        return Event(event.attributes, time if isinstance(time, datetime) else None)


def read_events(
    file: InputFile,
    times: TimeAttributes,
    bad: BadLines,
    advance: Advance,
    space: Space | None = None,
) -> Iterator[EventChunk]:
    """The events of a file, in chunks; bad events are collected in ``bad`` and skipped.

    Events that do not fit the space are bad.
    """
    if file.is_parquet:
        return _ParquetEvents(file, times, bad, space).read(advance)
    return _read_json(file, times, bad, advance, space)


def _read_json(
    file: InputFile, times: TimeAttributes, bad: BadLines, advance: Advance, space: Space | None
) -> Iterator[EventChunk]:
    indexes: list[int] = []
    events: list[Event] = []
    for index, (number, line) in enumerate(file.lines(advance)):
        try:
            event = times.to_event(decode_line(line))
            if space is not None:
                space.check_event(event)
        except TidegateError as error:
            bad.add(file, number, error)
            continue
        indexes.append(index)
        events.append(event)
        if len(events) == CHUNK_EVENTS:
            yield EventChunk(np.array(indexes, np.int64), events, times.event_time)
            indexes, events = [], []
    if events:
        yield EventChunk(np.array(indexes, np.int64), events, times.event_time)


class _ParquetEvents:
    """Events as rows of Parquet.

    A column of a type that is no value is an error of the whole file, a bad value one of its row.
    """

    def __init__(
        self, file: InputFile, times: TimeAttributes, bad: BadLines, space: Space | None
    ) -> None:
        self._file = file
        self._times = times
        self._bad = bad
        self._space = space
        self._check_columns()

    def _check_columns(self) -> None:
        table = _flattened(self._file.schema.empty_table())
        try:
            EventBatch.of(table)
        except EventError as error:
            raise self._file.error(error) from None
        event_time = self._times.event_time
        if event_time is not None and event_time not in table.column_names:
            raise self._file.error(f"there is no column {event_time!r}")
        for name in self._times.names & set(table.column_names):
            kind = table.schema.field(name).type
            if not (_is_text(kind) or pa.types.is_timestamp(kind) or pa.types.is_null(kind)):
                raise self._file.error(
                    f"column {name!r}: must be timestamps or strings, not {kind}"
                )

    def read(self, advance: Advance) -> Iterator[EventChunk]:
        for start, table in self._file.tables(CHUNK_EVENTS, advance):
            errors: dict[int, TidegateError] = {}
            timed = self._with_timestamps(_flattened(table), errors)
            _find_errors(timed, 0, errors, self._space)
            for row in sorted(errors):
                self._bad.add(self._file, start + row, errors[row])
            good_rows = np.setdiff1d(np.arange(table.num_rows), np.array(list(errors), np.int64))
            if len(good_rows):
                good = timed.take(good_rows) if errors else timed
                yield EventChunk(good_rows + start, good, self._times.event_time)

    def _with_timestamps(self, table: pa.Table, errors: dict[int, TidegateError]) -> pa.Table:
        """The table with strings of time attributes parsed; adds the errors of rows to
        ``errors``."""
        for position, name in enumerate(table.column_names):
            if name not in self._times.names:
                continue
            column: Any = table.column(name)
            if _is_text(column.type):
                times = self._parse_times(name, column.to_pylist(), errors)
                column = pa.chunked_array([pa.array(times, _TIME_TYPE)])
                table = table.set_column(position, name, column)
            if name == self._times.event_time:
                for row in np.flatnonzero(column.is_null().to_numpy()).tolist():
                    errors.setdefault(row, self._times.missing_time())
        return table

    def _parse_times(
        self, name: str, texts: list[str | None], errors: dict[int, TidegateError]
    ) -> list[datetime | None]:
        times: list[datetime | None] = []
        for row, text in enumerate(texts):
            time = None
            if text is not None:
                try:
                    time = parse_timestamp(text)
                except BadValueError as error:
                    errors.setdefault(row, EventError(f"attribute {name!r}: {error}"))
            times.append(time)
        return times


def _find_errors(
    table: pa.Table, start: int, errors: dict[int, TidegateError], space: Space | None
) -> None:
    """Add the errors of rows with a bad value to ``errors``; ``start`` is the first row's number.

    A check of a table does not name the bad row. Bisection finds it with few checks, because bad
    rows are rare.
    """
    try:
        table.validate(full=True)  # strings must be Unicode
        batch = EventBatch.of(table)
        for row, reason in misfits(batch, space) if space is not None else ():
            errors.setdefault(start + row, EventError(reason))
        return
    except (pa.ArrowInvalid, EventError) as error:
        if table.num_rows == 1:
            errors.setdefault(start, EventError(str(error).partition("\n")[0]))
            return
    middle = table.num_rows // 2
    _find_errors(table.slice(0, middle), start, errors, space)
    _find_errors(table.slice(middle), start + middle, errors, space)


def _flattened(table: pa.Table) -> pa.Table:
    """The table with the fields of structs as columns with dotted names, as in nested JSON."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _is_text(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
