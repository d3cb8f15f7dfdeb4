"""Index files: written by the driver, mapped into memory by the workers.

On one machine the workers open the driver's file itself, so all of them share one copy of its
pages. On a cluster Spark copies the file to each machine once.
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

OPEN_MAX = 4
"""So many indexes stay open in a worker."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Where workers find an index: at a path, or, without one, among the files Spark copied."""

    name: str
    path: str | None

    def open(self) -> AsOfMatcher:
        """The index, which stays open in this process for the next task."""
        found = _OPEN.pop(self.name, None)
        if found is None:
            found = AsOfMatcher.load(self.path or SparkFiles.get(self.name))
        _OPEN[self.name] = found
        while len(_OPEN) > OPEN_MAX:
            _OPEN.popitem(last=False)
        return found

    def discard(self) -> None:
        """Remove the driver's file, when no task needs it any more."""
        (_folder() / self.name).unlink(missing_ok=True)


_OPEN: OrderedDict[str, AsOfMatcher] = OrderedDict()


def ship(spark: SparkSession, matcher: AsOfMatcher) -> IndexFile:
    """Write an index where workers find it; the file is removed when the driver ends."""
    name = f"tidegate-{uuid.uuid4().hex}.arrow"
    path = _folder() / name
    matcher.save(path)
    context = spark.sparkContext
    master = context.master or ""
    if master.startswith("local") and not master.startswith("local-cluster"):
        return IndexFile(name, str(path))
    context.addFile(str(path))
    return IndexFile(name, None)


_made: list[Path] = []


def _folder() -> Path:
    """The driver's folder for index files, made when it is first needed."""
    if not _made:
        _made.append(Path(tempfile.mkdtemp(prefix="tidegate-")))
        atexit.register(shutil.rmtree, _made[0], ignore_errors=True)
    return _made[0]
