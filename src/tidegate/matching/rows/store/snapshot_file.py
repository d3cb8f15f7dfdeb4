"""Snapshot files: named sections (arrays, texts, notes) in one memory-mapped Arrow file.

The Arrow file has one record batch of one row. Each section is a column whose only value is a list:
so sections may differ in length, and Arrow aligns each of them. Notes are JSON in the metadata of
the schema. Behind it comes a trailer (`TRAILER`) with its length and checksum.

A file that is damaged anywhere is refused when it is opened. Kernels follow the offsets in sections
without a check, so one flipped bit would crash the process or give wrong answers. The checksum is
of the whole file, not of each section when it is used: CRC-32 reads several gigabytes a second, a
snapshot of a million subscriptions takes about 0.2 s. It protects against damage, not against
forgery: who can write a snapshot can make its readers do anything.

Read back, the arrays are views of a private mapping of the file (copy-on-write). Opening copies
nothing and reads only the pages that are used, processes that map the same file share them, and a
process that writes to an array, as an update in place does, gets pages of its own and leaves the
file as it is. A mapped file may be replaced or unlinked, but not be cut short or overwritten: the
operating system kills a process that reads a page behind the end of its file, and nothing in it can
prevent that. `SectionWriter` never does so. Where others may, the file is read instead: then what
happens to it later does not matter, and one that is cut short meanwhile is refused.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import SnapshotError

FORMAT = b"tidegate snapshot 7".ljust(24)
"""Changes whenever a section, or what is in one, does: a file of another format is refused."""
FAMILY = b"tidegate snapshot "
"""What the formats of all versions begin with."""
ARROW_MAGIC = b"ARROW1"
"""What an Arrow file, and so a snapshot before format 5, ends with."""

TRAILER = struct.Struct("<QL4x24s")
"""Length of the Arrow file in bytes, its CRC-32, four bytes of zeros, FORMAT."""

Array = npt.NDArray[Any]


class SectionWriter:
    """Collects sections and writes them to one file."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._notes: dict[str, Any] = {}

    def array(self, name: str, values: Array) -> None:
        """Add an array of numbers."""
        flat = pa.array(np.ascontiguousarray(values).ravel())
        self._columns[name] = _as_list(flat)

    def texts(self, name: str, values: Sequence[str | None]) -> None:
        """Add a list of strings."""
        self._columns[name] = _as_list(pa.array(values, pa.large_string()))

    def note(self, name: str, value: object) -> None:
        """Add a small value that JSON can hold."""
        self._notes[name] = value

    def write(self, path: str | Path) -> None:
        """Write the file; under another name first, so that no reader ever sees half of it.

        Processes that have mapped an older file of this name keep it: it is replaced, not
        overwritten.
        """
        notes: dict[bytes | str, bytes | str] = {"notes": json.dumps(self._notes)}
        schema = pa.schema(
            [(name, column.type) for name, column in self._columns.items()], metadata=notes
        )
        batch = pa.record_batch(list(self._columns.values()), schema=schema)
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        try:
            with open(temporary, "wb") as file:
                summed = _Checksummed(file)
                with pa.ipc.new_file(summed, schema) as writer:
                    writer.write_batch(batch)
                file.write(TRAILER.pack(summed.length, summed.checksum, FORMAT))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError as error:
            raise SnapshotError(f"{path}: {error.strerror or error}") from None


class _Checksummed(io.RawIOBase):
    """Passes on what is written to a file, and has its length and checksum."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.length = 0
        self.checksum = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        self.length += self._file.write(data)
        return memoryview(data).nbytes


def _as_list(values: Any) -> Any:
    offsets = pa.array([0, len(values)], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, values)


class SectionReader:
    """The sections of a file, mapped into memory or read; raises SnapshotError if it is no
    snapshot."""

    def __init__(self, path: str | Path, *, mapped: bool = True) -> None:
        self._path = path
        self._map: mmap.mmap | bytearray
        try:
            with open(path, "rb") as file:
                if mapped:
                    # private: pages are shared with other processes until they are written to
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
                else:
                    self._map = bytearray(os.fstat(file.fileno()).st_size)
                    del self._map[file.readinto(self._map) :]
            self._buffer = pa.py_buffer(self._map).slice(0, self._checked_length())
            reader = pa.ipc.open_file(self._buffer)
            self._batch = reader.get_batch(0)
            self._notes = json.loads((reader.schema.metadata or {})[b"notes"])
        except OSError as error:
            raise SnapshotError(f"{path}: {error.strerror or error}") from None
        except (pa.ArrowException, ValueError, KeyError):
            raise self._damaged() from None

    def _checked_length(self) -> int:
        """The length of the Arrow file; raises SnapshotError unless all bytes are as written."""
        length = len(self._map) - TRAILER.size
        if length < 0:
            raise self._damaged()
        written, checksum, format = TRAILER.unpack_from(self._map, length)
        if format != FORMAT and (format.startswith(FAMILY) or self._map[-6:] == ARROW_MAGIC):
            raise SnapshotError(f"{self._path}: is no snapshot of this version of Tidegate")
        # packed again, because the zeros are not unpacked
        trailer = TRAILER.pack(written, checksum, format)
        if format != FORMAT or written != length or trailer != self._map[length:]:
            raise self._damaged()
        if zlib.crc32(memoryview(self._map)[:length]) != checksum:
            raise SnapshotError(f"{self._path}: is damaged: its checksum is wrong")
        return length

    def _damaged(self) -> SnapshotError:
        return SnapshotError(f"{self._path}: is no snapshot, or a damaged one")

    def array(self, name: str) -> Array:
        """An array of numbers, a view of the mapping; writes to it do not reach the file."""
        values = self._column(name)
        dtype = np.dtype(values.type.to_pandas_dtype())
        data = values.buffers()[1]
        if data is None or not len(values):
            return np.zeros(0, dtype)
        # Arrow would hand out a read-only view, so the array is made from the mapping itself.
        offset = data.address - self._buffer.address + values.offset * dtype.itemsize
        return np.frombuffer(self._map, dtype, len(values), offset)

    def texts(self, name: str) -> Any:
        """A list of strings, as an Arrow array."""
        return self._column(name)

    def note(self, name: str) -> Any:
        """A note."""
        if name not in self._notes:
            raise self._damaged()
        return self._notes[name]

    def optional_note(self, name: str) -> Any:
        """A note that not every file has; None if this one has not."""
        return self._notes.get(name)

    def _column(self, name: str) -> Any:
        if name not in self._batch.schema.names:
            raise self._damaged()
        column: Any = self._batch.column(name)
        return column.values
