"""Snapshot files: named sections (arrays, texts, notes) in one memory-mapped Arrow file.

The file has one record batch of one row. Each section is a column whose only value is a list: so
sections may differ in length, and Arrow aligns each of them. Notes are JSON in the metadata of the
schema.

Read back, the arrays are views of a private mapping of the file (copy-on-write). Opening copies
nothing and reads only the pages that are used, processes that map the same file share them, and a
process that writes to an array, as an update in place does, gets pages of its own and leaves the
file as it is.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import SnapshotError

FORMAT = "tidegate-snapshot-4"
"""Changes whenever a section, or what is in one, does: a file of another format is refused."""

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
        notes: dict[bytes | str, bytes | str] = {
            "format": FORMAT,
            "notes": json.dumps(self._notes),
        }
        schema = pa.schema(
            [(name, column.type) for name, column in self._columns.items()], metadata=notes
        )
        batch = pa.record_batch(list(self._columns.values()), schema=schema)
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        try:
            with open(temporary, "wb") as file:
                with pa.ipc.new_file(file, schema) as writer:
                    writer.write_batch(batch)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError as error:
            raise SnapshotError(f"{path}: {error.strerror or error}") from None


def _as_list(values: Any) -> Any:
    offsets = pa.array([0, len(values)], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, values)


class SectionReader:
    """The sections of a file, mapped into memory; raises SnapshotError if it is no snapshot."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        try:
            with open(path, "rb") as file:
                # private: pages are shared with other processes until they are written to
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._buffer = pa.py_buffer(self._map)
            reader = pa.ipc.open_file(self._buffer)
            metadata = reader.schema.metadata or {}
            if metadata.get(b"format") != FORMAT.encode():
                raise SnapshotError(f"{path}: is no snapshot of this version of Tidegate")
            self._batch = reader.get_batch(0)
            self._notes = json.loads(metadata[b"notes"])
        except OSError as error:
            raise SnapshotError(f"{path}: {error.strerror or error}") from None
        except (pa.ArrowException, ValueError, KeyError):
            raise self._damaged() from None

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

    def _column(self, name: str) -> Any:
        if name not in self._batch.schema.names:
            raise self._damaged()
        column: Any = self._batch.column(name)
        return column.values
