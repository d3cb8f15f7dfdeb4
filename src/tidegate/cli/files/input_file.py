"""Input files: JSON Lines or Parquet; their lines and rows are named in error messages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import TidegateError
from tidegate.matching.json_lines import non_blank_lines

STDIN = "-"

Advance = Callable[[int], None]
"""Callback of the progress bar; takes the bytes of JSON Lines or the rows of Parquet that were read
since the last call."""


class InputFile:
    """A file to be read: Parquet if its name ends in .parquet, else JSON Lines; `-` is stdin."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "stdin" if path == STDIN else path
        self.is_parquet = path.endswith(".parquet")

    def location(self, number: int) -> str:
        """The name of a line (from 1) or a row of Parquet (from 0) in an error message."""
        return f"{self.name}, {'row' if self.is_parquet else 'line'} {number}"

    def error(self, reason: object) -> TidegateError:
        """An error of the whole file; of a reason with several lines, as Arrow has, the first."""
        return TidegateError(f"{self.name}: {str(reason).partition(chr(10))[0]}")

    def is_same_file(self, path: str) -> bool:
        """Whether a path leads to this very file, by whatever links."""
        try:
            return self.path != STDIN and Path(self.path).samefile(path)
        except OSError:  # one of them is not there
            return False

    @property
    def size(self) -> int:
        """The size of the file, in the unit of ``Advance``; 0 if it is not known."""
        if self.path == STDIN:
            return 0
        if self.is_parquet:
            with self.parquet() as file:
                return file.metadata.num_rows
        try:
            return Path(self.path).stat().st_size
        except OSError as error:
            raise self._unreadable(error) from None

    def lines(self, advance: Advance) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank, each with its number in the file, from 1."""

        def with_progress(stream: BinaryIO) -> Iterator[bytes]:
            for line in stream:
                advance(len(line))
                yield line

        with self._open() as stream:
            yield from non_blank_lines(with_progress(stream))

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self.path == STDIN:
            yield sys.stdin.buffer
            return
        try:
            with open(self.path, "rb") as stream:
                yield stream
        except OSError as error:
            raise self._unreadable(error) from None

    @contextmanager
    def parquet(self) -> Iterator[pq.ParquetFile]:
        """The file, opened as Parquet."""
        try:
            with open(self.path, "rb") as stream:
                yield pq.ParquetFile(stream)
        except OSError as error:
            raise self._unreadable(error) from None
        except pa.ArrowException as error:
            raise self.error(f"cannot be read as Parquet: {error}") from None

    @property
    def schema(self) -> pa.Schema:
        """The columns of a Parquet file."""
        with self.parquet() as file:
            return file.schema_arrow

    def tables(self, rows_max: int, advance: Advance) -> Iterator[tuple[int, pa.Table]]:
        """The rows of a Parquet file in tables, each with the number of its first row."""
        start = 0
        with self.parquet() as file:
            for batch in file.iter_batches(rows_max):
                yield start, pa.Table.from_batches([batch])
                start += batch.num_rows
                advance(batch.num_rows)

    def _unreadable(self, error: OSError) -> TidegateError:
        return self.error(f"cannot be read: {error.strerror or error}")
