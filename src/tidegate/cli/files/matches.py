"""The file of matches: ordered by event, then subscription, and written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.errors import TidegateError
from tidegate.matching.batches import Matches

STDOUT = "-"
PIECE_MATCHES = 1 << 20

_EVENT: Any = pa.field("event", pa.int64())
_SUBSCRIPTION: Any = pa.field("subscription", pa.string())
_SCHEMA = pa.schema([_EVENT, _SUBSCRIPTION])
_TEXT = pa.large_string()
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class OrderedMatches:
    """Matches ordered by event, then id. The ids stand in ``names``, each one once, in order."""

    events: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    names: Any

    @classmethod
    def of(cls, matches: Matches) -> OrderedMatches:
        """Put matches in order."""
        # Sorting numbers is much faster than sorting pairs of a number and a string.
        names, places = _distinct(matches.subscriptions)
        order = pc.sort_indices(names).to_numpy()  # by UTF-8, which is the order of Python too
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        keys = matches.events * len(order) + ranks[places]
        keys.sort()
        events, ranked = np.divmod(keys, max(1, len(order)))
        return cls(events, ranked, names.take(pa.array(order)))

    def pieces(self) -> Iterator[OrderedMatches]:
        """The same matches in pieces of a bounded size."""
        for start in range(0, len(self.events), PIECE_MATCHES):
            part = slice(start, start + PIECE_MATCHES)
            yield OrderedMatches(self.events[part], self.places[part], self.names)


class CollectedMatches:
    """Matches from here and there, held in little memory until they can be put in order."""

    def __init__(self) -> None:
        self._events = array("q")
        self._codes = array("q")
        self._code_of: dict[str, int] = {}

    def add(self, matches: Matches) -> None:
        names, places = _distinct(matches.subscriptions)
        known = self._code_of
        codes = [known.setdefault(name, len(known)) for name in names.to_pylist()]
        self._events.frombytes(matches.events.tobytes())
        self._codes.frombytes(np.array(codes, np.int64)[places].tobytes())

    def all(self) -> Matches:
        names = pa.array(list(self._code_of), pa.string())
        ids = pa.DictionaryArray.from_arrays(np.frombuffer(self._codes, np.int64), names)
        return Matches(np.frombuffer(self._events, np.int64), ids)


def _distinct(ids: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """The distinct ids of an Arrow array, and the place among them of each of its items."""
    coded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
    codes = coded.indices.to_numpy()
    if len(codes) < len(coded.dictionary):
        used, places = np.unique(codes, return_inverse=True)
    else:  # the same without sorting
        is_used = np.zeros(len(coded.dictionary), np.bool_)
        is_used[codes] = True
        used = np.flatnonzero(is_used)
        places = (np.cumsum(is_used) - 1)[codes]
    return coded.dictionary.take(pa.array(used)), places


class MatchesWriter(Protocol):
    """Writes matches that come in order."""

    def write(self, matches: OrderedMatches) -> None: ...


class _JsonLinesWriter:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, matches: OrderedMatches) -> None:
        # Arrow makes the lines, several times as fast as Python.
        ids = [_ENCODER.encode(name) for name in matches.names.to_pylist()]
        ends: Any = pa.array([f', "subscription": {id}}}\n' for id in ids], _TEXT)
        start: Any = pa.scalar('{"event": ', _TEXT)
        separator: Any = pa.scalar("", _TEXT)
        for piece in matches.pieces():
            events: Any = pa.array(piece.events).cast(_TEXT)
            lines = pc.binary_join_element_wise(start, events, ends.take(piece.places), separator)
            self._stream.write(memoryview(lines.buffers()[2]))


class _ParquetWriter:
    """Gathers matches, so that row groups are of a good size."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._held: list[pa.Table] = []

    def write(self, matches: OrderedMatches) -> None:
        for piece in matches.pieces():
            names = piece.names.take(pa.array(piece.places))
            self._held.append(pa.table([pa.array(piece.events), names], schema=_SCHEMA))
            if sum(each.num_rows for each in self._held) >= PIECE_MATCHES:
                self.flush()

    def flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held))
            self._held = []


@contextmanager
def matches_file(path: str) -> Iterator[MatchesWriter]:
    """The file to write to; it appears when all is well, and on an error it does not."""
    with _written_whole(path) as stream:
        if not path.endswith(".parquet"):
            yield _JsonLinesWriter(stream)
            return
        with pq.ParquetWriter(stream, _SCHEMA) as parquet:
            writer = _ParquetWriter(parquet)
            yield writer
            writer.flush()


@contextmanager
def _written_whole(path: str) -> Iterator[BinaryIO]:
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
            with _beside(target) as stream:
                yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TidegateError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    """A file next to ``target`` that takes its place at the end."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _copy_to_stdout(stream: BinaryIO) -> None:
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        sys.stdout.flush()
        shutil.copyfileobj(stream, binary)
        binary.flush()
    else:  # stdout was replaced by something that takes text
        sys.stdout.write(stream.read().decode())
