"""Matching as of the time of each event: which version of which subscription stood there then?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tidegate.language.filters import check_values
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.values import to_us
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch, VersionMatches
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.history.versions import Succession, Version, VersionDifference
from tidegate.matching.records import subscription_of

VersionKey = tuple[str, int]
"""The id of a subscription, and from when on the version holds, in microseconds."""


class AsOfMatcher:
    """Holds the versions of subscriptions, those of now and those of the past.

    Events are matched by the versions of their times. For one thread at a time.
    """

    def __init__(self, versions: Iterable[Version] = ()) -> None:
        self._matcher = ColumnarMatcher()
        self._parser = BulkParser()
        self._numbers: dict[VersionKey, int] | None = {}
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

    def apply(self, differences: Iterable[VersionDifference]) -> None:
        """Have the versions be as some differences say, each of another subscription."""
        successions: list[Succession] = []
        others: list[VersionDifference] = []
        for difference in differences:
            found = difference.successions()
            if found is None:
                others.append(difference)
            else:
                successions += found
        self.succeed(successions)
        self.exchange(others)

    def succeed(self, successions: Iterable[Succession]) -> None:
        """Let versions of now end and others come after them, in this order.

        That is a write in place and one more version of the past for each.
        """
        waiting = list(successions)
        while waiting:
            first: dict[str, Succession] = {}
            later = [each for each in waiting if first.setdefault(each.id, each) is not each]
            since = np.array([to_us(each.since) for each in first.values()], np.int64)
            params = [check_values("parameter :", each.params) for each in first.values()]
            numbers, began = self._matcher.succeed(first, since, params)
            keys = zip(first, began.tolist(), strict=True)
            self._known().update(zip(keys, numbers.tolist(), strict=True))
            waiting = later

    def exchange(self, differences: Iterable[VersionDifference]) -> None:
        """Take away what was and add what is now; each difference is of another subscription."""
        new: list[Version] = []
        old: list[Version] = []
        for difference in differences:
            old += difference.before
            new += difference.after
        self.forget(each for each in old if each.until is not None)
        for each in old:
            if each.until is None:
                self._matcher.remove(each.id)
        self._matcher.add(subscription_of(each, self._parser) for each in new if each.until is None)
        self._keep([each for each in new if each.until is not None])

    def forget(self, versions: Iterable[Version]) -> None:
        """Take versions of the past away."""
        self.forget_keys(key_of(each) for each in versions)

    def forget_keys(self, keys: Iterable[VersionKey]) -> None:
        """Take versions of the past away, by their keys."""
        numbers = self._known()
        self._matcher.forget_past([numbers.pop(each) for each in keys])

    def _keep(self, past: list[Version]) -> None:
        numbers = self._matcher.keep_past([subscription_of(each, self._parser) for each in past])
        for each, number in zip(past, numbers.tolist(), strict=True):
            self._known()[key_of(each)] = number

    def _known(self) -> dict[VersionKey, int]:
        if self._numbers is None:
            self._numbers = {(id, since): number for number, id, since in self._matcher.past()}
        return self._numbers


def key_of(version: Version) -> VersionKey:
    """What tells a version from all others."""
    return version.id, int(NO_TIME) if version.since is None else to_us(version.since)
