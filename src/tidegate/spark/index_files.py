"""Index files: written by the driver, mapped into memory by the workers.

On one machine the workers map the driver's file itself, so all of them share one copy of its pages.
On a cluster Spark copies the file to each machine once.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from tidegate.matching.history.as_of import AsOfMatcher

OPEN_INDEXES_MAX = 4
"""The number of indexes that stay open in a worker."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Where workers find an index: at a path, or, if that is None, among the files Spark copied."""

    name: str
    path: str | None

    def open(self) -> AsOfMatcher:
        """The index, which stays open in this process for later tasks."""
        matcher = _OPEN.pop(self.name, None)
        if matcher is None:
            matcher = AsOfMatcher.load(self.path or SparkFiles.get(self.name))
        _OPEN[self.name] = matcher  # at the end, as the most recently used
        while len(_OPEN) > OPEN_INDEXES_MAX:
            _OPEN.popitem(last=False)
        return matcher

    def discard(self) -> None:
        """Remove the driver's file, once no task needs it any more.

        Workers that have mapped the file keep it until they close it.
        """
        (_driver_folder() / self.name).unlink(missing_ok=True)


_OPEN: OrderedDict[str, AsOfMatcher] = OrderedDict()
"""The open indexes of this process by file name, the least recently used first."""


def ship_index(spark: SparkSession, matcher: AsOfMatcher) -> IndexFile:
    """Write an index to a file that workers can open; it is removed when the driver exits."""
    name = f"tidegate-{uuid.uuid4().hex}.arrow"
    path = _driver_folder() / name
    matcher.save(path)
    context = spark.sparkContext
    master = context.master or ""
    # "local-cluster" runs executors on this machine, but each has its own copy of shipped files.
    if master.startswith("local") and not master.startswith("local-cluster"):
        return IndexFile(name, str(path))
    context.addFile(str(path))
    return IndexFile(name, None)


_FOLDER: list[Path] = []


def _driver_folder() -> Path:
    """The driver's folder for index files, created on first use and removed at exit."""
    if not _FOLDER:
        _FOLDER.append(Path(tempfile.mkdtemp(prefix="tidegate-")))
        atexit.register(shutil.rmtree, _FOLDER[0], ignore_errors=True)
    return _FOLDER[0]
