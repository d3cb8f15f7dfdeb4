"""The state of a stream, micro-batch by micro-batch, in a folder.

Theory of operation. The state before a batch follows from the files of all batches before it, and
nothing is written that a second try of a batch would not write again, or that its first try would
miss. So a batch may be killed anywhere and run again.

- `changes/`, `timelines/`: the subscriptions for the driver (slices.py).
- `delta/`, `snapshot/`: the subscriptions for the workers (state_index.py). A snapshot is written
  when the deltas since the last are twice as long as the table.
- `done/N.json`: the time of the latest event that was seen up to batch N, the last snapshot, and
  how long the deltas since then are.
- `spool/N/`: the rows of batch N, as long as changes may come that concern them.

What a batch no longer needs is removed when the next but one begins: by then Spark has noted that
the batch is done.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tidegate.errors import StateError
from tidegate.language.values import from_us, to_us
from tidegate.matching.history.changes import Change
from tidegate.matching.history.versions import Refusal, VersionDifference
from tidegate.spark.streaming.state_index import NO_SNAPSHOT, UNFINISHED, StateIndex, write_delta
from tidegate.spark.streaming.timeline_slices import Slices
from tidegate.spark.streaming.version_files import read_json, write_json

DELTA_MIN = 2_000
"""Deltas of so many versions are always cheaper than a snapshot."""
DELTA_SHARE_MAX = 2
"""Deltas grow to so many times the length of the table before a snapshot is written."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the changes of a batch."""

    differences: list[VersionDifference]
    late: list[Change]
    """Those that are of a time before the border of lateness."""
    refused: list[Refusal]
    """Those of earlier batches that can no longer be made."""


class StreamState:
    """The subscriptions of a stream, and how far it has come."""

    def __init__(self, folder: Path, lateness: timedelta) -> None:
        self._folder = folder
        self._lateness = lateness
        self._token = self._read_token()
        self._batch: int | None = None
        """The last batch that is done; None if nothing was read yet."""
        self._slices = Slices(folder)
        self._snapshot = NO_SNAPSHOT
        self._delta_length = 0
        self._latest: int | None = None

    def __len__(self) -> int:
        """How many subscriptions there are or were of late."""
        return len(self._slices)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions there are now."""
        return self._slices.current

    @property
    def latest(self) -> int | None:
        """The time of the latest event of all batches that are done, in microseconds."""
        return self._latest

    @property
    def border(self) -> datetime | None:
        """What is of a time before this comes too late; None if nothing does."""
        if self._latest is None:
            return None
        return from_us(self._latest - self._lateness // timedelta(microseconds=1))

    def _read_token(self) -> str:
        """What tells this state from any other, also from one that was in this folder before."""
        path = self._folder / "id.json"
        if not path.exists():
            write_json(path, uuid.uuid4().hex)
        return str(read_json(path))

    # -- a batch ------------------------------------------------------------------------------

    def begin(self, batch: int) -> None:
        """Be as before a batch, whether it comes next or is tried again."""
        if self._batch != batch - 1:
            self._recover(batch - 1)
        self._remove_outdated()

    def take(self, batch: int, changes: Sequence[Change]) -> Taken:
        """Take the changes of a batch."""
        self._batch = None  # until the batch is done, what is in memory is of no use to another try
        border = self.border
        late = [each for each in changes if border is not None and each.time < border]
        good = [each for each in changes if border is None or each.time >= border]
        played = self._slices.take(batch, border, good)
        delta = self._folder / "delta" / f"{batch}.json"
        self._delta_length += write_delta(delta, played.ended, played.differences)
        return Taken(played.differences, late, played.refused)

    @property
    def wants_snapshot(self) -> bool:
        """Whether the deltas since the last snapshot have grown too long.

        The first snapshot is due with the first table.
        """
        share = 1 if self._snapshot == NO_SNAPSHOT else DELTA_SHARE_MAX
        return self._delta_length >= max(DELTA_MIN, share * len(self))

    def has_snapshot(self, batch: int) -> None:
        """Let workers begin with the snapshot of a batch, which is there now."""
        self._snapshot, self._delta_length = batch, 0

    def index(self, batch: int) -> StateIndex:
        """Where workers find the subscriptions as of a batch that has taken its changes."""
        return StateIndex(str(self._folder), self._token, self._snapshot, batch)

    def spool(self, batch: int) -> Path:
        """Where the rows of a batch are."""
        return self._folder / "spool" / str(batch)

    def spools_since(self, batch: int, time_us: int) -> list[Path]:
        """The spools of batches before this one that may have events of a time or later."""
        found: list[Path] = []
        for path in self._numbered("spool"):
            number = int(path.name)
            if number < batch and self._latest_in(number) >= time_us:
                found.append(path)
        return found

    def _latest_in(self, batch: int) -> int:
        latest = read_json(self._done(batch))["latest_in_batch"]
        return -(2**63) if latest is None else int(latest)

    def end(self, batch: int, latest_in_batch: int | None) -> None:
        """Note that a batch is done, and the time of the latest event in it."""
        known = [each for each in (self._latest, latest_in_batch) if each is not None]
        self._latest = max(known, default=None)
        noted = {
            "latest": self._latest,
            "latest_in_batch": latest_in_batch,
            "snapshot": self._snapshot,
            "delta_length": self._delta_length,
        }
        write_json(self._done(batch), noted)
        self._batch = batch

    # -- files --------------------------------------------------------------------------------

    def _recover(self, batch: int) -> None:
        """Be as after a batch, by its files."""
        self._slices, self._snapshot, self._delta_length = Slices(self._folder), NO_SNAPSHOT, 0
        self._latest, self._batch = None, batch
        if batch < 0:
            return
        if not self._done(batch).exists():
            raise StateError(
                f"{self._folder} does not know of batch {batch}; it must be kept together with "
                "Spark's own files in the checkpoint"
            )
        done = read_json(self._done(batch))
        self._latest = done["latest"]
        self._snapshot, self._delta_length = done["snapshot"], done["delta_length"]
        self._slices = Slices.recover(self._folder, batch)

    def _remove_outdated(self) -> None:
        """Remove what neither the batch that begins nor a later one can need."""
        border = self.border
        for path in self._numbered("spool"):
            number = int(path.name)
            if self._batch is None or number > self._batch:
                continue  # of a first try of this batch; it will be written over
            if border is not None and self._latest_in(number) < to_us(border):
                shutil.rmtree(path)
        self._slices.remove_outdated()
        for path in self._numbered("snapshot"):
            if int(path.stem) < self._snapshot:
                path.unlink()
        for path in (self._folder / "snapshot").glob(f"*{UNFINISHED}*"):
            path.unlink()
        for path in self._numbered("delta"):
            if int(path.stem) <= self._snapshot:
                path.unlink()
        spooled = {int(path.name) for path in self._numbered("spool")}
        for path in self._numbered("done"):
            if int(path.stem) < (self._batch or 0) and int(path.stem) not in spooled:
                path.unlink()

    def _done(self, batch: int) -> Path:
        return self._folder / "done" / f"{batch}.json"

    def _numbered(self, kind: str) -> list[Path]:
        """The files or folders of one kind that have the numbers of batches."""
        return [path for path in (self._folder / kind).glob("*") if path.stem.isdigit()]
