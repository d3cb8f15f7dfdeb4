"""Part files: the events of an append, or a piece of them, in one Arrow file.

The name of the file is ``<number>-<events>-<checksum>.arrow``, so a listing of the folder says what
each must hold, and damage to any byte shows. The file is a plain one of Arrow's, which other tools
can open too. It is written once, forced to disk, and never changed.
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
"""Spark is quickest with Arrow batches of this size; so they are stored like that."""

PART_EVENTS_MAX: Final = 50_000
PART_BYTES_MAX: Final = 64 * 2**20
"""A part is closed once it has so much; no reader has to take in more to get at one event."""

PARTS_MAX: Final = 10**6

_FILE_BYTES_MAX = 2**30
_NAME = re.compile(r"(\d{6})-(\d{1,9})-([0-9a-f]{8})\.arrow", re.ASCII)


@dataclass(frozen=True, slots=True)
class PartFile:
    """A part file, as its name says."""

    path: Path
    number: int
    events: int
    checksum: int

    @classmethod
    def at(cls, path: Path) -> PartFile:
        found = _NAME.fullmatch(path.name)
        if found is None:
            raise LogError(f"{path} is not a part of a log of events")
        number, events, checksum = found.groups()
        return cls(path, int(number), int(events), int(checksum, 16))

    def named(self, number: int) -> str:
        """The name that the file has as another part of an append."""
        if number >= PARTS_MAX:
            raise LogError(f"an append has more than {PARTS_MAX} parts; make several of it")
        return f"{number:06}-{self.events}-{self.checksum:08x}.arrow"

    def batches(self) -> list[pa.RecordBatch]:
        """What is in the file; raises LogError if it is not what was written."""
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
            with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as file:
                _check_types(file.schema)
                return file.schema
        except (pa.ArrowException, OSError, TypeError) as error:
            raise LogError(f"{self.path} is damaged: {error}") from None

    def _content(self) -> bytes:
        try:
            size = self.path.stat().st_size
            if size <= _FILE_BYTES_MAX:
                return self.path.read_bytes()
        except OSError as error:
            raise LogError(f"{self.path} cannot be read: {error.strerror}") from None
        raise LogError(f"{self.path} has {size} bytes; at most {_FILE_BYTES_MAX} are read")


def parts_in(folder: Path) -> list[PartFile]:
    """The parts in a folder, in order; raises LogError if one is missing."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise LogError(f"{folder} cannot be read: {error.strerror}") from None
    parts = [PartFile.at(folder / name) for name in names]
    for number, part in enumerate(parts):
        if part.number != number:
            raise LogError(f"{folder} is damaged: part {number} is not there, or twice")
    return parts


def write_parts(folder: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write columns of events into files of a folder, durably; gives the number of events."""
    events = 0
    for number, piece in enumerate(_pieces(batches)):
        _write_part(folder, number, piece)
        events += sum(batch.num_rows for batch in piece)
    sync_folder(folder)
    return events


def write_durably(path: Path, content: bytes | pa.Buffer) -> None:
    """Write a file that is not there yet, and force it to disk."""
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LogError(f"{path} cannot be written: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Force to disk which files a folder has."""
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
    if len(content) > _FILE_BYTES_MAX:  # it could not be read
        raise LogError(
            f"some events take {len(content)} bytes; at most {_FILE_BYTES_MAX} are taken"
        )
    events = sum(batch.num_rows for batch in batches)
    part = PartFile(folder, number, events, zlib.crc32(content))
    write_durably(folder / part.named(number), content)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches that go into one file: of the same columns, and not too many."""
    piece: list[pa.RecordBatch] = []
    events = size = 0
    for batch in chain.from_iterable(map(_split, batches)):
        full = events + batch.num_rows > PART_EVENTS_MAX or size + batch.nbytes > PART_BYTES_MAX
        if piece and (full or not batch.schema.equals(piece[0].schema)):
            yield piece
            piece, events, size = [], 0, 0
        piece.append(batch)
        events += batch.num_rows
        size += batch.nbytes
    if piece:
        yield piece


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in slices that are not much larger than a part may be."""
    slices = 1 + batch.nbytes // PART_BYTES_MAX
    rows = max(1, batch.num_rows // slices)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _check_types(schema: pa.Schema) -> None:
    if not len(schema) or schema.field(0).type != TIME_TYPE:
        raise TypeError("the first column does not hold times")
    for field in schema:
        if field.type not in VALUE_TYPES:
            raise TypeError(f"column {field.name!r} is of {field.type}")
