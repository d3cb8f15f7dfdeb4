"""Versions of subscriptions, and the difference that changes make to them.

A *version* is a subscription as it stood during one span of time. When changes arrive, late ones
included, the versions of a subscription before and after them are compared:

- a *difference* lists the versions that are removed and added;
- a *succession* is the most frequent difference: an open version ends and another one follows that
  differs in parameter values only, so an index needs one write in place and one new past version;
- a *delta* collects successions, the other differences, and the versions that are forgotten. It is
  the only form in which changes reach an index, in this process or by a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from tidegate.language.values import to_us
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.records import SubscriptionRecord

Version = SubscriptionRecord
"""A version is a record; from a log of changes it always has ``since`` and ``origin``, and has
``until`` if it has ended. A version without ``until`` is open."""

VersionKey = tuple[str, int]
"""The id of a subscription, and the start of the version in microseconds since 1970.

The start is the time of the change that made the version. Late changes do not move it, though they
may give the version another end or other values, so the key stays good.
"""


def key_of(version: Version) -> VersionKey:
    """The key of a version, unique among all versions of all subscriptions."""
    return version.id, int(NO_TIME) if version.since is None else to_us(version.since)


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """How the versions of one subscription differ before and after some changes."""

    before: tuple[Version, ...]
    """Versions that no longer exist, or that have another end now."""
    after: tuple[Version, ...]
    """Versions that are new, or that have another end now."""

    @property
    def since(self) -> datetime:
        """The time from which the subscription differs."""
        firsts = [some[0] for some in (self.before, self.after) if some]
        if len(firsts) == 2 and _are_same(*(replace(each, until=None) for each in firsts)):
            # only the end differs: before the earlier of the two ends nothing has changed
            times = [each.until for each in firsts]
        else:
            times = [each.since for each in firsts]
        return min(each for each in times if each is not None)

    def successions(self) -> list[Succession] | None:
        """The difference as successions in order of time; None if it is not just successions.

        It is if the open version gets a known end and is followed by versions with other parameter
        values, of which the last is open again: the effect of updates that arrive in time.
        """
        if len(self.before) != 1 or len(self.after) < 2:
            return None
        (old,), (first, *_) = self.before, self.after
        if old.until is not None or self.after[-1].until is not None or old.since != first.since:
            return None
        if not _have_same_params(old, first):
            return None
        found: list[Succession] = []
        for version, following in pairwise((old, *self.after)):
            if not _differ_by_params(version, following):
                return None
            if version is not old and following.since is not None:
                params = _changed_params(version.params, following.params)
                found.append(Succession(following.id, following.since, params))
        return found


@dataclass(frozen=True, slots=True)
class Succession:
    """The end of the open version of a subscription and the start of the next one."""

    id: str
    since: datetime
    params: Mapping[str, object]
    """The parameters whose values differ; None for one that loses its value."""


@dataclass(frozen=True, slots=True)
class VersionDelta:
    """Operations on the versions of an index, in this order."""

    ended: Sequence[VersionKey]
    """Past versions to forget."""
    successions: Sequence[Succession]
    """Each is the cheapest form of a difference; those of one subscription are in order of time."""
    exchanges: Sequence[VersionDifference]
    """The other differences, each of another subscription: remove ``before``, add ``after``."""

    @classmethod
    def of(
        cls, differences: Iterable[VersionDifference], ended: Iterable[Version] = ()
    ) -> VersionDelta:
        """The delta of differences, each of another subscription, and of versions to forget."""
        successions: list[Succession] = []
        exchanges: list[VersionDifference] = []
        for difference in differences:
            found = difference.successions()
            if found is None:
                exchanges.append(difference)
            else:
                successions += found
        return cls([key_of(each) for each in ended], successions, exchanges)

    @property
    def version_count(self) -> int:
        """The number of versions that are removed and added, which measures the work to apply it.

        A succession counts three: one open version removed, one past and one open version added.
        """
        exchanged = sum(len(each.before) + len(each.after) for each in self.exchanges)
        return 3 * len(self.successions) + exchanged


def difference_between(before: Sequence[Version], after: Sequence[Version]) -> VersionDifference:
    """The difference between two lists of versions of a subscription, each in order of time.

    Versions that both begin with are left out. All after the first that differs are listed, even
    those that are in both: changes are rarely so late that this matters.
    """
    same = 0
    while same < min(len(before), len(after)) and _are_same(before[same], after[same]):
        same += 1
    return VersionDifference(tuple(before[same:]), tuple(after[same:]))


def _changed_params(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, object]:
    """The parameters that have another value or another kind of value than before."""
    names = {**before, **after}
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return {name: new for name, old, new in pairs if type(old) is not type(new) or old != new}


def _differ_by_params(a: Version, b: Version) -> bool:
    """Whether two versions of a subscription differ at most by parameters and times."""
    return (
        a.filter == b.filter
        and a.subscriber == b.subscriber
        and a.origin == b.origin
        # one that ended and began again at the same time may have another evolve mode
        and a.evolve == b.evolve
    )


def _have_same_params(a: Version, b: Version) -> bool:
    """Whether all parameter values are equal and of equal type: in Python `1 == True`."""
    if a.params != b.params:
        return False
    return all(type(value) is type(a.params[name]) for name, value in b.params.items())


def _are_same(a: Version, b: Version) -> bool:
    """Whether two versions are equal, types of parameter values included."""
    return a == b and _have_same_params(a, b)
