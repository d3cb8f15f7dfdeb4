"""Input files: JSON Lines or Parquet, and how a place in one is named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import TidegateError
from tidegate.matching.json_lines import filled_lines

STDIN = "-"

Advance = Callable[[int], None]
"""Told how much more of a file has been read, for the progress bar."""


class InputFile:
    """A file to be read: Parquet if its name ends in .parquet, else JSON Lines; `-` is stdin."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "stdin" if path == STDIN else path
        self.is_parquet = path.endswith(".parquet")

    def place(self, number: int) -> str:
        """How a line (from 1) or a row of Parquet (from 0) is named in a message."""
        return f"{self.name}, {'row' if self.is_parquet else 'line'} {number}"

    def error(self, reason: object) -> TidegateError:
        """An error of the file as a whole; the first line of the reason says enough."""
        return TidegateError(f"{self.name}: {str(reason).partition(chr(10))[0]}")

    @property
    def extent(self) -> int:
        """How much there is to read, in what ``Advance`` counts; 0 where that is not known."""
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
        """The lines that are not blank, each with its number in the file."""

        def told(stream: BinaryIO) -> Iterator[bytes]:
            for line in stream:
                advance(len(line))
                yield line

        with self._opened() as stream:
            yield from filled_lines(told(stream))

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
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
        """The tables of a Parquet file, each with the number of its first row."""
        start = 0
        with self.parquet() as file:
            for batch in file.iter_batches(rows_max):
                yield start, pa.Table.from_batches([batch])
                start += batch.num_rows
                advance(batch.num_rows)

    def _unreadable(self, error: OSError) -> TidegateError:
        return self.error(f"cannot be read: {error.strerror or error}")
