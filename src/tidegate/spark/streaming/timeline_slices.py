"""All subscriptions of a stream through time, as the driver holds them and has them in files.

Theory of operation. Subscriptions are dealt to slices by a hash of their ids. Changes are noted as
they come, and now and then a slice is written as a whole, the one whose file is the oldest. How
often goes by the number of changes: all slices have been written by the time when there were twice
as many changes as there are subscriptions. So a batch costs what it has of changes, whatever the
size of the table, and what has to be played to be as after a batch stays bounded.

- `changes/N.json`: the changes that batch N took, and the border of lateness it began with.
- `timelines/K-N.json`: slice K as of batch N.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zlib import crc32

from tidegate.language.values import from_us, to_us
from tidegate.matching.history.changes import Change
from tidegate.matching.history.versions import Refusal, Timelines, Version, VersionDifference
from tidegate.spark.streaming.version_files import (
    change_as_json,
    change_of_json,
    read_json,
    timeline_as_json,
    timeline_of_json,
    write_json,
)

SLICES = 16
CHANGES_MIN = 2_000
"""So many changes are always cheaper to play than subscriptions to write."""
CHANGES_SHARE_MAX = 2
"""Changes grow to so many times the number of subscriptions before all slices are written anew."""
NOT_WRITTEN = -1


@dataclass(slots=True)
class Played:
    """What the changes of a batch did."""

    differences: list[VersionDifference] = field(default_factory=list)
    ended: list[Version] = field(default_factory=list)
    """Versions that are forgotten, because no event of their time can come."""
    refused: list[Refusal] = field(default_factory=list)
    """Changes that can no longer be made."""


class Slices:
    """Timelines in slices, and their files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slices = [Timelines() for _ in range(SLICES)]
        self._written = [NOT_WRITTEN] * SLICES
        """The batch as of which each slice was written last."""
        self._unwritten = 0
        """How many changes have come, less those for which a slice was written."""

    def __len__(self) -> int:
        """How many subscriptions there are or were of late."""
        return sum(map(len, self._slices))

    @property
    def current(self) -> int:
        """How many subscriptions there are now."""
        return sum(each.current for each in self._slices)

    def take(self, batch: int, border: datetime | None, changes: Sequence[Change]) -> Played:
        """Take the changes of a batch, none of which is of a time before the border."""
        noted = {
            "border": None if border is None else to_us(border),
            "changes": [change_as_json(each) for each in changes],
        }
        write_json(self._changes_file(batch), noted)
        played = self._play(border, changes, range(SLICES))
        self._unwritten += len(changes)
        due = self._unwritten * SLICES // max(CHANGES_MIN, CHANGES_SHARE_MAX * len(self))
        for _ in range(min(due, SLICES)):
            self._write_oldest(batch, border)
        return played

    def _play(
        self, border: datetime | None, changes: Iterable[Change], slices: Collection[int]
    ) -> Played:
        """Let changes happen to some slices."""
        dealt: dict[int, list[Change]] = {number: [] for number in slices}
        for change in changes:
            number = crc32(change.id.encode()) % SLICES
            if number in dealt:
                dealt[number].append(change)
        played = Played()
        for number, mine in dealt.items():
            timelines = self._slices[number]
            if border is not None:
                ended, refused = timelines.make_final(border)
                played.ended += ended
                played.refused += refused
            played.differences += timelines.take(mine)
        return played

    def _write_oldest(self, batch: int, border: datetime | None) -> None:
        number = min(range(SLICES), key=self._written.__getitem__)
        noted = {
            "border": None if border is None else to_us(border),
            "timelines": [timeline_as_json(each) for each in self._slices[number].dump()],
        }
        write_json(self._folder / "timelines" / f"{number}-{batch}.json", noted)
        self._written[number] = batch
        share = max(CHANGES_MIN, CHANGES_SHARE_MAX * len(self)) // SLICES
        self._unwritten = max(0, self._unwritten - share)

    @classmethod
    def recover(cls, folder: Path, batch: int) -> Slices:
        """What was there after a batch, by its files."""
        made = cls(folder)
        for number, written, path in made._files():
            if made._written[number] < written <= batch:
                made._written[number] = written
                made._slices[number] = _read_slice(path)
        last = max(made._written)
        for played in range(min(made._written) + 1, batch + 1):
            noted = read_json(made._changes_file(played))
            border = None if noted["border"] is None else from_us(noted["border"])
            changes = [change_of_json(each) for each in noted["changes"]]
            behind = [each for each in range(SLICES) if made._written[each] < played]
            made._play(border, changes, behind)
            made._unwritten += len(changes) if played > last else 0
        return made

    def remove_outdated(self) -> None:
        """Remove files that are not needed to be as after the last batch or a later one."""
        for number, written, path in self._files():
            if written < self._written[number]:
                path.unlink()
        for path in (self._folder / "changes").glob("*.json"):
            if int(path.stem) <= min(self._written):
                path.unlink()

    def _files(self) -> Iterator[tuple[int, int, Path]]:
        """The files of slices: of which slice, as of which batch."""
        for path in (self._folder / "timelines").glob("*.json"):
            number, written = path.stem.split("-")
            yield int(number), int(written), path

    def _changes_file(self, batch: int) -> Path:
        return self._folder / "changes" / f"{batch}.json"


def _read_slice(path: Path) -> Timelines:
    noted = read_json(path)
    border = None if noted["border"] is None else from_us(noted["border"])
    return Timelines.restore(map(timeline_of_json, noted["timelines"]), border)
