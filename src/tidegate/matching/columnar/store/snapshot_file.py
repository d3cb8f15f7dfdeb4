"""Named arrays in one Arrow file that can be memory-mapped.

The file has one record batch of one row; each column holds one array as a list. Read back, the
arrays are views of a private mapping of the file: nothing is copied when it is opened, several
processes share its pages, and a process that writes to an array gets pages of its own.
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

FORMAT = "tidegate-snapshot-3"

Array = npt.NDArray[Any]


class SectionWriter:
    """Collects arrays and writes them as one file."""

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
        """Add something small that JSON can hold."""
        self._notes[name] = value

    def write(self, path: str | Path) -> None:
        """Write the file, under another name first so that no reader sees half of it."""
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
    """The arrays of a file, mapped into memory."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        try:
            with open(path, "rb") as file:
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
        """An array of numbers, which may be written to."""
        values = self._column(name)
        dtype = np.dtype(values.type.to_pandas_dtype())
        data = values.buffers()[1]
        if data is None or not len(values):
            return np.zeros(0, dtype)
        offset = data.address - self._buffer.address + values.offset * dtype.itemsize
        return np.frombuffer(self._map, dtype, len(values), offset)

    def texts(self, name: str) -> Any:
        """A list of strings, as an Arrow array."""
        return self._column(name)

    def note(self, name: str) -> Any:
        """Something small."""
        if name not in self._notes:
            raise self._damaged()
        return self._notes[name]

    def _column(self, name: str) -> Any:
        if name not in self._batch.schema.names:
            raise self._damaged()
        column: Any = self._batch.column(name)
        return column.values
