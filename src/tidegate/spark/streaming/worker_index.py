"""The index of a stream's subscriptions as its workers hold it, from one micro-batch to the next.

The driver holds the same subscriptions as timelines, without an index; see `timeline_slices.py`. It
hands them to the workers in files:

- `delta/N.json`: what the changes of batch N did to the versions. A worker whose index is as of
  batch N - 1 applies no more than that, so the cost of a batch grows with its changes, not with the
  size of the table.
- `snapshot/N.arrow`: the whole index as of batch N, for workers that have no index or one that is
  too old. A worker writes the snapshot, because the driver has no index. Then it maps the file
  itself, or its machine's copy of it, so all workers of a machine share one copy again.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import VersionDelta
from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.storage.machine_cache import HeldFile, cache_folder, hold
from tidegate.spark.streaming.state_files import (
    difference_as_json,
    difference_of_json,
    read_json,
    succession_as_json,
    succession_of_json,
    write_json,
)

NO_SNAPSHOT = -1
HELD_STREAMS_MAX = 2
"""The number of streams whose indexes a worker keeps."""


def write_delta(folder: Folder, batch: int, delta: VersionDelta) -> None:
    """Write the delta of a batch to a file, for the workers."""
    document = {
        "ended": delta.ended,
        "successions": [succession_as_json(each) for each in delta.successions],
        "differences": [difference_as_json(each) for each in delta.exchanges],
    }
    write_json(folder, delta_file(batch), document)


def read_delta(folder: Folder, batch: int) -> VersionDelta:
    """Read a delta of versions that ``write_delta`` wrote."""
    document = read_json(folder, delta_file(batch))
    return VersionDelta(
        [(id, since_us) for id, since_us in document["ended"]],
        [succession_of_json(each) for each in document["successions"]],
        [difference_of_json(each) for each in document["differences"]],
    )


@dataclass(frozen=True, slots=True)
class WorkerIndex:
    """The index of a stream as of a batch: what a task is shipped with to open it in a worker."""

    folder: Folder
    token: str
    """Identifies the state of the stream; see `StreamState`."""
    snapshot: int
    """The batch of the last snapshot, or ``NO_SNAPSHOT``."""
    batch: int
    copied: bool = False
    """Whether workers map a copy of the snapshot on their machine, in place of the file itself."""

    def open(self) -> AsOfMatcher:
        """The index. This process keeps it, and the next call applies only later deltas."""
        held = _HELD.pop(self.token, None)
        # A batch that is run again may be older than the index that was held for it.
        if held is None or not self._can_continue_from(held.batch):
            _release(held)
            held = self._read_snapshot(self.snapshot)
            # The index stays until the process ends; the garbage collector need not visit it.
            gc.freeze()
        while held.batch < self.batch:
            delta = read_delta(self.folder, held.batch + 1)
            held.matcher.apply(delta)
            held.batch += 1
        self._hold(held)
        return held.matcher

    def _hold(self, held: _HeldIndex) -> None:
        _HELD[self.token] = held
        while len(_HELD) > HELD_STREAMS_MAX:
            _release(_HELD.popitem(last=False)[1])

    def _can_continue_from(self, batch: int) -> bool:
        """Whether all deltas since a batch exist.

        Deltas up to a snapshot are removed when the next batch begins. So in the batch that writes
        the snapshot, its own delta still exists, and an index as of the batch before will do.
        """
        first = self.snapshot - 1 if self.batch == self.snapshot else self.snapshot
        return first <= batch <= self.batch

    def _read_snapshot(self, batch: int) -> _HeldIndex:
        if batch == NO_SNAPSHOT:
            return _HeldIndex(AsOfMatcher(), batch)
        name = snapshot_file(batch)
        if isinstance(self.folder, LocalFolder) and not self.copied:
            return _HeldIndex(AsOfMatcher.load(self.folder.path / name), batch)

        def fetch(path: Path) -> None:
            with as_state_error(self.folder, name):
                self.folder.download(name, path)

        file = hold(f"{self.token}-{batch}.arrow", fetch)
        return _HeldIndex(AsOfMatcher.load(file.path), batch, file)

    def save(self) -> None:
        """Write the index to a snapshot as of the batch, and continue from the snapshot."""
        with TemporaryDirectory(prefix="tidegate-", dir=cache_folder()) as scratch:
            path = Path(scratch) / "snapshot"
            self.open().save(path)
            # It appears as a whole, also if several attempts write it.
            self.folder.upload(path, snapshot_file(self.batch))
        _release(_HELD.pop(self.token, None))
        self._hold(self._read_snapshot(self.batch))

    def save_in_worker(self, spark: SparkSession) -> None:
        """Let one of the workers write the snapshot."""
        spark.range(0, 1, 1, 1).mapInArrow(_SaveTask(self), "batch int").collect()


def snapshot_file(batch: int) -> str:
    """The name of the snapshot as of a batch."""
    return f"snapshot/{batch}.arrow"


def delta_file(batch: int) -> str:
    """The name of the delta of a batch."""
    return f"delta/{batch}.json"


@dataclass(frozen=True, slots=True)
class _SaveTask:
    """Writes a snapshot; for `mapInArrow`."""

    index: WorkerIndex

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            self.index.save()
            yield pa.RecordBatch.from_pydict({"batch": pa.array([self.index.batch], pa.int32())})


@dataclass(slots=True)
class _HeldIndex:
    """An index that this process keeps, and the batch that it is as of."""

    matcher: AsOfMatcher
    batch: int
    file: HeldFile | None = None
    """The machine's copy of the snapshot."""


def _release(held: _HeldIndex | None) -> None:
    """Allow the machine's copy of a snapshot to be removed."""
    if held is not None and held.file is not None:
        held.file.release()


_HELD: OrderedDict[str, _HeldIndex] = OrderedDict()
"""The indexes of this process by the token of their stream, the least recently used first."""
