"""The state of a stream between micro-batches, in a folder of the checkpoint.

Theory of operation. The state before batch N is a function of the files of batches 0 to N - 1. The
rules:

1. A batch changes no file of an earlier batch; it only adds files that bear its own number.
2. A second attempt of a batch writes the same files with the same content as the first. So an
   attempt may be killed anywhere: what it left is overwritten.
3. Each file exists as a whole or not at all, however the storage does that; see `Folder`.
4. A file that batch N made superfluous is removed when batch N + 1 begins. By then Spark has noted
   in its own checkpoint that N is done, and will not run it again.

The files:

- `changes/`, `timelines/`: the subscriptions for the driver (`timeline_slices.py`).
- `delta/`, `snapshot/`: the subscriptions for the workers (`worker_index.py`). A snapshot is
  written when the deltas since the last one are twice as long as the table.
- `done/N.json`: the time of the latest event up to batch N and of the latest in batch N, the number
  of the last snapshot, the length of the deltas since then, and the border of batch N.
- `spool/N/`: the rows of batch N, as long as changes of their times may come.
- `id.json`: what the state belongs to (`state_identity.py`).
- `lease.json`: who uses it (`lease.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidegate.errors import StateError
from tidegate.language.values import from_us, to_us
from tidegate.matching.history.changes import Change
from tidegate.matching.history.timelines import Refusal
from tidegate.matching.history.versions import VersionDelta, VersionDifference
from tidegate.spark.storage.folder import Folder
from tidegate.spark.streaming.lease import Lease
from tidegate.spark.streaming.state_files import numbers_in, read_json, write_json
from tidegate.spark.streaming.state_identity import StreamIdentity, token_of
from tidegate.spark.streaming.timeline_slices import TimelineSlices
from tidegate.spark.streaming.worker_index import (
    NO_SNAPSHOT,
    WorkerIndex,
    delta_file,
    snapshot_file,
    write_delta,
)

DELTA_MIN = 2_000
"""Deltas of fewer versions are always cheaper to apply than a snapshot is to write."""
DELTA_SHARE_MAX = 2
"""A snapshot is written when the deltas have this many times as many versions as the table."""


@dataclass(frozen=True, slots=True)
class AppliedChanges:
    """The effect of the changes of a batch."""

    differences: list[VersionDifference]
    late: int
    """The number of changes of a time before the border of lateness."""
    outdated: list[Change]
    """Those of them that were not applied: a newer change of their subscription holds already. All
    others hold from the border on."""
    refused: list[Refusal]
    """Changes of earlier batches that can no longer be applied, because their time is final."""


class StreamState:
    """The subscriptions of a stream, and the progress of its event time.

    The calls for a batch are ``begin``, ``apply`` and ``end``, in this order.
    """

    def __init__(self, folder: Folder, lateness: timedelta, *, copied: bool = False) -> None:
        """``copied``: whether workers map copies of the snapshots; see `WorkerIndex`."""
        self._folder = folder
        self._copied = copied
        self._lateness = lateness
        self._lease = Lease(folder)
        self._token = ""
        """The token of the state, which ``begin`` reads."""
        self._final_us: int | None = None
        """The border of the last batch that is done, in microseconds."""
        self._batch: int | None = None
        """The batch after which the attributes below are; None if they are not that of any."""
        self._slices = TimelineSlices(folder)
        self._snapshot = NO_SNAPSHOT
        self._delta_length = 0
        """The number of versions in the deltas since the snapshot."""
        self._latest_us: int | None = None

    def __len__(self) -> int:
        """The number of subscriptions that exist or existed within the lateness."""
        return len(self._slices)

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions that exist after all changes."""
        return self._slices.current

    @property
    def latest_us(self) -> int | None:
        """The time of the latest event of all batches that are done, in microseconds."""
        return self._latest_us

    @property
    def border(self) -> datetime | None:
        """Events and changes of an earlier time are late; None if none are.

        The border never goes back. A query that is restarted with more lateness than before keeps
        the border until its events have come that much further: what is needed to correct earlier
        ones is gone.
        """
        if self._latest_us is None:
            return None
        border_us = self._latest_us - self._lateness // timedelta(microseconds=1)
        return from_us(border_us if self._final_us is None else max(border_us, self._final_us))

    # -- a batch ------------------------------------------------------------------------------

    def begin(self, batch: int, identity: StreamIdentity) -> None:
        """Go to the state before a batch, whether it is the next one or is run again.

        Raises StateError if the state does not belong to this query, or another driver uses it.
        """
        self._lease.take()
        self._token = self._token or token_of(self._folder, identity, first=batch == 0)
        if self._batch != batch - 1:
            self._recover(batch - 1)
        self._remove_outdated()

    def apply(self, batch: int, changes: Sequence[Change]) -> AppliedChanges:
        """Apply the changes of a batch."""
        # From here to `end` the memory is in the middle of a batch. If the batch is run again, then
        # `begin` must not continue from that, but read the files.
        self._batch = None
        border = self.border
        late = sum(border is not None and each.time < border for each in changes)
        folded = self._slices.fold(batch, border, changes)
        delta = VersionDelta.of(folded.differences, folded.ended)
        write_delta(self._folder, batch, delta)
        self._delta_length += delta.version_count
        return AppliedChanges(folded.differences, late, folded.outdated, folded.refused)

    @property
    def needs_snapshot(self) -> bool:
        """Whether the deltas since the last snapshot have grown too long.

        The first snapshot is due as soon as the deltas are as long as the table, because without
        one each new worker would have to build the whole index.
        """
        share = 1 if self._snapshot == NO_SNAPSHOT else DELTA_SHARE_MAX
        return self._delta_length >= max(DELTA_MIN, share * len(self))

    def use_snapshot(self, batch: int) -> None:
        """Let workers start from the snapshot of this batch, which exists now."""
        self._snapshot, self._delta_length = batch, 0

    def index(self, batch: int) -> WorkerIndex:
        """The subscriptions as of a batch whose changes were applied, for the workers."""
        return WorkerIndex(self._folder, self._token, self._snapshot, batch, self._copied)

    @property
    def spools(self) -> Folder:
        """The folder that has a folder for the rows of each batch, as long as they are needed."""
        return self._folder.folder("spool")

    def spooled_since(self, batch: int, time_us: int) -> list[int]:
        """The earlier batches that may have events of this time or later."""
        return [
            earlier
            for earlier in numbers_in(self._folder, "spool")
            if earlier < batch and self._latest_us_in(earlier) >= time_us
        ]

    def _latest_us_in(self, batch: int) -> int:
        latest_us = read_json(self._folder, _done_file(batch))["latest_in_batch"]
        return -(2**63) if latest_us is None else int(latest_us)

    def end(self, batch: int, latest_us_in_batch: int | None) -> None:
        """Note that a batch is done, and the time of its latest event."""
        self._lease.check()
        border = self.border
        self._final_us = None if border is None else to_us(border)
        known = [each for each in (self._latest_us, latest_us_in_batch) if each is not None]
        self._latest_us = max(known, default=None)
        document = {
            "latest": self._latest_us,
            "latest_in_batch": latest_us_in_batch,
            "snapshot": self._snapshot,
            "delta_length": self._delta_length,
            "border": self._final_us,
        }
        write_json(self._folder, _done_file(batch), document)
        self._batch = batch

    # -- files --------------------------------------------------------------------------------

    def _recover(self, batch: int) -> None:
        """Go to the state after a batch, from its files; -1 is the state before the first."""
        self._slices = TimelineSlices(self._folder)
        self._snapshot, self._delta_length = NO_SNAPSHOT, 0
        self._latest_us, self._final_us, self._batch = None, None, batch
        if batch < 0:
            return
        if not self._folder.exists(_done_file(batch)):
            raise StateError(
                f"{self._folder.location} does not know of batch {batch}; it must be kept together "
                "with Spark's own files in the checkpoint"
            )
        done = read_json(self._folder, _done_file(batch))
        self._latest_us, self._final_us = done["latest"], done["border"]
        self._snapshot, self._delta_length = done["snapshot"], done["delta_length"]
        self._slices = TimelineSlices.recover(self._folder, batch)

    def _remove_outdated(self) -> None:
        """Remove files that neither the batch that begins nor a later one can need."""
        border = self.border
        spooled = set(numbers_in(self._folder, "spool"))
        for number in sorted(spooled):
            if self._batch is None or number > self._batch:
                continue  # of an earlier attempt of this batch, which will overwrite it
            # No change can concern its events any more: such a change would be late.
            if border is not None and self._latest_us_in(number) < to_us(border):
                self.spools.remove(str(number))
                spooled.remove(number)
        self._slices.remove_outdated()
        for number in numbers_in(self._folder, "snapshot"):
            if number < self._snapshot:
                self._folder.remove(snapshot_file(number))
        for number in numbers_in(self._folder, "delta"):
            if number <= self._snapshot:
                self._folder.remove(delta_file(number))
        # Besides the last one, those of spooled batches stay: they hold the latest time in a spool.
        for number in numbers_in(self._folder, "done"):
            if number < (self._batch or 0) and number not in spooled:
                self._folder.remove(_done_file(number))


def _done_file(batch: int) -> str:
    return f"done/{batch}.json"
