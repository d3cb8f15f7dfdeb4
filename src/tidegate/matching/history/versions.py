"""Versions of subscriptions: how each stood, from when until when, by a log of its changes.

Theory of operation. A subscription is the fold of its changes in the order of their times; changes
of one time stay in the order in which they came. Each change that can be made ends one version and
begins another, which is the same subscription: its `t` counts on. A change that cannot be made (of
a subscription that is not there, a second `subscribe`, a bad filter) is passed over.

A change may come late. Then the versions of its subscription are folded anew, and what differs from
before is what others have to know. A change that was passed over may fit by then, so none is
refused before changes of its time are final.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from operator import attrgetter

from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.expressions import ParameterRef
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.records import SubscriptionRecord, checked_parameters

Version = SubscriptionRecord
"""A version is a record that always has ``since`` and ``origin``, and ``until`` if it has ended."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that could not be made, and why."""

    change: Change
    reason: str


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """How the versions of one subscription differ from before."""

    before: tuple[Version, ...]
    """Versions that are no more, or that end at another time now."""
    after: tuple[Version, ...]
    """Versions that are new, or that end at another time now."""

    @property
    def since(self) -> datetime:
        """From when on the subscription is another than before."""
        firsts = [some[0] for some in (self.before, self.after) if some]
        if len(firsts) == 2 and _are_same(*(replace(each, until=None) for each in firsts)):
            moments = [each.until for each in firsts]
        else:
            moments = [each.since for each in firsts]
        return min(each for each in moments if each is not None)

    def successions(self) -> list[Succession] | None:
        """The same as successions, one after the other; None if it is more than that.

        It is no more if parameters change from now on, which is what most changes do.
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
    """A version of now that ends where another one begins, with other values of parameters."""

    id: str
    since: datetime
    params: Mapping[str, object]
    """The parameters that have other values; None if one has none any more."""


@dataclass(frozen=True, slots=True)
class _SubscriptionState:
    """How a subscription stands at some time."""

    version: Version | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    """All parameters ever set: a later filter may name one that this one does not."""
    names: Sequence[str] | None = None
    """The parameters that the filter names; None if it was not read yet."""


@dataclass(slots=True)
class _Timeline:
    """The changes of one subscription that are not final yet, and how it stands before them."""

    base: _SubscriptionState = field(default_factory=_SubscriptionState)
    changes: list[Change] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)


class Timelines:
    """All subscriptions through time, by their changes.

    >>> from datetime import UTC, datetime
    >>> noon, one = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)
    >>> timelines = Timelines()
    >>> _ = timelines.take([Change(one, Op.UNSUBSCRIBE, "s"),
    ...                     Change(noon, Op.SUBSCRIBE, "s", "price < 5")])
    >>> [(each.filter, each.since.hour, each.until.hour) for each in timelines.versions()]
    [('price < 5', 12, 13)]
    """

    def __init__(self) -> None:
        self._timelines: dict[str, _Timeline] = {}
        self._fold = _Fold()
        self._open: list[tuple[datetime, str]] = []
        """When some changes were made that are not final, and of which subscription: a heap."""
        self._border: datetime | None = None
        self._current = 0

    def versions(self) -> Iterator[Version]:
        """All versions that are not forgotten, those of one subscription in order."""
        for timeline in self._timelines.values():
            yield from timeline.versions

    def take(self, changes: Iterable[Change]) -> list[VersionDifference]:
        """Take changes, in the order in which they came; gives what differs from before."""
        changed: dict[str, _Timeline] = {}
        for change in changes:
            timeline = self._timelines.setdefault(change.id, _Timeline())
            place = bisect_right(timeline.changes, change.time, key=attrgetter("time"))
            timeline.changes.insert(place, change)
            changed[change.id] = timeline
            heapq.heappush(self._open, (change.time, change.id))
        found: list[VersionDifference] = []
        for timeline in changed.values():
            before = timeline.versions
            self._refold(timeline)
            difference = _difference(before, timeline.versions)
            if difference.before or difference.after:
                found.append(difference)
        return found

    def make_final(self, border: datetime) -> tuple[list[Version], list[Refusal]]:
        """Let no more changes come of times before ``border``.

        Gives the versions that ended before or at it, which are now forgotten, and the changes that
        never could be made.
        """
        self._border = border
        ids: set[str] = set()
        while self._open and self._open[0][0] < border:
            ids.add(heapq.heappop(self._open)[1])
        ended: list[Version] = []
        refused: list[Refusal] = []
        for id in ids:
            timeline = self._timelines[id]
            old = [change for change in timeline.changes if change.time < border]
            timeline.changes = timeline.changes[len(old) :]
            refused += self._fold.rebase(timeline, old)
            ended += [each for each in timeline.versions if _ended(each, border)]
            timeline.versions = [each for each in timeline.versions if not _ended(each, border)]
            if timeline.base.version is None and not (timeline.changes or timeline.versions):
                del self._timelines[id]
        return ended, refused

    def __len__(self) -> int:
        """How many subscriptions there are or were of late, or may come to be by late changes."""
        return len(self._timelines)

    @property
    def current(self) -> int:
        """How many subscriptions there are after all changes."""
        return self._current

    def dump(self) -> Iterator[tuple[str, Version | None, Mapping[str, object], list[Change]]]:
        """All that has to be kept: of each subscription its id, the version before all changes that
        are not final, all parameters set by then, and those changes."""
        for id, timeline in self._timelines.items():
            yield id, timeline.base.version, timeline.base.params, timeline.changes

    @classmethod
    def restore(
        cls,
        dumped: Iterable[tuple[str, Version | None, Mapping[str, object], list[Change]]],
        border: datetime | None,
    ) -> Timelines:
        """What was dumped; ``border`` is what was made final before."""
        made = cls()
        made._border = border
        for id, base, params, changes in dumped:
            timeline = made._timelines[id] = _Timeline(_SubscriptionState(base, params), changes)
            made._open += [(change.time, id) for change in changes]
            made._refold(timeline)
        heapq.heapify(made._open)
        return made

    def _refold(self, timeline: _Timeline) -> None:
        made = self._fold.versions(timeline)
        self._current -= _goes_on(timeline.versions)
        timeline.versions = [each for each in made if not _ended(each, self._border)]
        self._current += _goes_on(timeline.versions)

    def refusals(self) -> list[Refusal]:
        """The changes that cannot be made, as far as is known."""
        return [
            refusal
            for timeline in self._timelines.values()
            for refusal in self._fold.rebase(replace(timeline), timeline.changes)
        ]


def versions_of(changes: Iterable[Change]) -> tuple[list[Version], list[Refusal]]:
    """All versions that a whole log gives, and the changes that cannot be made."""
    timelines = Timelines()
    timelines.take(changes)
    return list(timelines.versions()), timelines.refusals()


class _Fold:
    """Makes versions of changes."""

    def __init__(self) -> None:
        self._parser = BulkParser()
        self._known_names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def versions(self, timeline: _Timeline) -> list[Version]:
        """The version before all changes and those that they make."""
        current = timeline.base = self._named(timeline.base)
        steps = [] if current.version is None else [current.version]
        for change in timeline.changes:
            try:
                after = self._made(current, change)
            except TidegateError:
                continue
            if current.version is not None:
                steps[-1] = replace(current.version, until=change.time)
            if after.version is not None:
                steps.append(after.version)
            current = after
        return [each for each in steps if each.since != each.until]

    def rebase(self, timeline: _Timeline, old: Sequence[Change]) -> list[Refusal]:
        """Let the version before all changes be the one after some; gives those that do not fit."""
        refused: list[Refusal] = []
        timeline.base = self._named(timeline.base)
        for change in old:
            try:
                timeline.base = self._made(timeline.base, change)
            except TidegateError as error:
                refused.append(Refusal(change, str(error)))
        return refused

    def _named(self, standing: _SubscriptionState) -> _SubscriptionState:
        """The same, with the names that the filter has."""
        if standing.version is None or standing.names is not None:
            return standing
        version = standing.version
        return replace(standing, names=self._names(version.id, version.filter))

    def _made(self, current: _SubscriptionState, change: Change) -> _SubscriptionState:
        """How a subscription stands after a change."""
        if change.op is Op.SUBSCRIBE:
            return self._begun(current, change)
        version, names = current.version, current.names
        if version is None:
            raise SubscriptionError(
                f"there is no subscription {change.id!r} at {change.time.isoformat()}"
            )
        if change.op is Op.UNSUBSCRIBE:
            return _SubscriptionState()
        filter = version.filter if change.filter is None else change.filter
        if change.filter is not None or names is None:
            names = self._names(change.id, filter)
        given = change.params or {}
        checked_parameters(names, given)
        params = {**current.params, **given}
        fitting = {name: value for name, value in params.items() if name in names}
        made = replace(version, filter=filter, params=fitting, since=change.time)
        return _SubscriptionState(made, params, names)

    def _begun(self, current: _SubscriptionState, change: Change) -> _SubscriptionState:
        if current.version is not None:
            raise SubscriptionError(f"there already is a subscription {change.id!r}")
        filter, params = change.filter or "", change.params or {}
        names = self._names(change.id, filter)
        checked_parameters(names, params)
        begun = Version(
            change.id,
            filter,
            params,
            change.subscriber,
            change.time,
            origin=change.time,
            evolve=change.evolve,
        )
        return _SubscriptionState(begun, params, names)

    def _names(self, id: str, filter: str) -> tuple[str, ...]:
        try:
            _, row = self._parser.read(filter)
        except TidegateError as error:
            raise SubscriptionError(f"subscription {id!r}: {error}") from None
        names = tuple(each.name for each in row if isinstance(each, ParameterRef))
        return self._known_names.setdefault(names, names)  # few filters name others


def _goes_on(versions: Sequence[Version]) -> bool:
    """Whether a subscription with such versions is there after all changes."""
    return bool(versions) and versions[-1].until is None


def _ended(version: Version, border: datetime | None) -> bool:
    return border is not None and version.until is not None and version.until <= border


def _difference(before: Sequence[Version], after: Sequence[Version]) -> VersionDifference:
    """What is in one list and not in the other; most often that is at the end of both."""
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
    """Whether two versions of a subscription differ by parameters and times only."""
    return a.filter == b.filter and a.subscriber == b.subscriber and a.origin == b.origin


def _have_same_params(a: Version, b: Version) -> bool:
    """Whether parameters are the same; to Python `1` and `True` are equal."""
    if a.params != b.params:
        return False
    return all(type(value) is type(a.params[name]) for name, value in b.params.items())


def _are_same(a: Version, b: Version) -> bool:
    """Whether nothing tells two versions from each other."""
    return a == b and _have_same_params(a, b)
