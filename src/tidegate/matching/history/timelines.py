"""Timelines: the versions of each subscription, folded from a log of its changes.

Rules. (1) A subscription is the fold of its changes in order of their times; changes of one time
are in the order of their `seq`, and of their arrival where that is equal. (2) Each change that can
be made ends a version and begins another one of the same subscription: its `t` keeps counting. (3)
A change that cannot be made (for an unknown subscription, a second `subscribe`, a bad filter) is
skipped. (4) The fold depends on the times and the mutual order of changes only, not on how they
were batched or when they arrived. (5) A change that comes when its time is final cannot change the
past. It is made at the border, in the order of its own time, unless a newer change of its
subscription is final already.

Theory of operation. A change may arrive late. Then the timeline of its subscription is folded again
from its *base*, the state before the earliest change that is not final, and the difference to the
former versions is returned for those who index versions. A change that was skipped may fit once
another has arrived, so changes are kept, and refused only when their time is final: then the base
moves past them, and memory stays bounded by what may still change.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter

from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.expressions import ParameterRef
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.spaces import Space
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version, VersionDifference, difference_between
from tidegate.matching.records import checked_parameters, subscription_of


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that could not be made, and why."""

    change: Change
    reason: str


@dataclass(frozen=True, slots=True)
class _SubscriptionState:
    """A subscription after some of its changes; without a version it does not exist."""

    version: Version | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    """All parameters set since it began: a later filter may name one that this filter does not."""
    names: Sequence[str] | None = None
    """The parameters that the filter names; None if the filter has not been parsed yet."""
    changed: datetime | None = None
    """The own time of the last change."""


@dataclass(slots=True)
class _Timeline:
    """One subscription: the state before its changes that are not final, and those changes."""

    base: _SubscriptionState = field(default_factory=_SubscriptionState)
    changes: list[Change] = field(default_factory=list)
    """In order of time and `seq`, and of arrival where those are equal."""
    versions: list[Version] = field(default_factory=list)
    """The fold of the changes from the base, less versions that ended at or before the border."""


TimelineRecord = tuple[str, Version | None, Mapping[str, object], datetime | None, list[Change]]
"""The id of a subscription, the version before its changes that are not final, all parameters set
by then, the time of the last change by then, and the changes that are not final. Versions are left
out: they follow from the rest."""


class Timelines:
    """All subscriptions through time, folded from their changes.

    >>> from datetime import UTC, datetime
    >>> noon, one = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)
    >>> timelines = Timelines()
    >>> _ = timelines.take([Change(one, Op.UNSUBSCRIBE, "s"),
    ...                     Change(noon, Op.SUBSCRIBE, "s", "price < 5")])
    >>> [(each.filter, each.since.hour, each.until.hour) for each in timelines.versions()]
    [('price < 5', 12, 13)]
    """

    def __init__(self, space: Space | None = None) -> None:
        """Changes that do not fit the ``space`` cannot be made."""
        self._timelines: dict[str, _Timeline] = {}
        self._fold = _Fold(space)
        self._open: list[tuple[datetime, str]] = []
        """A heap of the times of changes that are not final, each with its subscription. It finds
        the subscriptions that a new border concerns without a look at all others."""
        self._border: datetime | None = None
        self._current = 0

    def versions(self) -> Iterator[Version]:
        """All versions that are not forgotten, those of one subscription in order of time."""
        for timeline in self._timelines.values():
            yield from timeline.versions

    def take(self, changes: Iterable[Change]) -> list[VersionDifference]:
        """Take changes in the order of their arrival; returns the differences, one a subscription.

        None may be outdated. Those of times before the border of ``make_final`` hold from it on.
        """
        changed: dict[str, _Timeline] = {}
        for change in changes:
            timeline = self._timelines.setdefault(change.id, _Timeline())
            if self._border is not None and change.time < self._border:
                change = replace(change, held_from=self._border)
            place = bisect_right(timeline.changes, change.place, key=attrgetter("place"))
            timeline.changes.insert(place, change)
            changed[change.id] = timeline
            heapq.heappush(self._open, (change.time, change.id))
        found: list[VersionDifference] = []
        for timeline in changed.values():
            before = timeline.versions
            self._refold(timeline)
            difference = difference_between(before, timeline.versions)
            if difference.before or difference.after:
                found.append(difference)
        return found

    def is_outdated(self, change: Change) -> bool:
        """Whether a change of a time before the border would undo a newer one that is final.

        An end counts for the life of the subscription that had begun by its time, whatever has
        changed since: without it the newer changes could not have been made.
        """
        timeline = self._timelines.get(change.id)
        if timeline is None or timeline.base.version is None or timeline.base.changed is None:
            return False
        if change.time >= timeline.base.changed:
            return False
        began = timeline.base.version.origin
        return change.op is not Op.UNSUBSCRIBE or began is None or change.time < began

    def make_final(self, border: datetime) -> tuple[list[Version], list[Refusal]]:
        """Accept no more changes of times before ``border``.

        Returns the versions that ended at or before it, which are forgotten now, and the refusals
        of changes that can no longer be made.
        """
        self._border = border
        ids: set[str] = set()
        while self._open and self._open[0][0] < border:
            ids.add(heapq.heappop(self._open)[1])
        ended: list[Version] = []
        refused: list[Refusal] = []
        for id in ids:
            timeline = self._timelines[id]
            final = [change for change in timeline.changes if change.time < border]
            timeline.changes = timeline.changes[len(final) :]
            refused += self._fold.rebase(timeline, final)
            ended += [each for each in timeline.versions if _has_ended(each, border)]
            timeline.versions = [each for each in timeline.versions if not _has_ended(each, border)]
            if timeline.base.version is None and not (timeline.changes or timeline.versions):
                del self._timelines[id]
        return ended, refused

    def __len__(self) -> int:
        """The number of subscriptions that exist, have versions that are not forgotten, or have
        changes that a late `subscribe` could still make possible."""
        return len(self._timelines)

    @property
    def current(self) -> int:
        """The number of subscriptions that exist after all changes."""
        return self._current

    def dump(self) -> Iterator[TimelineRecord]:
        """All state that ``restore`` needs, one record a subscription."""
        for id, timeline in self._timelines.items():
            base = timeline.base
            yield id, base.version, base.params, base.changed, timeline.changes

    @classmethod
    def restore(cls, dumped: Iterable[TimelineRecord], border: datetime | None) -> Timelines:
        """The timelines of a dump; ``border`` is the last one given to ``make_final``, if any."""
        restored = cls()
        restored._border = border
        for id, base, params, changed, changes in dumped:
            timeline = _Timeline(_SubscriptionState(base, params, changed=changed), changes)
            restored._timelines[id] = timeline
            restored._open += [(change.time, id) for change in changes]
            restored._refold(timeline)
        heapq.heapify(restored._open)
        return restored

    def _refold(self, timeline: _Timeline) -> None:
        """Fold all changes of a timeline again, and keep the count of current subscriptions."""
        folded = self._fold.versions(timeline)
        self._current -= _is_current(timeline.versions)
        timeline.versions = [each for each in folded if not _is_past(each, self._border)]
        self._current += _is_current(timeline.versions)

    def refusals(self) -> list[Refusal]:
        """The changes that cannot be made unless others arrive before them."""
        return [
            refusal
            for timeline in self._timelines.values()
            for refusal in self._fold.rebase(replace(timeline), timeline.changes)
        ]


def versions_of(
    changes: Iterable[Change], space: Space | None = None
) -> tuple[list[Version], list[Refusal]]:
    """All versions of a complete log of changes, and the refusals of those that cannot be made."""
    timelines = Timelines(space)
    timelines.take(changes)
    return list(timelines.versions()), timelines.refusals()


class _Fold:
    """Folds changes into versions."""

    def __init__(self, space: Space | None) -> None:
        self._space = space
        self._parser = BulkParser()
        self._interned_names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def versions(self, timeline: _Timeline) -> list[Version]:
        """The version of the base and those that the changes make, in order of time."""
        current = timeline.base = self._with_names(timeline.base)
        versions = [] if current.version is None else [current.version]
        for change in timeline.changes:
            try:
                after = self._after(current, change)
            except TidegateError:
                continue
            if current.version is not None:
                versions[-1] = replace(current.version, until=change.since)
            if after.version is not None:
                versions.append(after.version)
            current = after
        # of several changes of one time only the last leaves a version of more than no time
        return [each for each in versions if each.since != each.until]

    def rebase(self, timeline: _Timeline, final: Sequence[Change]) -> list[Refusal]:
        """Move the base past changes that are final; returns those that could not be made."""
        refused: list[Refusal] = []
        timeline.base = self._with_names(timeline.base)
        for change in final:
            try:
                timeline.base = self._after(timeline.base, change)
            except TidegateError as error:
                refused.append(Refusal(change, str(error)))
        return refused

    def _with_names(self, state: _SubscriptionState) -> _SubscriptionState:
        """The same state with the names of the filter's parameters; a dump has none."""
        if state.version is None or state.names is not None:
            return state
        return replace(state, names=self._names(state.version.id, state.version.filter))

    def _after(self, state: _SubscriptionState, change: Change) -> _SubscriptionState:
        """The state after a change; raises TidegateError if the change cannot be made."""
        if change.op is Op.SUBSCRIBE:
            return self._begun(state, change)
        version, names = state.version, state.names
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
        params = {**state.params, **given}
        fitting = {name: value for name, value in params.items() if name in names}
        updated = replace(version, filter=filter, params=fitting, since=change.since)
        return _SubscriptionState(self._in_space(updated), params, names, change.time)

    def _begun(self, state: _SubscriptionState, change: Change) -> _SubscriptionState:
        if state.version is not None:
            raise SubscriptionError(f"there already is a subscription {change.id!r}")
        filter, params = change.filter or "", change.params or {}
        names = self._names(change.id, filter)
        checked_parameters(names, params)
        begun = Version(
            change.id,
            filter,
            params,
            change.subscriber,
            change.since,
            origin=change.time,
            evolve=change.evolve,
        )
        return _SubscriptionState(self._in_space(begun), params, names, change.time)

    def _in_space(self, version: Version) -> Version:
        """The version with parameters as the space reads them; raises if it does not fit."""
        if self._space is None:
            return version
        subscription = subscription_of(version, self._parser, self._space)
        return replace(version, params=subscription.parameters)

    def _names(self, id: str, filter: str) -> tuple[str, ...]:
        """The parameters that a filter names; raises SubscriptionError for a bad filter."""
        try:
            _, row = self._parser.read(filter)
        except TidegateError as error:
            raise SubscriptionError(f"subscription {id!r}: {error}") from None
        names = tuple(each.name for each in row if isinstance(each, ParameterRef))
        # a million subscriptions name few different sets of parameters; share the tuples
        return self._interned_names.setdefault(names, names)


def _is_current(versions: Sequence[Version]) -> bool:
    """Whether a subscription with these versions exists after all changes."""
    return bool(versions) and versions[-1].until is None


def _is_past(version: Version, border: datetime | None) -> bool:
    """Whether a version ended before the border. One that has ended at it is kept once more, so
    that the difference to before says when it ended."""
    return border is not None and version.until is not None and version.until < border


def _has_ended(version: Version, border: datetime | None) -> bool:
    """Whether a version ended at or before the border, so that no event can still meet it."""
    return border is not None and version.until is not None and version.until <= border
