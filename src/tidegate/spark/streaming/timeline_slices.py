"""All subscriptions of a stream through time, as the driver holds them in memory and in files.

Theory of operation. The driver folds changes into timelines (`matching/history/timelines.py`). To
find them again after a crash, it could write all timelines after each batch, which costs the size
of the table each time, or only the changes, which would have to be folded from the beginning. So it
does both, a little at a time: timelines are divided into slices by a hash of the subscription id.
Each batch writes its changes; now and then one slice is written as a whole, the one whose file is
the oldest. All slices have been written once by the time that there were twice as many changes as
there are subscriptions. So the cost of a batch grows with its changes, not with the size of the
table, and the number of changes to fold after a crash stays bounded.

- `changes/N.json`: the changes that batch N applied, and the border of lateness it began with.
- `timelines/K-N.json`: slice K as of batch N.

The state after a batch is the newest file of each slice up to that batch, with the changes of later
batches folded in. A retried batch finds the same files, whatever its first attempt wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zlib import crc32

from tidegate.language.values import from_us, to_us
from tidegate.matching.history.changes import Change
from tidegate.matching.history.timelines import Refusal, Timelines
from tidegate.matching.history.versions import Version, VersionDifference
from tidegate.spark.storage.folder import Folder
from tidegate.spark.streaming.state_files import (
    change_as_json,
    change_of_json,
    numbers_in,
    read_json,
    timeline_as_json,
    timeline_of_json,
    write_json,
)

SLICES = 16
CHANGES_MIN = 2_000
"""Fewer changes than this are always cheaper to fold again than subscriptions are to write."""
CHANGES_SHARE_MAX = 2
"""All slices are written once per this many times as many changes as there are subscriptions."""
NOT_WRITTEN = -1


@dataclass(slots=True)
class FoldedChanges:
    """The effect of folding the changes of a batch."""

    differences: list[VersionDifference] = field(default_factory=list)
    ended: list[Version] = field(default_factory=list)
    """Versions that are forgotten, because an event of their time would be late."""
    refused: list[Refusal] = field(default_factory=list)
    """Changes that can no longer be applied, because their time is final."""
    outdated: list[Change] = field(default_factory=list)
    """Changes that came too late, when a newer one of their subscription was final."""


class TimelineSlices:
    """Timelines divided into slices, and their files in a folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._slices = [Timelines() for _ in range(SLICES)]
        self._written = [NOT_WRITTEN] * SLICES
        """For each slice the batch of its newest file."""
        self._unwritten_changes = 0
        """The number of changes so far, less those for which slices have been written."""

    def __len__(self) -> int:
        """The number of subscriptions that exist or existed within the lateness."""
        return sum(map(len, self._slices))

    @property
    def current(self) -> int:
        """The number of subscriptions that exist after all changes."""
        return sum(each.current for each in self._slices)

    def fold(self, batch: int, border: datetime | None, changes: Sequence[Change]) -> FoldedChanges:
        """Fold the changes of a batch; those of times before the border hold from it on."""
        document = {
            "border": None if border is None else to_us(border),
            "changes": [change_as_json(each) for each in changes],
        }
        write_json(self._folder, _changes_file(batch), document)
        folded = self._fold_into(range(SLICES), border, changes)
        self._unwritten_changes += len(changes)
        due = self._unwritten_changes * SLICES // self._changes_per_round()
        for _ in range(min(due, SLICES)):
            self._write_oldest(batch, border)
        return folded

    def _changes_per_round(self) -> int:
        """The number of changes after which all slices should have been written once."""
        return max(CHANGES_MIN, CHANGES_SHARE_MAX * len(self))

    def _fold_into(
        self, slices: Collection[int], border: datetime | None, changes: Iterable[Change]
    ) -> FoldedChanges:
        """Fold changes into some slices; those of the other slices are skipped."""
        dealt: dict[int, list[Change]] = {number: [] for number in slices}
        for change in changes:
            number = crc32(change.id.encode()) % SLICES
            if number in dealt:
                dealt[number].append(change)
        folded = FoldedChanges()
        for number, own in dealt.items():
            timelines = self._slices[number]
            if border is not None:
                ended, refused = timelines.make_final(border)
                folded.ended += ended
                folded.refused += refused
            taken = own
            if border is not None:
                late = [each for each in own if each.time < border]
                outdated = {id(each) for each in late if timelines.is_outdated(each)}
                folded.outdated += [each for each in late if id(each) in outdated]
                taken = [each for each in own if id(each) not in outdated]
            folded.differences += timelines.take(taken)
        return folded

    def _write_oldest(self, batch: int, border: datetime | None) -> None:
        """Write the slice whose file is the oldest."""
        number = min(range(SLICES), key=self._written.__getitem__)
        document = {
            "border": None if border is None else to_us(border),
            "timelines": [timeline_as_json(each) for each in self._slices[number].dump()],
        }
        write_json(self._folder, f"timelines/{number}-{batch}.json", document)
        self._written[number] = batch
        share = self._changes_per_round() // SLICES
        self._unwritten_changes = max(0, self._unwritten_changes - share)

    @classmethod
    def recover(cls, folder: Folder, batch: int) -> TimelineSlices:
        """The state after a batch, from its files."""
        recovered = cls(folder)
        for number, written, name in recovered._files():
            # Files of later batches are left by an attempt of a batch that is run again.
            if recovered._written[number] < written <= batch:
                recovered._written[number] = written
                recovered._slices[number] = _read_slice(folder, name)
        newest = max(recovered._written)
        for later in range(min(recovered._written) + 1, batch + 1):
            document = read_json(folder, _changes_file(later))
            border = None if document["border"] is None else from_us(document["border"])
            changes = [change_of_json(each) for each in document["changes"]]
            behind = [each for each in range(SLICES) if recovered._written[each] < later]
            recovered._fold_into(behind, border, changes)
            # An estimate: the exact number before the crash is not stored. It only decides when the
            # next slice is written.
            recovered._unwritten_changes += len(changes) if later > newest else 0
        return recovered

    def remove_outdated(self) -> None:
        """Remove files that are not needed to recover the last batch or a later one."""
        for number, written, name in self._files():
            if written < self._written[number]:
                self._folder.remove(name)
        for batch in numbers_in(self._folder, "changes"):
            if batch <= min(self._written):
                self._folder.remove(_changes_file(batch))

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """The files of slices, each with the number of its slice and its batch."""
        for name in self._folder.folder("timelines").names():
            number, written = name.removesuffix(".json").split("-")
            yield int(number), int(written), f"timelines/{name}"


def _changes_file(batch: int) -> str:
    return f"changes/{batch}.json"


def _read_slice(folder: Folder, name: str) -> Timelines:
    document = read_json(folder, name)
    border = None if document["border"] is None else from_us(document["border"])
    return Timelines.restore(map(timeline_of_json, document["timelines"]), border)
