"""The file of matches: ordered by event, then by id of the subscription, and written atomically.

A command finds a bad line or an error only after it has written many matches, and a file that ends
in the middle looks like a whole one. So the matches go to a temporary file first; only when the
command has succeeded does it replace the output file, or is it copied to stdout.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from tidegate.cli.files.input_file import InputFile
from tidegate.errors import TidegateError
from tidegate.matching.batches import Matches

STDOUT = "-"
CHUNK_MATCHES = 1 << 20
"""Number of matches that are written at once, and the size of a row group in Parquet."""

_EVENT: Any = pa.field("event", pa.int64())
_SUBSCRIPTION: Any = pa.field("subscription", pa.string())
_SCHEMA = pa.schema([_EVENT, _SUBSCRIPTION])
_TEXT = pa.large_string()
_JSON_LINES = (".jsonl", ".ndjson", ".json", ".txt")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class OrderedMatches:
    """Matches ordered by event, then by id of the subscription."""

    events: npt.NDArray[np.int64]
    """The index of the event of each match."""
    id_numbers: npt.NDArray[np.int64]
    """The position of each match's id in ``ids``."""
    ids: Any
    """An Arrow array of the distinct ids, sorted."""

    @classmethod
    def of(cls, matches: Matches) -> OrderedMatches:
        """Sort matches."""
        # Sorting integers is much faster than sorting pairs of an integer and a string: only the
        # distinct ids are sorted as strings, and a key has the event and the rank of the id.
        ids, id_numbers = _distinct(matches.subscriptions)
        order = pc.sort_indices(ids).to_numpy()  # by UTF-8, which is the order of Python too
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        keys = matches.events * len(order) + ranks[id_numbers]
        keys.sort()
        events, sorted_ranks = np.divmod(keys, max(1, len(order)))
        return cls(events, sorted_ranks, ids.take(pa.array(order)))

    def chunks(self) -> Iterator[OrderedMatches]:
        """The matches in chunks of bounded size."""
        for start in range(0, len(self.events), CHUNK_MATCHES):
            chunk = slice(start, start + CHUNK_MATCHES)
            yield OrderedMatches(self.events[chunk], self.id_numbers[chunk], self.ids)


class CollectedMatches:
    """Collects matches in any order until they can be sorted, 16 bytes for each.

    With a log of changes matches are found in the order of event times, not of the file.
    """

    def __init__(self) -> None:
        self._events = array("q")
        self._id_numbers = array("q")
        self._number_of: dict[str, int] = {}
        """The number of each id, in the order of first appearance."""

    def add(self, matches: Matches) -> None:
        ids, id_numbers = _distinct(matches.subscriptions)
        known = self._number_of
        numbers = [known.setdefault(id, len(known)) for id in ids.to_pylist()]
        self._events.frombytes(matches.events.tobytes())
        self._id_numbers.frombytes(np.array(numbers, np.int64)[id_numbers].tobytes())

    def all(self) -> Matches:
        ids = pa.array(list(self._number_of), pa.string())
        coded = pa.DictionaryArray.from_arrays(np.frombuffer(self._id_numbers, np.int64), ids)
        return Matches(np.frombuffer(self._events, np.int64), coded)


def _distinct(ids: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """The distinct ids of an Arrow array, and for each item its position among them.

    The dictionary of an encoded array may have ids that no item uses, for example those of all
    subscriptions of an engine; they are left out.
    """
    coded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
    codes = coded.indices.to_numpy()
    if len(codes) < len(coded.dictionary):
        used, id_numbers = np.unique(codes, return_inverse=True)
    else:  # the same without sorting
        is_used = np.zeros(len(coded.dictionary), np.bool_)
        is_used[codes] = True
        used = np.flatnonzero(is_used)
        id_numbers = (np.cumsum(is_used) - 1)[codes]
    return coded.dictionary.take(pa.array(used)), id_numbers


class MatchesWriter(Protocol):
    """Writes sorted matches."""

    def write(self, matches: OrderedMatches) -> None: ...


class _JsonLinesWriter:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, matches: OrderedMatches) -> None:
        # Arrow joins the lines, several times as fast as Python. The joined strings lie one after
        # the other in buffer 2 of the array (0 is validity, 1 the offsets): the text of the file.
        ids = [_ENCODER.encode(id) for id in matches.ids.to_pylist()]
        ends: Any = pa.array([f', "subscription": {id}}}\n' for id in ids], _TEXT)
        start: Any = pa.scalar('{"event": ', _TEXT)
        separator: Any = pa.scalar("", _TEXT)
        for chunk in matches.chunks():
            events: Any = pa.array(chunk.events).cast(_TEXT)
            lines = pc.binary_join_element_wise(
                start, events, ends.take(chunk.id_numbers), separator
            )
            self._stream.write(memoryview(lines.buffers()[2]))


class _CsvWriter:
    """CSV or TSV, with the names of the columns in the first line."""

    def __init__(self, stream: BinaryIO, delimiter: str) -> None:
        options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        self._writer = csv.CSVWriter(stream, _SCHEMA, write_options=options)

    def write(self, matches: OrderedMatches) -> None:
        for chunk in matches.chunks():
            ids = chunk.ids.take(pa.array(chunk.id_numbers))
            self._writer.write_table(pa.table([pa.array(chunk.events), ids], schema=_SCHEMA))

    def close(self) -> None:
        self._writer.close()


class _ParquetWriter:
    """Buffers matches: `write_table` makes a row group, and many small ones are slow to read."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._buffered: list[pa.Table] = []

    def write(self, matches: OrderedMatches) -> None:
        for chunk in matches.chunks():
            ids = chunk.ids.take(pa.array(chunk.id_numbers))
            self._buffered.append(pa.table([pa.array(chunk.events), ids], schema=_SCHEMA))
            if sum(table.num_rows for table in self._buffered) >= CHUNK_MATCHES:
                self.flush()

    def flush(self) -> None:
        if self._buffered:
            self._writer.write_table(pa.concat_tables(self._buffered))
            self._buffered = []


@contextmanager
def matches_file(path: str, inputs: Iterable[InputFile] = ()) -> Iterator[MatchesWriter]:
    """The writer of an output file, which is complete on success and untouched on an error.

    The name says the format. Raises TidegateError if it says one that is not written, or if the
    file is one of the ``inputs``, which would be lost.
    """
    suffix = _format_of(path)
    for each in inputs:
        if path != STDOUT and each.is_same_file(path):
            raise TidegateError(f"--output: {path} is read by this command; name another file")
    with _atomic_output(path) as stream:
        if suffix == ".parquet":
            with pq.ParquetWriter(stream, _SCHEMA) as parquet:
                writer = _ParquetWriter(parquet)
                yield writer
                writer.flush()
        elif suffix in _DELIMITERS:
            rows = _CsvWriter(stream, _DELIMITERS[suffix])
            yield rows
            rows.close()
        else:
            yield _JsonLinesWriter(stream)


def _format_of(path: str) -> str:
    """The suffix of an output file; raises TidegateError if that format is not written."""
    suffix = Path(path).suffix.lower()
    exists = Path(path).exists() and not Path(path).is_file()  # a device or a pipe has any name
    if not exists and suffix not in ("", *_JSON_LINES, *_DELIMITERS, ".parquet"):
        raise TidegateError(
            f"--output: {path}: matches are not written as {suffix[1:]}; "
            "use .jsonl, .csv, .tsv or .parquet"
        )
    return suffix


@contextmanager
def _atomic_output(path: str) -> Iterator[BinaryIO]:
    # The real path, because `replace` would replace a symbolic link and not the file behind it.
    target = Path(os.path.realpath(path))
    try:
        if path == STDOUT:
            with tempfile.TemporaryFile() as stream:
                yield stream
                stream.seek(0)
                _copy_to_stdout(stream)
        elif target.exists() and not target.is_file():  # a device or a pipe cannot be replaced
            with tempfile.TemporaryFile() as stream, target.open("wb") as out:
                yield stream
                stream.seek(0)
                shutil.copyfileobj(stream, out)
        else:
            with _replacing(target) as stream:
                yield stream
    except BrokenPipeError:
        raise  # the reader of stdout has gone (`| head`), which click handles silently
    except OSError as error:
        raise TidegateError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A temporary file that is renamed to ``target`` at the end.

    It is in the same folder, because a rename is atomic only within one file system.
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        # mkstemp makes files that only their owner can read; an output file has the usual mode.
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)  # can only be read by setting it
    os.umask(mask)
    return mask


def _copy_to_stdout(stream: BinaryIO) -> None:
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        sys.stdout.flush()
        shutil.copyfileobj(stream, binary)
        binary.flush()
    else:  # stdout was replaced by a text stream without a buffer, as in tests
        sys.stdout.write(stream.read().decode())
