"""A log of events in a folder: it only grows, and what it took stays.

The rules that it lives by:

1. An append is in the log wholly or not at all, whenever a process or the machine dies.
2. What ``append`` returned from is on the disk.
3. Offsets are 0, 1, 2, ... without gaps, in the order in which appends were made.
4. A batch of a producer is in the log at most once.

How: events are first written to files in a folder of their own below ``staging``, and forced to
disk. Then, holding a lock, that folder gets its place in the log by one rename, which is atomic;
the new name says its offsets, and its producer and batch (see segments.py). Readers need no lock,
for what has a place never changes. Whoever dies before the rename leaves a folder in ``staging``,
which is swept away some days later.

Arrow files (see part_files.py) rather than lines of JSON, because they keep the kinds of values
apart as they are, say in their head which attributes they have, and go to Spark as they are.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from tidegate.errors import LogError
from tidegate.language.events import Event
from tidegate.matching.batches import wall_clock
from tidegate.spark.log.event_columns import chunked, columns_of, events_of
from tidegate.spark.log.part_files import (
    PartFile,
    parts_in,
    sync_folder,
    write_durably,
    write_parts,
)
from tidegate.spark.log.segments import OFFSET_MAX, BatchKey, Segment, in_order

STAGING_AGE_MAX = timedelta(days=7)
"""What was staged longer ago is taken for left behind, and swept away by the next append."""

_FORMAT = "tidegate event log 1\n"
_FORMAT_FILE, _LOCK_FILE, _STAGING = "format", "lock", "staging"


@dataclass(frozen=True, slots=True)
class LogRecord:
    """An event of a log, with its offset; ``event.time`` is when it was published."""

    offset: int
    event: Event


@dataclass(frozen=True, slots=True)
class Staged:
    """Events that are on disk, but not yet in the log: the name of their folder."""

    folder: str
    events: int


class EventLog:
    """An append-only log of events in a folder, for any number of processes at once.

    >>> import tempfile
    >>> log = EventLog(tempfile.mkdtemp())
    >>> log.append([{"symbol": "IBM", "price": 9.5}, {"symbol": "SAP"}])
    range(0, 2)
    >>> log.append([{"symbol": "NYSE"}], producer="desk-7", batch=0)
    range(2, 3)
    >>> log.append([{"symbol": "NYSE"}], producer="desk-7", batch=0)  # again: nothing happens
    range(2, 3)
    >>> [record.event.attributes["symbol"] for record in log.read(1)]
    ['SAP', 'NYSE']
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Callable[[], datetime] = wall_clock
    ) -> None:
        self.path = Path(path)
        self._clock = clock

    def append(
        self,
        events: Iterable[Event | Mapping[str, object]],
        *,
        producer: str | None = None,
        batch: int | None = None,
    ) -> range:
        """Put events at the end of the log, all or none, durably; gives their offsets.

        Events without a time are published now. With ``producer`` and ``batch``, a batch that is
        in the log already is not taken again, and its earlier offsets are given.
        """
        key = BatchKey.of(producer, batch)
        self.create()
        if key is not None:
            earlier = _find(self._segments(), key)
            if earlier is not None:
                return earlier
        now = self._clock()
        chunks = chunked(map(Event.of, events))
        staged = self.stage(columns_of(chunk, now) for chunk in chunks)
        return self.publish([staged], producer=producer, batch=batch)

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[LogRecord]:
        """The events from one offset up to, but without, another, or as many as there are now."""
        for first, columns in self.read_columns(begin, end):
            for index, event in enumerate(events_of(columns)):
                yield LogRecord(first + index, event)

    def read_columns(
        self, begin: int = 0, end: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As ``read``, in columns (see event_columns.py), each batch with its first offset."""
        segments = self._segments()
        log_end = _end(segments)
        end = log_end if end is None else end
        if not 0 <= begin <= end <= log_end:
            raise LogError(
                f"offsets {begin} to {end} were asked for, but {self.path} has 0 to {log_end}"
            )
        return self._columns(segments, begin, end)

    def end_offset(self) -> int:
        """The offset that the next event will have, which is how many there are."""
        return _end(self._segments())

    def schemas(self, begin: int = 0) -> Iterator[pa.Schema]:
        """The columns that there are from an offset on, once for each file of them."""
        for segment in self._segments():
            if segment.end > begin:
                for part in parts_in(self.path / segment.name):
                    yield part.schema()

    def create(self) -> None:
        """Make an empty log in the folder, unless there is one."""
        if (self.path / _FORMAT_FILE).exists():
            self._check_format()
            return
        with self._reporting("written"):
            self.path.mkdir(parents=True, exist_ok=True)
            foreign = set(os.listdir(self.path)) - {_LOCK_FILE, _STAGING, _FORMAT_FILE}
            # Others may just have made it, and appended; they made this file first.
            if foreign and not (self.path / _FORMAT_FILE).exists():
                raise LogError(f"{self.path} is not a log of events, and not empty either")
            (self.path / _STAGING).mkdir(exist_ok=True)
            with self._locked():
                if not (self.path / _FORMAT_FILE).exists():
                    self._write_format()

    def stage(self, batches: Iterable[pa.RecordBatch]) -> Staged:
        """Write columns of events to disk, for ``publish``; if that fails, nothing is left."""
        folder = self._new_folder()
        try:
            return Staged(folder.name, write_parts(folder, batches))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def publish(
        self, staged: Sequence[Staged], *, producer: str | None = None, batch: int | None = None
    ) -> range:
        """Append what was staged, in this order, as one; see ``append``."""
        key = BatchKey.of(producer, batch)
        whole = self._joined(staged)
        with self._reporting("written"), self._locked():
            self._sweep()
            segments = self._segments_at_rest()
            earlier = None if key is None else _find(segments, key)
            first = _end(segments)
            if earlier is not None or (key is None and not whole.events):
                self.discard([whole])
                return range(first, first) if earlier is None else earlier
            if whole.events > OFFSET_MAX - first:
                raise LogError(f"{self.path} is full")
            # A batch without events is noted too, or it could come again with some.
            segment = Segment(first, first + whole.events, key)
            os.rename(self.path / _STAGING / whole.folder, self.path / segment.name)
            sync_folder(self.path)
            return range(segment.first, segment.end)

    def discard(self, staged: Iterable[Staged]) -> None:
        """Remove what was staged and will not be published."""
        for each in staged:
            shutil.rmtree(self.path / _STAGING / each.folder, ignore_errors=True)

    def _columns(
        self, segments: list[Segment], begin: int, end: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        start = max(0, bisect_right(segments, begin, key=lambda segment: segment.first) - 1)
        for segment in segments[start:]:
            if segment.first >= end:
                break
            if segment.end > begin:
                yield from segment.batches(self.path, begin, end)

    def _segments(self) -> list[Segment]:
        self._check_format()
        with self._reporting("read"):
            found = in_order(os.listdir(self.path))
            if found is not None:
                return found
            # A listing made while others append may have a later segment and not an earlier one.
            with self._locked():
                return self._segments_at_rest()

    def _segments_at_rest(self) -> list[Segment]:
        """The segments, while nobody else can append."""
        found = in_order(os.listdir(self.path))
        if found is None:
            raise LogError(f"{self.path} is damaged: there are segments missing, or too many")
        return found

    def _joined(self, staged: Sequence[Staged]) -> Staged:
        """The parts of several staged folders in one."""
        parts = [part for each in staged for part in self._staged_parts(each)]
        if len(staged) == 1:
            return staged[0]
        folder = self._new_folder()
        with self._reporting("written"):
            for number, part in enumerate(parts):
                os.rename(part.path, folder / part.named(number))
            sync_folder(folder)
        self.discard(staged)
        return Staged(folder.name, sum(part.events for part in parts))

    def _staged_parts(self, staged: Staged) -> list[PartFile]:
        parts = parts_in(self.path / _STAGING / staged.folder)
        if sum(part.events for part in parts) != staged.events:
            raise LogError(f"{self.path / _STAGING / staged.folder} is not what was staged there")
        return parts

    def _new_folder(self) -> Path:
        folder = self.path / _STAGING / uuid.uuid4().hex
        with self._reporting("written"):
            folder.mkdir(parents=True)
        return folder

    def _sweep(self) -> None:
        """Remove what processes that died have left behind."""
        oldest = (self._clock() - STAGING_AGE_MAX).timestamp()
        for entry in os.scandir(self.path / _STAGING):
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)

    def _check_format(self) -> None:
        try:
            found = (self.path / _FORMAT_FILE).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise LogError(f"{self.path} is not a log of events; an append makes one") from None
        except OSError as error:
            raise LogError(f"{self.path} cannot be read: {error.strerror}") from None
        if found != _FORMAT:
            raise LogError(
                f"{self.path / _FORMAT_FILE} is damaged, or of another version of Tidegate"
            )

    def _write_format(self) -> None:
        temporary = self.path / _STAGING / uuid.uuid4().hex
        write_durably(temporary, _FORMAT.encode())
        os.rename(temporary, self.path / _FORMAT_FILE)
        sync_folder(self.path)
        sync_folder(self.path.absolute().parent)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the log; it is given back even by a process that is killed."""
        descriptor = os.open(self.path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        """Say of an error of the file system which log it hit."""
        try:
            yield
        except OSError as error:
            raise LogError(f"{self.path} cannot be {what}: {error}") from error


def _end(segments: Sequence[Segment]) -> int:
    return segments[-1].end if segments else 0


def _find(segments: Iterable[Segment], key: BatchKey) -> range | None:
    """Where a batch stands, if it is in the log."""
    for segment in segments:
        if segment.key == key:
            return range(segment.first, segment.end)
    return None
