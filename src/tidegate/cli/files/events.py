"""Files of events, read in chunks.

An event is known by its index: the number of events before it in the file, those of bad lines
counted too, so that indexes are the same whether bad lines are skipped or mended.
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
from tidegate.language.values import Value, parse_timestamp, to_us
from tidegate.matching.batches import EventBatch, times_us_of
from tidegate.matching.json_lines import decode_line

CHUNK_EVENTS = 20_000

_TIME_TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class TimeAttributes:
    """Which attributes of events are timestamps though JSON has them as strings.

    ``event_time`` is the one that has the time of the event; every event needs it.
    """

    event_time: str | None = None
    others: frozenset[str] = frozenset()

    @classmethod
    def of_options(cls, event_time: str | None, timestamps: str) -> TimeAttributes:
        """What --event-time and --timestamps say; the latter has commas between names."""
        names = (name.strip() for name in timestamps.split(","))
        return cls(event_time, frozenset(name for name in names if name))

    @property
    def names(self) -> frozenset[str]:
        return self.others if self.event_time is None else self.others | {self.event_time}

    def event_of(self, source: Mapping[str, object]) -> Event:
        """Take an object as an event; raises EventError."""
        event = Event.of(source)
        if not self.names:
            return event
        attributes = dict(event.attributes)
        for name in self.others & attributes.keys():
            attributes[name] = _time_of(name, attributes[name])
        if self.event_time is None:
            return Event(attributes)
        if self.event_time not in attributes:
            raise self.missing()
        time = _time_of(self.event_time, attributes[self.event_time])
        attributes[self.event_time] = time
        return Event(attributes, time)

    def missing(self) -> EventError:
        """The error for an event without its time."""
        return EventError(f"the event has no {self.event_time!r}, which is to be its time")


def _time_of(name: str, value: Value) -> datetime:
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
    """Some events with their indexes in the file, one by one or as an Arrow table.

    ``event_time`` names the attribute that has the time of each event, if they have one.
    """

    indexes: npt.NDArray[np.int64]
    events: Sequence[Event] | pa.Table
    event_time: str | None = None

    @classmethod
    def of_all(cls, chunks: Sequence[EventChunk], event_time: str | None) -> EventChunk:
        """All chunks of a file as one."""
        if not chunks:
            return cls(np.zeros(0, np.int64), [], event_time)
        tables = [each.events for each in chunks if isinstance(each.events, pa.Table)]
        single = [each.events for each in chunks if not isinstance(each.events, pa.Table)]
        events = (
            pa.concat_tables(tables).unify_dictionaries().combine_chunks()
            if tables
            else list(chain.from_iterable(single))
        )
        return cls(np.concatenate([each.indexes for each in chunks]), events, event_time)

    def __len__(self) -> int:
        return len(self.indexes)

    def part(self, start: int, stop: int) -> EventChunk:
        """The events from ``start`` on, before ``stop``."""
        if isinstance(self.events, pa.Table):
            part: Sequence[Event] | pa.Table = self.events.slice(start, stop - start)
        else:
            part = self.events[start:stop]
        return EventChunk(self.indexes[start:stop], part, self.event_time)

    def in_time(self) -> tuple[EventChunk, npt.NDArray[np.int64]]:
        """The events in the order of their times, and those times."""
        time_us = self.time_us()
        order = np.argsort(time_us, kind="stable")
        if isinstance(self.events, pa.Table):
            ordered: Sequence[Event] | pa.Table = self.events.take(order)
        else:
            ordered = [self.events[place] for place in order.tolist()]
        return EventChunk(self.indexes[order], ordered, self.event_time), time_us[order]

    def time_us(self) -> npt.NDArray[np.int64]:
        """The times of the events, in microseconds since 1970."""
        if isinstance(self.events, pa.Table) and self.event_time is not None:
            column = EventBatch.of(self.events.select([self.event_time])).columns[0][1]
            return times_us_of(column, self.event_time)
        return np.array([to_us(each.time) for each in self.one_by_one() if each.time], np.int64)

    def one_by_one(self) -> Iterable[Event]:
        """The events, each with its time."""
        if not isinstance(self.events, pa.Table):
            return self.events
        batch = EventBatch.of(self.events)
        return (self._timed(batch.event(row)) for row in range(batch.length))

    def _timed(self, event: Event) -> Event:
        time = None if self.event_time is None else event.attributes.get(self.event_time)
        return Event(event.attributes, time if isinstance(time, datetime) else None)


def read_events(
    file: InputFile, times: TimeAttributes, bad: BadLines, advance: Advance
) -> Iterator[EventChunk]:
    """The events of a file; bad ones are noted and left out."""
    if file.is_parquet:
        return _ParquetEvents(file, times, bad).read(advance)
    return _read_json(file, times, bad, advance)


def _read_json(
    file: InputFile, times: TimeAttributes, bad: BadLines, advance: Advance
) -> Iterator[EventChunk]:
    indexes: list[int] = []
    events: list[Event] = []
    for index, (number, line) in enumerate(file.lines(advance)):
        try:
            event = times.event_of(decode_line(line))
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
    """Events as rows of Parquet; a column that holds no values is an error of the whole file."""

    def __init__(self, file: InputFile, times: TimeAttributes, bad: BadLines) -> None:
        self._file = file
        self._times = times
        self._bad = bad
        self._check_columns()

    def _check_columns(self) -> None:
        table = _flat(self._file.schema.empty_table())
        try:
            EventBatch.of(table)
        except EventError as error:
            raise self._file.error(error) from None
        missing = self._times.event_time
        if missing is not None and missing not in table.column_names:
            raise self._file.error(f"there is no column {missing!r}")
        for name in self._times.names & set(table.column_names):
            kind = table.schema.field(name).type
            if not (_is_text(kind) or pa.types.is_timestamp(kind) or pa.types.is_null(kind)):
                raise self._file.error(
                    f"column {name!r}: must be timestamps or strings, not {kind}"
                )

    def read(self, advance: Advance) -> Iterator[EventChunk]:
        for start, table in self._file.tables(CHUNK_EVENTS, advance):
            wrong: dict[int, TidegateError] = {}
            timed = self._timed(_flat(table), wrong)
            _find_wrong(timed, 0, wrong)
            for row in sorted(wrong):
                self._bad.add(self._file, start + row, wrong[row])
            good = np.setdiff1d(np.arange(table.num_rows), np.array(list(wrong), np.int64))
            if len(good):
                taken = timed.take(good) if wrong else timed
                yield EventChunk(good + start, taken, self._times.event_time)

    def _timed(self, table: pa.Table, wrong: dict[int, TidegateError]) -> pa.Table:
        """The table with its times as timestamps; notes the rows where that cannot be."""
        for place, name in enumerate(table.column_names):
            if name not in self._times.names:
                continue
            column: Any = table.column(name)
            if _is_text(column.type):
                parsed = self._parsed(name, column.to_pylist(), wrong)
                column = pa.chunked_array([pa.array(parsed, _TIME_TYPE)])
                table = table.set_column(place, name, column)
            if name == self._times.event_time:
                for row in np.flatnonzero(column.is_null().to_numpy()).tolist():
                    wrong.setdefault(row, self._times.missing())
        return table

    def _parsed(
        self, name: str, texts: list[str | None], wrong: dict[int, TidegateError]
    ) -> list[datetime | None]:
        parsed: list[datetime | None] = []
        for row, text in enumerate(texts):
            time = None
            if text is not None:
                try:
                    time = parse_timestamp(text)
                except BadValueError as error:
                    wrong.setdefault(row, EventError(f"attribute {name!r}: {error}"))
            parsed.append(time)
        return parsed


def _find_wrong(table: pa.Table, start: int, wrong: dict[int, TidegateError]) -> None:
    """Note the rows with a value that cannot be taken; halves find the few there are."""
    try:
        table.validate(full=True)  # strings must be Unicode
        EventBatch.of(table)
        return
    except (pa.ArrowInvalid, EventError) as error:
        if table.num_rows == 1:
            wrong.setdefault(start, EventError(str(error).partition("\n")[0]))
            return
    middle = table.num_rows // 2
    _find_wrong(table.slice(0, middle), start, wrong)
    _find_wrong(table.slice(middle), start + middle, wrong)


def _flat(table: pa.Table) -> pa.Table:
    """The table with the fields of structs as columns of dotted names."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _is_text(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
