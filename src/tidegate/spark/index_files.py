"""Index files: written by the driver, mapped into memory by the workers.

On one machine the workers map the driver's file itself. On a cluster the driver broadcasts the
file, and the workers of a machine share one copy (`machine_cache.py`). Unlike a file that is given
to Spark with `addFile`, which every executor that starts later fetches, a broadcast is fetched by
the tasks that need it, and can be withdrawn.
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

from pyspark import Broadcast
from pyspark.sql import SparkSession

from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.spark.machine_cache import HeldFile, hold

OPEN_INDEXES_MAX = 4
"""The number of indexes that stay open in a worker."""
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
    name = f"tidegate-{uuid.uuid4().hex}.arrow"
    path = _driver_folder() / name
    matcher.save(path)
    if runs_here(spark):
        return IndexFile(name, DriverFile(str(path)))
    broadcast = spark.sparkContext.broadcast
    with path.open("rb") as file:
        parts = [broadcast(part) for part in iter(lambda: file.read(PART_BYTES), b"")]
    path.unlink()
    return IndexFile(name, BroadcastFile(parts))


def runs_here(spark: SparkSession) -> bool:
    """Whether all tasks of a session run on the driver's machine, and see its files."""
    master = spark.conf.get("spark.master") or ""
    # "local-cluster" runs its executors on this machine, but as if they were on others.
    return master.startswith("local") and not master.startswith("local-cluster")


_FOLDER: list[Path] = []


def _driver_folder() -> Path:
    """The driver's folder for index files, created on first use and removed at exit."""
    if not _FOLDER:
        _FOLDER.append(Path(tempfile.mkdtemp(prefix="tidegate-")))
        atexit.register(shutil.rmtree, _FOLDER[0], ignore_errors=True)
    return _FOLDER[0]
