"""The event log: an append-only sequence of events in a folder.

The rules that this file lives by:

1. An append is in the log as a whole or not at all, whenever a process or the machine dies.
2. When ``append`` returns, its events are on disk.
3. Offsets are 0, 1, 2, ... without gaps, in the order of the appends.
4. A batch of a producer is in the log at most once.

Theory of operation. Events are first written to files in a folder of their own below ``staging``,
and forced to disk. Then, under a lock, that folder becomes a segment of the log by one rename,
which is atomic; the new name holds the offsets of the segment, its producer and its batch (see
`segments.py`). Readers need no lock, because a segment never changes. A process that dies before
the rename leaves a folder in ``staging``, which a later append removes after some days.

The files are in Arrow's format (see `part_files.py`) rather than lines of JSON, because it keeps
the types of values, lists the attributes in its schema, and goes to Spark without conversion.
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
from tidegate.spark.log.event_columns import chunked, columns_to_events, events_to_columns
from tidegate.spark.log.part_files import (
    PartFile,
    parts_in,
    sync_folder,
    write_durably,
    write_parts,
)
from tidegate.spark.log.segments import OFFSET_MAX, BatchKey, Segment, contiguous_segments

STAGING_AGE_MAX = timedelta(days=7)
"""Staged folders that are older were left by a process that died; the next append removes them."""

_FORMAT = "tidegate event log 1\n"
_FORMAT_FILE, _LOCK_FILE, _STAGING = "format", "lock", "staging"


@dataclass(frozen=True, slots=True)
class LogRecord:
    """An event of a log and its offset; ``event.time`` is its publication time."""

    offset: int
    event: Event


@dataclass(frozen=True, slots=True)
class StagedFolder:
    """Events that are on disk, but not in the log yet: the name of their folder, their number."""

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
        """Append events, all or none, durably; returns their offsets.

        Events without a time are published now. A batch of a ``producer`` that is in the log
        already is not appended again, and its earlier offsets are returned.
        """
        key = BatchKey.of(producer, batch)
        self.create()
        if key is not None:
            # Saves staging the events. `publish` checks it again, under the lock.
            earlier = _offsets_of_batch(self._segments(), key)
            if earlier is not None:
                return earlier
        now = self._clock()
        chunks = chunked(map(Event.of, events))
        staged = self.stage(events_to_columns(chunk, now) for chunk in chunks)
        return self.publish([staged], producer=producer, batch=batch)

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[LogRecord]:
        """The events from one offset up to, but not including, another; by default all."""
        for first, columns in self.read_columns(begin, end):
            for index, event in enumerate(columns_to_events(columns)):
                yield LogRecord(first + index, event)

    def read_columns(
        self, begin: int = 0, end: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As ``read``, in columns (see `event_columns.py`), each batch with its first offset."""
        segments = self._segments()
        log_end = _end_offset(segments)
        end = log_end if end is None else end
        if not 0 <= begin <= end <= log_end:
            raise LogError(
                f"offsets {begin} to {end} were asked for, but {self.path} has 0 to {log_end}"
            )
        return self._columns(segments, begin, end)

    def end_offset(self) -> int:
        """The offset of the next event, which is the number of events in the log."""
        return _end_offset(self._segments())

    def schemas(self, begin: int = 0) -> Iterator[pa.Schema]:
        """The schema of each file that has events from an offset on."""
        for segment in self._segments():
            if segment.end > begin:
                for part in parts_in(self.path / segment.name):
                    yield part.schema()

    def create(self) -> None:
        """Create an empty log in the folder, unless there is one."""
        if (self.path / _FORMAT_FILE).exists():
            self._check_format()
            return
        with self._as_log_errors("written"):
            self.path.mkdir(parents=True, exist_ok=True)
            foreign = set(os.listdir(self.path)) - {_LOCK_FILE, _STAGING, _FORMAT_FILE}
            # Another process may just have created the log, and appended to it. It has written the
            # format file first, so look again whether that exists.
            if foreign and not (self.path / _FORMAT_FILE).exists():
                raise LogError(f"{self.path} is neither an event log nor empty")
            (self.path / _STAGING).mkdir(exist_ok=True)
            with self._locked():
                if not (self.path / _FORMAT_FILE).exists():
                    self._write_format()

    def stage(self, batches: Iterable[pa.RecordBatch]) -> StagedFolder:
        """Write columns of events to disk, for ``publish``; a failure leaves nothing behind."""
        folder = self._new_folder()
        try:
            return StagedFolder(folder.name, write_parts(folder, batches))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def publish(
        self,
        staged: Sequence[StagedFolder],
        *,
        producer: str | None = None,
        batch: int | None = None,
    ) -> range:
        """Append staged events, in this order, as one segment; see ``append``."""
        key = BatchKey.of(producer, batch)
        whole = self._joined(staged)
        with self._as_log_errors("written"), self._locked():
            self._remove_abandoned()
            segments = self._segments_under_lock()
            earlier = None if key is None else _offsets_of_batch(segments, key)
            first = _end_offset(segments)
            if earlier is not None or (key is None and not whole.events):
                self.discard([whole])
                return range(first, first) if earlier is None else earlier
            if whole.events > OFFSET_MAX - first:
                raise LogError(f"{self.path} is full")
            # A batch without events gets a segment too; otherwise it could be appended again with
            # some.
            segment = Segment(first, first + whole.events, key)
            # The moment of the append. All files below are on disk already.
            os.rename(self.path / _STAGING / whole.folder, self.path / segment.name)
            sync_folder(self.path)
            return range(segment.first, segment.end)

    def discard(self, staged: Iterable[StagedFolder]) -> None:
        """Remove staged events that will not be published."""
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
        with self._as_log_errors("read"):
            segments = contiguous_segments(os.listdir(self.path))
            if segments is not None:
                return segments
            # A listing that is made while others append may miss a segment and have a later one.
            with self._locked():
                return self._segments_under_lock()

    def _segments_under_lock(self) -> list[Segment]:
        """The segments, while this process holds the lock and no other can append."""
        segments = contiguous_segments(os.listdir(self.path))
        if segments is None:
            raise LogError(f"{self.path} is damaged: there are segments missing, or too many")
        return segments

    def _joined(self, staged: Sequence[StagedFolder]) -> StagedFolder:
        """Move the part files of several staged folders into one; returns it."""
        parts = [part for each in staged for part in self._staged_parts(each)]
        if len(staged) == 1:
            return staged[0]
        folder = self._new_folder()
        with self._as_log_errors("written"):
            for number, part in enumerate(parts):
                os.rename(part.path, folder / part.name_as(number))
            sync_folder(folder)
        self.discard(staged)
        return StagedFolder(folder.name, sum(part.events for part in parts))

    def _staged_parts(self, staged: StagedFolder) -> list[PartFile]:
        parts = parts_in(self.path / _STAGING / staged.folder)
        if sum(part.events for part in parts) != staged.events:
            raise LogError(
                f"{self.path / _STAGING / staged.folder} does not hold the events staged there"
            )
        return parts

    def _new_folder(self) -> Path:
        folder = self.path / _STAGING / uuid.uuid4().hex
        with self._as_log_errors("written"):
            folder.mkdir(parents=True)
        return folder

    def _remove_abandoned(self) -> None:
        """Remove staged folders that processes have left when they died."""
        oldest = (self._clock() - STAGING_AGE_MAX).timestamp()
        for entry in os.scandir(self.path / _STAGING):
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)

    def _check_format(self) -> None:
        try:
            text = (self.path / _FORMAT_FILE).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise LogError(f"{self.path} is not an event log; an append creates one") from None
        except OSError as error:
            raise LogError(f"{self.path} cannot be read: {error.strerror}") from None
        if text != _FORMAT:
            raise LogError(
                f"{self.path / _FORMAT_FILE} is damaged, or from another version of Tidegate"
            )

    def _write_format(self) -> None:
        temporary = self.path / _STAGING / uuid.uuid4().hex
        write_durably(temporary, _FORMAT.encode())
        os.rename(temporary, self.path / _FORMAT_FILE)
        sync_folder(self.path)
        sync_folder(self.path.absolute().parent)  # which holds the name of the log's folder

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the log; the system releases it even if the process is killed."""
        descriptor = os.open(self.path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _as_log_errors(self, verb: str) -> Iterator[None]:
        """Turn errors of the file system into a LogError that names the log."""
        try:
            yield
        except OSError as error:
            raise LogError(f"{self.path} cannot be {verb}: {error}") from error


def _end_offset(segments: Sequence[Segment]) -> int:
    return segments[-1].end if segments else 0


def _offsets_of_batch(segments: Iterable[Segment], key: BatchKey) -> range | None:
    """The offsets of a batch; None if it is not in the log."""
    for segment in segments:
        if segment.key == key:
            return range(segment.first, segment.end)
    return None
