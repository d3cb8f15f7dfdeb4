"""The subscriptions of a stream, micro-batch by micro-batch, in a folder.

Theory of operation. The state before a batch follows from the files of all batches before it, and
nothing is written that a second try of a batch would not write again, or that its first try would
miss. So a batch may be killed anywhere and run again.

- `changes/N.json`: the changes that batch N took, and the border of lateness it began with.
- `delta/N.json`: what these changes did to the versions, for the workers.
- `snapshot/N/`: all versions as of batch N: the timelines for the driver, an index for the workers
  that do not go on from batch N - 1. Written when the deltas since the last are twice as long
  as the table.
- `done/N.json`: the time of the latest event that was seen up to batch N.
- `spool/N/`: the rows of batch N, as long as changes may come that concern them.

What a batch no longer needs is removed when the next but one begins: by then Spark has noted that
the batch is done.
"""

from __future__ import annotations

import gc
import shutil
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tidegate.errors import StateError
from tidegate.language.values import from_micros, to_micros
from tidegate.matching.as_of import AsOfMatcher
from tidegate.matching.changes import Change
from tidegate.matching.versions import Difference, Refusal, Timelines, Version
from tidegate.spark.version_files import (
    change_as_json,
    change_of_json,
    difference_as_json,
    difference_of_json,
    read_json,
    version_as_json,
    version_of_json,
    write_json,
)

DELTA_MIN = 2_000
"""Deltas of so many versions are always cheaper than a snapshot."""
DELTA_SHARE_MAX = 2
"""Deltas grow to so many times the length of the table before a snapshot is written."""
NO_SNAPSHOT = -1
HELD_MAX = 2
"""Of so many streams a worker holds the subscriptions."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the changes of a batch."""

    differences: list[Difference]
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
        self._timelines = Timelines()
        self._snapshot = NO_SNAPSHOT
        self._delta_length = 0
        self._latest: int | None = None

    def __len__(self) -> int:
        """How many subscriptions there are or were of late."""
        return len(self._timelines)

    @property
    def latest(self) -> int | None:
        """The time of the latest event of all batches that are done, in microseconds."""
        return self._latest

    @property
    def border(self) -> datetime | None:
        """What is of a time before this comes too late; None if nothing does."""
        if self._latest is None:
            return None
        return from_micros(self._latest - self._lateness // timedelta(microseconds=1))

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
        noted = {
            "border": None if border is None else to_micros(border),
            "changes": [change_as_json(each) for each in good],
        }
        write_json(self._folder / "changes" / f"{batch}.json", noted)
        ended, refused, differences = self._play(border, good)
        self._delta_length += sum(len(each.before) + len(each.after) for each in differences)
        delta = {
            "ended": [version_as_json(each) for each in ended],
            "differences": [difference_as_json(each) for each in differences],
        }
        write_json(self._folder / "delta" / f"{batch}.json", delta)
        if self._delta_length >= max(DELTA_MIN, self._delta_max()):
            self._write_snapshot(batch, border)
        return Taken(differences, late, refused)

    def _delta_max(self) -> int:
        """How long deltas may grow; the first snapshot is due with the first table."""
        share = 1 if self._snapshot == NO_SNAPSHOT else DELTA_SHARE_MAX
        return share * len(self._timelines)

    def _play(
        self, border: datetime | None, changes: Iterable[Change]
    ) -> tuple[list[Version], list[Refusal], list[Difference]]:
        ended, refused = ([], []) if border is None else self._timelines.make_final(border)
        return ended, refused, self._timelines.take(changes)

    def index(self, batch: int) -> StateIndex:
        """Where workers find the subscriptions as of a batch that has taken its changes."""
        return StateIndex(str(self._folder), self._token, self._snapshot, batch)

    def spool(self, batch: int) -> Path:
        """Where the rows of a batch are."""
        return self._folder / "spool" / str(batch)

    def spools_since(self, batch: int, micros: int) -> list[Path]:
        """The spools of batches before this one that may have events of a time or later."""
        found: list[Path] = []
        for path in self._numbered("spool"):
            number = int(path.name)
            if number < batch and self._latest_in(number) >= micros:
                found.append(path)
        return found

    def _latest_in(self, batch: int) -> int:
        latest = read_json(self._folder / "done" / f"{batch}.json")["latest_in_batch"]
        return -(2**63) if latest is None else int(latest)

    def end(self, batch: int, latest_in_batch: int | None) -> None:
        """Note that a batch is done, and the time of the latest event in it."""
        known = [each for each in (self._latest, latest_in_batch) if each is not None]
        self._latest = max(known, default=None)
        noted = {"latest": self._latest, "latest_in_batch": latest_in_batch}
        write_json(self._folder / "done" / f"{batch}.json", noted)
        self._batch = batch

    # -- files --------------------------------------------------------------------------------

    def _write_snapshot(self, batch: int, border: datetime | None) -> None:
        folder = self._folder / "snapshot" / str(batch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        AsOfMatcher(self._timelines.versions()).save(folder / "index.arrow")
        noted = {
            "border": None if border is None else to_micros(border),
            "timelines": [
                [
                    id,
                    None if base is None else version_as_json(base),
                    version_as_json(Version(id, "", params)),
                    [change_as_json(each) for each in changes],
                ]
                for id, base, params, changes in self._timelines.dump()
            ],
        }
        write_json(folder / "timelines.json", noted)
        self._snapshot, self._delta_length = batch, 0

    def _recover(self, batch: int) -> None:
        """Be as after a batch, by its files."""
        self._timelines, self._snapshot, self._delta_length = Timelines(), NO_SNAPSHOT, 0
        self._latest, self._batch = None, batch
        if batch < 0:
            return
        done = self._folder / "done" / f"{batch}.json"
        if not done.exists():
            raise StateError(
                f"{self._folder} does not know of batch {batch}; it must be kept together with "
                "Spark's own files in the checkpoint"
            )
        self._latest = read_json(done)["latest"]
        for path in self._numbered("snapshot"):
            if self._snapshot < int(path.name) <= batch and (path / "timelines.json").exists():
                self._snapshot = int(path.name)
        if self._snapshot != NO_SNAPSHOT:
            self._read_snapshot()
        for number in range(self._snapshot + 1, batch + 1):
            noted = read_json(self._folder / "changes" / f"{number}.json")
            border = None if noted["border"] is None else from_micros(noted["border"])
            _, _, differences = self._play(border, map(change_of_json, noted["changes"]))
            self._delta_length += sum(len(each.before) + len(each.after) for each in differences)

    def _read_snapshot(self) -> None:
        noted = read_json(self._folder / "snapshot" / str(self._snapshot) / "timelines.json")
        border = None if noted["border"] is None else from_micros(noted["border"])
        self._timelines = Timelines.restore(
            (
                (
                    id,
                    None if base is None else version_of_json(base),
                    version_of_json(params).params,
                    [change_of_json(each) for each in changes],
                )
                for id, base, params, changes in noted["timelines"]
            ),
            border,
        )

    def _remove_outdated(self) -> None:
        """Remove what neither the batch that begins nor a later one can need."""
        border = self.border
        for path in self._numbered("spool"):
            number = int(path.name)
            if self._batch is None or number > self._batch:
                continue  # of a first try of this batch; it will be written over
            if border is not None and self._latest_in(number) < to_micros(border):
                shutil.rmtree(path)
        for path in self._numbered("snapshot"):
            if int(path.name) < self._snapshot:
                shutil.rmtree(path)
        for kind in ("changes", "delta"):
            for path in self._numbered(kind):
                if int(path.stem) <= self._snapshot:
                    path.unlink()
        spooled = {int(path.name) for path in self._numbered("spool")}
        for path in self._numbered("done"):
            if int(path.stem) < (self._batch or 0) and int(path.stem) not in spooled:
                path.unlink()

    def _numbered(self, kind: str) -> list[Path]:
        """The files or folders of one kind that have the numbers of batches."""
        return [path for path in (self._folder / kind).glob("*") if path.stem.isdigit()]


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
            delta = read_json(Path(self.folder) / "delta" / f"{held.batch + 1}.json")
            held.matcher.forget(version_of_json(each) for each in delta["ended"])
            held.matcher.apply(difference_of_json(each) for each in delta["differences"])
            held.batch += 1
        _HELD[self.token] = held
        while len(_HELD) > HELD_MAX:
            _HELD.popitem(last=False)
        return held.matcher

    def _can_go_on_from(self, batch: int) -> bool:
        """Whether all deltas since a batch are there; older ones than the snapshot go with the next
        batch."""
        first = self.snapshot - 1 if self.batch == self.snapshot else self.snapshot
        return first <= batch <= self.batch

    def _read_snapshot(self) -> AsOfMatcher:
        if self.snapshot == NO_SNAPSHOT:
            return AsOfMatcher()
        return AsOfMatcher.load(Path(self.folder) / "snapshot" / str(self.snapshot) / "index.arrow")


@dataclass(slots=True)
class _Held:
    """Subscriptions as of a batch."""

    matcher: AsOfMatcher
    batch: int


_HELD: OrderedDict[str, _Held] = OrderedDict()
