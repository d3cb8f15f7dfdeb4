"""Index files: written by the driver, mapped into memory by the workers.

On one machine the workers map the driver's file itself. On a cluster the driver broadcasts the
file, and the workers of a machine share one copy (`storage/machine_cache.py`). Unlike a file that
is given to Spark with `addFile`, which every executor that starts later fetches, a broadcast is
fetched by the tasks that need it, and can be withdrawn. On Spark Connect, which has no broadcasts,
the file is an artifact of the session, which the server keeps as long as the session. A stream
keeps its indexes in its checkpoint instead.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark import Broadcast, SparkFiles
from pyspark.sql import SparkSession

from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.spark.session import is_connect, runs_here
from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.storage.machine_cache import HeldFile, hold

OPEN_INDEXES_MAX = 48
"""The number of indexes that stay open in a worker; opening one reads all of it."""
PART_BYTES = 64 * 2**20
"""A file is broadcast in parts of this size, because each part is in memory as a whole."""


class FileSource(Protocol):
    """How workers come by a file of the driver."""

    def hold(self, name: str) -> HeldFile:
        """The file, on this machine."""
        ...

    def discard(self) -> None:
        """Remove what the driver keeps of the file."""
        ...


@dataclass(frozen=True, slots=True)
class DriverFile:
    """A file that workers read where the driver wrote it."""

    path: str

    def hold(self, name: str) -> HeldFile:  # noqa: ARG002
        return HeldFile(Path(self.path))

    def discard(self) -> None:
        # Workers that have mapped the file keep it until they close it.
        Path(self.path).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class BroadcastFile:
    """A file whose content Spark broadcasts."""

    parts: Sequence[Broadcast[bytes]]

    def hold(self, name: str) -> HeldFile:
        return hold(name, self._write)

    def _write(self, path: Path) -> None:
        with path.open("wb") as file:
            for part in self.parts:
                file.write(part.value)
                # The worker would keep the bytes as long as Spark keeps the broadcast. Spark reads
                # them again if they are asked for again.
                vars(part).pop("_value", None)

    def discard(self) -> None:
        for part in self.parts:
            part.destroy()


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file that was given to a session of Spark Connect, under its name."""

    def hold(self, name: str) -> HeldFile:
        return HeldFile(Path(SparkFiles.get(name)))

    def discard(self) -> None:
        """Nothing: the server removes it when the session ends."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a storage that all machines reach."""

    folder: Folder
    name: str

    def hold(self, name: str) -> HeldFile:
        return hold(name, self._download)

    def _download(self, path: Path) -> None:
        with as_state_error(self.folder, self.name):
            self.folder.download(self.name, path)

    def discard(self) -> None:
        with as_state_error(self.folder, self.name):
            self.folder.remove(self.name)


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The index in a file, which workers open by its name; a name stands for one index for ever."""

    name: str
    source: FileSource

    def open(self) -> AsOfMatcher:
        """The index, which stays open in this process for later tasks."""
        opened = _OPEN.pop(self.name, None)
        if opened is None:
            file = self.source.hold(self.name)
            opened = _OpenIndex(AsOfMatcher.load(file.path), file)
        _OPEN[self.name] = opened  # at the end, as the most recently used
        while len(_OPEN) > OPEN_INDEXES_MAX:
            _, oldest = _OPEN.popitem(last=False)
            oldest.file.release()
        return opened.matcher

    def discard(self) -> None:
        """Remove what the driver keeps of the file, once no task needs it any more."""
        self.source.discard()


@dataclass(frozen=True, slots=True)
class _OpenIndex:
    matcher: AsOfMatcher
    file: HeldFile


_OPEN: OrderedDict[str, _OpenIndex] = OrderedDict()
"""The open indexes of this process by name, the least recently used first."""


def ship_index(spark: SparkSession, matcher: AsOfMatcher) -> IndexFile:
    """Write an index to a file that workers can open; what is left of it goes with the driver."""
    name = new_name()
    path = driver_folder() / name
    matcher.save(path)
    return ship_file(spark, path, name)


def ship_file(spark: SparkSession, path: Path, name: str) -> IndexFile:
    """An index in a file of the driver's folder as one that workers can open."""
    if is_connect(spark):
        spark.addArtifacts(str(path), file=True)
        path.unlink()
        return IndexFile(name, SessionFile())
    if runs_here(spark):
        return IndexFile(name, DriverFile(str(path)))
    broadcast = spark.sparkContext.broadcast
    with path.open("rb") as file:
        parts = [broadcast(part) for part in iter(lambda: file.read(PART_BYTES), b"")]
    path.unlink()
    return IndexFile(name, BroadcastFile(parts))


def stored_index(folder: Folder, matcher: AsOfMatcher, *, copied: bool) -> IndexFile:
    """Write an index to a folder of a stream.

    Workers map the file itself, where that is possible, or with ``copied`` their machine's copy.
    """
    name = new_name()
    path = driver_folder() / name
    matcher.save(path)
    with as_state_error(folder, name):
        folder.upload(path, name)
    path.unlink()
    return index_in(folder, name, copied=copied)


def index_in(folder: Folder, name: str, *, copied: bool) -> IndexFile:
    """The index in a file of a folder."""
    if isinstance(folder, LocalFolder) and not copied:
        return IndexFile(name, DriverFile(str(folder.path / name)))
    return IndexFile(name, StoredFile(folder, name))


def new_name() -> str:
    """A name for an index that no other has."""
    return f"tidegate-{uuid.uuid4().hex}.arrow"


_FOLDER: list[Path] = []


def driver_folder() -> Path:
    """The driver's folder for index files, created on first use and removed at exit."""
    if not _FOLDER:
        _FOLDER.append(Path(tempfile.mkdtemp(prefix="tidegate-")))
        atexit.register(shutil.rmtree, _FOLDER[0], ignore_errors=True)
    return _FOLDER[0]
