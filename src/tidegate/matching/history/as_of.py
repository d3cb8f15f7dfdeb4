"""Matching as of the time of each event: an event is judged by the versions of its time.

Open versions are the subscriptions of a columnar matcher; past versions are rows of the same table
with an index of their own, whose entries have the time of the event as one more range. So an update
that arrives in time is a write in place and one more past version (`Succession`), and only a late
change removes and adds versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from tidegate.language.filters import check_values
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.values import to_us
from tidegate.matching.batches import EventBatch, VersionMatches
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import DEFAULT_SIZES, IndexSizes
from tidegate.matching.history.versions import (
    Succession,
    Version,
    VersionDelta,
    VersionDifference,
    VersionKey,
    key_of,
)
from tidegate.matching.records import subscription_of
from tidegate.matching.subscription import Subscription


class AsOfMatcher:
    """The open and past versions of subscriptions, indexed.

    Not for concurrent use: one thread at a time.
    """

    def __init__(
        self, versions: Iterable[Version] = (), *, sizes: IndexSizes = DEFAULT_SIZES
    ) -> None:
        self._matcher = ColumnarMatcher(sizes=sizes)
        self._parser = BulkParser()
        self._past_numbers: dict[VersionKey, int] | None = {}
        """The row number of each past version; None after ``load``, until the first change: workers
        that only match need not read all keys of a mapped file."""
        current: list[Version] = []
        past: list[Version] = []
        for version in versions:
            (current if version.until is None else past).append(version)
        self._matcher.add(subscription_of(each, self._parser) for each in current)
        if past:
            self._add_past(past)

    def save(self, path: str | Path) -> None:
        """Write all versions, indexed, to one file that can be memory-mapped."""
        self._matcher.save(path)

    @classmethod
    def load(cls, path: str | Path, *, sizes: IndexSizes = DEFAULT_SIZES) -> AsOfMatcher:
        """A matcher on a file that ``save`` wrote; changes to it leave the file as it is."""
        loaded = cls()
        loaded._matcher = ColumnarMatcher.load(path, sizes=sizes)
        loaded._past_numbers = None
        return loaded

    def attributes(self) -> set[str]:
        """The attributes that filters name."""
        return self._matcher.attributes()

    def samples(self) -> Iterator[tuple[Subscription, int]]:
        """An open version of each shape and kinds of values, and how many are like it."""
        return self._matcher.counted_samples()

    def match(self, batch: EventBatch) -> VersionMatches:
        """The pairs of an event and a version that matches it, in the order of the events.

        Events without a time are judged by the open versions.
        """
        return self._matcher.match_versions(batch)

    def apply(self, delta: VersionDelta) -> None:
        """Change the versions as a delta says."""
        self._forget(delta.ended)
        self._succeed(delta.successions)
        self._exchange(delta.exchanges)

    def _succeed(self, successions: Iterable[Succession]) -> None:
        """End open versions and begin their successors, in the given order."""
        waiting = list(successions)
        # the matcher takes each subscription once a call: rounds of the first of each
        while waiting:
            first: dict[str, Succession] = {}
            later = [each for each in waiting if first.setdefault(each.id, each) is not each]
            since_us = np.array([to_us(each.since) for each in first.values()], np.int64)
            params = [check_values("parameter :", each.params) for each in first.values()]
            numbers, began_us = self._matcher.succeed(first, since_us, params)
            keys = zip(first, began_us.tolist(), strict=True)
            self._numbers().update(zip(keys, numbers.tolist(), strict=True))
            waiting = later

    def _exchange(self, differences: Iterable[VersionDifference]) -> None:
        """Remove the versions before and add those after, each difference of another id."""
        new: list[Version] = []
        old: list[Version] = []
        for difference in differences:
            old += difference.before
            new += difference.after
        self._forget(key_of(each) for each in old if each.until is not None)
        for each in old:
            if each.until is None:
                self._matcher.remove(each.id)
        self._matcher.add(subscription_of(each, self._parser) for each in new if each.until is None)
        self._add_past([each for each in new if each.until is not None])

    def _forget(self, keys: Iterable[VersionKey]) -> None:
        """Remove past versions."""
        numbers = self._numbers()
        self._matcher.forget_past([numbers.pop(each) for each in keys])

    def _add_past(self, past: list[Version]) -> None:
        numbers = self._matcher.keep_past([subscription_of(each, self._parser) for each in past])
        for each, number in zip(past, numbers.tolist(), strict=True):
            self._numbers()[key_of(each)] = number

    def _numbers(self) -> dict[VersionKey, int]:
        """The row number of each past version, read from the matcher when first needed."""
        if self._past_numbers is None:
            self._past_numbers = {(id, since): number for number, id, since in self._matcher.past()}
        return self._past_numbers
