"""Part files: the events of an append, or a chunk of them, in one Arrow file.

The name of the file is ``<number>-<events>-<checksum>.arrow``, so the folder's listing holds what
each file must contain, and damage to any byte is detected. It is an ordinary Arrow IPC file, which
other tools can open too. It is written once, forced to disk, and never changed.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa

from tidegate.errors import LogError
from tidegate.spark.log.event_columns import TIME_TYPE, VALUE_TYPES

BATCH_EVENTS_MAX: Final = 10_000
"""Spark is fastest with Arrow batches of this size, so they are stored in this size."""

PART_EVENTS_MAX: Final = 50_000
PART_BYTES_MAX: Final = 64 * 2**20
"""Limits of a part, because a reader loads a whole part to get at one event."""

PARTS_MAX: Final = 10**6

FILE_BYTES_MAX = 2**30
_NAME = re.compile(r"(\d{6})-(\d{1,9})-([0-9a-f]{8})\.arrow", re.ASCII)


@dataclass(frozen=True, slots=True)
class PartFile:
    """A part file, described by its name."""

    path: Path
    number: int
    events: int
    checksum: int

    @classmethod
    def at(cls, path: Path) -> PartFile:
        """The part file at a path."""
        fields = _NAME.fullmatch(path.name)
        if fields is None:
            raise LogError(f"{path} is not a part of an event log")
        number, events, checksum = fields.groups()
        return cls(path, int(number), int(events), int(checksum, 16))

    def name_as(self, number: int) -> str:
        """The name of the file as the part with this number."""
        if number >= PARTS_MAX:
            raise LogError(f"an append has more than {PARTS_MAX} parts; divide it into several")
        return f"{number:06}-{self.events}-{self.checksum:08x}.arrow"

    def batches(self) -> list[pa.RecordBatch]:
        """The columns of the events; raises LogError if the file is damaged."""
        content = self._content()
        if zlib.crc32(content) != self.checksum:
            raise LogError(f"{self.path} is damaged: its checksum is not the one in its name")
        try:
            with pa.ipc.open_file(pa.py_buffer(content)) as file:
                _check_types(file.schema)
                batches = [file.get_batch(i) for i in range(file.num_record_batches)]
        except (pa.ArrowException, TypeError) as error:
            raise LogError(f"{self.path} is damaged: {error}") from None
        if sum(batch.num_rows for batch in batches) != self.events:
            raise LogError(f"{self.path} is damaged: it does not hold {self.events} events")
        return batches

    def schema(self) -> pa.Schema:
        """The columns of the file, without reading the events."""
        try:
            # Mapped, because the schema is a few bytes and the checksum is not verified here.
            with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as file:
                _check_types(file.schema)
                return file.schema
        except (pa.ArrowException, OSError, TypeError) as error:
            raise LogError(f"{self.path} is damaged: {error}") from None

    def _content(self) -> bytes:
        # Read as a whole and not mapped, because the checksum needs every byte.
        try:
            size = self.path.stat().st_size
            if size <= FILE_BYTES_MAX:
                return self.path.read_bytes()
        except OSError as error:
            raise LogError(f"{self.path} cannot be read: {error.strerror}") from None
        raise LogError(f"{self.path} has {size} bytes; at most {FILE_BYTES_MAX} are read")


def parts_in(folder: Path) -> list[PartFile]:
    """The parts in a folder, in the order of their numbers; raises LogError if one is missing."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise LogError(f"{folder} cannot be read: {error.strerror}") from None
    parts = [PartFile.at(folder / name) for name in names]
    for number, part in enumerate(parts):
        if part.number != number:
            raise LogError(f"{folder} is damaged: part {number} is missing, or there are two")
    return parts


def write_parts(folder: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write columns of events to part files in a folder, durably; returns the number of events."""
    events = 0
    for number, chunk in enumerate(_chunked(batches)):
        _write_part(folder, number, chunk)
        events += sum(batch.num_rows for batch in chunk)
    sync_folder(folder)
    return events


def write_durably(path: Path, content: bytes | pa.Buffer) -> None:
    """Write a new file and force it to disk."""
    try:
        with open(path, "xb") as file:  # "x": an existing file is never overwritten
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LogError(f"{path} cannot be written: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Force the list of a folder's files to disk; without it a new name may be lost in a crash."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LogError(f"{folder} cannot be written: {error.strerror}") from None


def _write_part(folder: Path, number: int, batches: list[pa.RecordBatch]) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            for start in range(0, batch.num_rows, BATCH_EVENTS_MAX):
                writer.write_batch(batch.slice(start, BATCH_EVENTS_MAX))
    content = sink.getvalue()
    if len(content) > FILE_BYTES_MAX:  # reading it would be refused
        raise LogError(
            f"some events take {len(content)} bytes; at most {FILE_BYTES_MAX} are accepted"
        )
    events = sum(batch.num_rows for batch in batches)
    part = PartFile(folder, number, events, zlib.crc32(content))
    write_durably(folder / part.name_as(number), content)


def _chunked(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """The batches of each part: with the same columns, and within the limits of a part."""
    chunk: list[pa.RecordBatch] = []
    events = size = 0
    for batch in chain.from_iterable(map(_split, batches)):
        full = events + batch.num_rows > PART_EVENTS_MAX or size + batch.nbytes > PART_BYTES_MAX
        if chunk and (full or not batch.schema.equals(chunk[0].schema)):
            yield chunk
            chunk, events, size = [], 0, 0
        chunk.append(batch)
        events += batch.num_rows
        size += batch.nbytes
    if chunk:
        yield chunk


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch divided so that no chunk of it is much larger than a part may be."""
    chunks = 1 + batch.nbytes // PART_BYTES_MAX
    rows = max(1, batch.num_rows // chunks)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _check_types(schema: pa.Schema) -> None:
    if not len(schema) or schema.field(0).type != TIME_TYPE:
        raise TypeError("the first column does not hold times")
    for field in schema:
        if field.type not in VALUE_TYPES:
            raise TypeError(f"column {field.name!r} has the type {field.type}")
