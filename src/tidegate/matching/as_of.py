"""Matching as of the time of each event: which version of which subscription stood there then?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tidegate.language.bulk import BulkParser
from tidegate.language.filters import check_values
from tidegate.language.values import to_micros
from tidegate.matching.batches import EventBatch, VersionMatches
from tidegate.matching.columnar import ColumnarMatcher
from tidegate.matching.parts import NO_TIME
from tidegate.matching.records import subscription_of
from tidegate.matching.versions import Difference, Version


class AsOfMatcher:
    """Holds the versions of subscriptions, those of now and those of the past.

    Events are matched by the versions of their times. For one thread at a time.
    """

    def __init__(self, versions: Iterable[Version] = ()) -> None:
        self._matcher = ColumnarMatcher()
        self._parser = BulkParser()
        self._numbers: dict[tuple[str, int], int] | None = {}
        """The numbers of the versions of the past; None if they were not looked at yet."""
        current: list[Version] = []
        past: list[Version] = []
        for version in versions:
            (current if version.until is None else past).append(version)
        self._matcher.add(subscription_of(each, self._parser) for each in current)
        if past:
            self._keep(past)

    def __len__(self) -> int:
        """How many subscriptions there are now."""
        return len(self._matcher)

    def save(self, path: str | Path) -> None:
        """Write it all to one file that can be memory-mapped."""
        self._matcher.save(path)

    @classmethod
    def load(cls, path: str | Path) -> AsOfMatcher:
        """What ``save`` wrote; changes to it leave the file alone."""
        made = cls()
        made._matcher = ColumnarMatcher.load(path)
        made._numbers = None
        return made

    def match(self, batch: EventBatch) -> VersionMatches:
        """The pairs of an event and a version that matches it, in the order of the events."""
        return self._matcher.match_versions(batch)

    def apply(self, differences: Iterable[Difference]) -> None:
        """Have the versions be as some differences say.

        The common one, a change of parameters from now on, is a write in place and one more version
        of the past.
        """
        past: list[Version] = []
        for difference in differences:
            if not self._is_update(difference):
                past += self._exchanged(difference)
                continue
            (old,), (ended, new) = difference.before, difference.after
            past.append(ended)
            names = {*old.params, *new.params}
            values = {name: new.params.get(name) for name in names}
            self._matcher.update(old.id, check_values("parameter :", values))
            self._matcher.begin(old.id, _micros(new))
        self._keep(past)

    @staticmethod
    def _is_update(difference: Difference) -> bool:
        before, after = difference.before, difference.after
        return (
            len(before) == 1
            and len(after) == 2
            and before[0].until is None
            and after[1].until is None
            and replace(after[0], until=None) == before[0]
            and (after[1].filter, after[1].origin) == (before[0].filter, before[0].origin)
        )

    def _exchanged(self, difference: Difference) -> list[Version]:
        """Take away what was and add what is now; gives the versions of the past among those."""
        self.forget(each for each in difference.before if each.until is not None)
        for each in difference.before:
            if each.until is None:
                self._matcher.remove(each.id)
        current = [each for each in difference.after if each.until is None]
        self._matcher.add([subscription_of(each, self._parser) for each in current])
        return [each for each in difference.after if each.until is not None]

    def forget(self, versions: Iterable[Version]) -> None:
        """Take versions of the past away."""
        numbers = self._known()
        self._matcher.forget_past([numbers.pop((each.id, _micros(each))) for each in versions])

    def _keep(self, past: list[Version]) -> None:
        numbers = self._matcher.keep_past([subscription_of(each, self._parser) for each in past])
        for each, number in zip(past, numbers.tolist(), strict=True):
            self._known()[each.id, _micros(each)] = number

    def _known(self) -> dict[tuple[str, int], int]:
        if self._numbers is None:
            self._numbers = {(id, since): number for number, id, since in self._matcher.past()}
        return self._numbers


def _micros(version: Version) -> int:
    """From when on a version holds, which tells it from all others of its subscription."""
    return int(NO_TIME) if version.since is None else to_micros(version.since)
