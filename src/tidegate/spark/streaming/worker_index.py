"""The subscriptions of a stream as its workers hold them, from one micro-batch to the next.

- `delta/N.json`: what the changes of batch N did to the versions. A worker that holds the versions
  as of batch N - 1 takes in no more than that.
- `snapshot/N.arrow`: an index of all versions as of batch N, for workers that hold none or those of
  a batch too long ago. A worker writes it, for it has them; then it maps the file itself, so that
  all workers of a machine have one copy again.
"""

from __future__ import annotations

import gc
import os
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.matching.history.as_of import AsOfMatcher, key_of
from tidegate.matching.history.versions import Succession, Version, VersionDifference
from tidegate.spark.streaming.version_files import (
    difference_as_json,
    difference_of_json,
    read_json,
    succession_as_json,
    succession_of_json,
    write_json,
)

NO_SNAPSHOT = -1
UNFINISHED = ".unfinished"
"""How the name of a snapshot ends that is being written."""
HELD_MAX = 2
"""Of so many streams a worker holds the subscriptions."""


def write_delta(
    path: Path, ended: Iterable[Version], differences: Iterable[VersionDifference]
) -> int:
    """Write down what is to be done to the versions; gives how many of them that concerns."""
    successions: list[Succession] = []
    others: list[VersionDifference] = []
    for each in differences:
        found = each.successions()
        if found is None:
            others.append(each)
        else:
            successions += found
    noted = {
        "ended": [key_of(each) for each in ended],
        "successions": [succession_as_json(each) for each in successions],
        "differences": [difference_as_json(each) for each in others],
    }
    write_json(path, noted)
    return 3 * len(successions) + sum(len(each.before) + len(each.after) for each in others)


def apply_delta(path: Path, matcher: AsOfMatcher) -> None:
    """Do to the versions what was written down."""
    noted = read_json(path)
    matcher.forget_keys((id, since) for id, since in noted["ended"])
    matcher.succeed(succession_of_json(each) for each in noted["successions"])
    matcher.exchange(difference_of_json(each) for each in noted["differences"])


@dataclass(frozen=True, slots=True)
class StateIndex:
    """Where workers find the subscriptions of a stream as of a batch."""

    folder: str
    token: str
    snapshot: int
    batch: int

    def open(self) -> AsOfMatcher:
        """The subscriptions; this process holds them, and takes in only what has changed since."""
        held = _HELD.pop(self.token, None)
        if held is None or not self._can_go_on_from(held.batch):
            held = _Held(self._read_snapshot(), self.snapshot)
            gc.freeze()  # this process is Spark's, and holds on to what it has read
        while held.batch < self.batch:
            apply_delta(Path(self.folder) / "delta" / f"{held.batch + 1}.json", held.matcher)
            held.batch += 1
        self._hold(held)
        return held.matcher

    def _hold(self, held: _Held) -> None:
        _HELD[self.token] = held
        while len(_HELD) > HELD_MAX:
            _HELD.popitem(last=False)

    def _can_go_on_from(self, batch: int) -> bool:
        """Whether all deltas since a batch are there; older ones than the snapshot go with the next
        batch."""
        first = self.snapshot - 1 if self.batch == self.snapshot else self.snapshot
        return first <= batch <= self.batch

    def _read_snapshot(self) -> AsOfMatcher:
        if self.snapshot == NO_SNAPSHOT:
            return AsOfMatcher()
        return AsOfMatcher.load(snapshot_file(Path(self.folder), self.snapshot))

    def save(self) -> None:
        """Write the subscriptions to a snapshot as of the batch, and go on from that."""
        path = snapshot_file(Path(self.folder), self.batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{uuid.uuid4().hex}{UNFINISHED}")
        self.open().save(temporary)
        os.replace(temporary, path)
        self._hold(_Held(AsOfMatcher.load(path), self.batch))

    def save_in_worker(self, spark: SparkSession) -> None:
        """Have one of the workers write the snapshot."""
        spark.range(0, 1, 1, 1).mapInArrow(_SaveTask(self), "batch int").collect()


def snapshot_file(folder: Path, batch: int) -> Path:
    """Where the snapshot as of a batch is."""
    return folder / "snapshot" / f"{batch}.arrow"


@dataclass(frozen=True, slots=True)
class _SaveTask:
    """Writes a snapshot; for `mapInArrow`."""

    index: StateIndex

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            self.index.save()
            yield pa.RecordBatch.from_pydict({"batch": pa.array([self.index.batch], pa.int32())})


@dataclass(slots=True)
class _Held:
    """Subscriptions as of a batch."""

    matcher: AsOfMatcher
    batch: int


_HELD: OrderedDict[str, _Held] = OrderedDict()
