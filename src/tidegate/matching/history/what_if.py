"""What if: versions of subscriptions as they would have been with some changes.

A change that is tried out holds from its time on, whatever was changed later: what it sets stays
set in all versions from then on, and what it ends stays ended. That is the question of someone who
thinks about a change: what would I have got with it? (What a log would have given with one row more
is another question; two logs can be compared for that.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter

from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.expressions import Elapsed
from tidegate.language.filters import Filter, check_values
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import expression_leaves
from tidegate.language.values import kind_of
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version
from tidegate.matching.records import checked_parameters

ALWAYS = datetime.min.replace(tzinfo=UTC)
"""The time of a change that holds from the beginning on."""


def with_changes(
    versions: Iterable[Version], changes: Iterable[Change], beginning: datetime | None = None
) -> list[Version]:
    """The versions as they would be if changes held from their times on.

    A new subscription that always held begins at ``beginning``, from where its `t` counts. Raises
    SubscriptionError for a change that cannot be made.

    >>> live = [Version("s", "price < :limit", {"limit": 5})]
    >>> [each.params for each in with_changes(live, [Change(ALWAYS, Op.UPDATE, "s",
    ...                                                     params={"limit": 7})])]
    [{'limit': 7}]
    """
    by_id = _by_id(versions)
    for change in sorted(changes, key=attrgetter("time")):
        earlier, later = _cut(by_id.get(change.id, []), change.time)
        by_id[change.id] = earlier + _changed(earlier, later, change, beginning)
    return [each for some in by_id.values() for each in some]


def differing(
    live: Iterable[Version], changed: Iterable[Version]
) -> tuple[list[Version], list[Version]]:
    """The versions of those subscriptions that are not the same in both."""
    before, after = _by_id(live), _by_id(changed)
    ids = [id for id in {**before, **after} if _meanings(before, id) != _meanings(after, id)]
    return (
        [each for id in ids for each in before.get(id, [])],
        [each for id in ids for each in after.get(id, [])],
    )


def _by_id(versions: Iterable[Version]) -> dict[str, list[Version]]:
    """The versions of each subscription in the order of their times."""
    found: dict[str, list[Version]] = {}
    for each in versions:
        found.setdefault(each.id, []).append(each)
    for some in found.values():
        some.sort(key=lambda each: each.since or ALWAYS)
    return found


def _meanings(versions: Mapping[str, list[Version]], id: str) -> list[object]:
    """All that matters of the versions of a subscription; `true` and 1 are equal only to Python."""
    found: list[object] = []
    for each in versions.get(id, []):
        try:
            values = check_values("parameter :", each.params).items()
        except TidegateError:
            found.append(each)  # what is wrong with it is told when it is indexed
            continue
        params = {name: (kind_of(value), value) for name, value in values if value is not None}
        found.append((replace(each, params={}, origin=_origin(each)), params))
    return found


def _origin(version: Version) -> datetime | None:
    return version.since if version.origin is None else version.origin


def _cut(versions: Sequence[Version], time: datetime) -> tuple[list[Version], list[Version]]:
    """What holds before a time and what holds from then on."""
    earlier: list[Version] = []
    later: list[Version] = []
    for each in versions:
        if each.until is not None and each.until <= time:
            earlier.append(each)
        elif time == ALWAYS or (each.since is not None and each.since >= time):
            later.append(each)
        else:
            _check_can_be_cut(each)
            earlier.append(replace(each, until=time))
            later.append(replace(each, since=time, origin=_origin(each)))
    return earlier, later


def _check_can_be_cut(version: Version) -> None:
    """Where `t` has no beginning it is 0, and it would count in a version that has one."""
    if _origin(version) is not None:
        return
    leaves = expression_leaves(_filter(version.id, version.filter).node)
    if any(isinstance(leaf, Elapsed) for leaf in leaves):
        raise SubscriptionError(
            f"subscription {version.id!r} is a function of `t` and has no `since`; "
            "give it one, or let the change hold from the beginning"
        )


def _changed(
    earlier: Sequence[Version],
    later: Sequence[Version],
    change: Change,
    beginning: datetime | None,
) -> list[Version]:
    """What holds from the time of a change on."""
    since = "" if change.time == ALWAYS else f" from {change.time.isoformat()} on"
    if change.op is Op.SUBSCRIBE:
        if later:
            raise SubscriptionError(f"there already is a subscription {change.id!r}{since}")
        return [_begun(change, beginning)]
    if not later:
        raise SubscriptionError(f"there is no subscription {change.id!r}{since}")
    return [] if change.op is Op.UNSUBSCRIBE else _updated(earlier, later, change)


def _begun(change: Change, beginning: datetime | None) -> Version:
    filter, params = change.filter or "", change.params or {}
    _check_parameters(change.id, _filter(change.id, filter).parameters, params)
    time = beginning if change.time == ALWAYS else change.time
    return Version(
        change.id, filter, params, change.subscriber, time, origin=time, evolve=change.evolve
    )


def _updated(earlier: Sequence[Version], later: Sequence[Version], change: Change) -> list[Version]:
    filters = [change.filter or each.filter for each in later]
    names = {each: _filter(change.id, each).parameters for each in filters}
    # its filter may have changed over time; a parameter that one of them has can be set
    named = dict.fromkeys(name for some in names.values() for name in some)
    _check_parameters(change.id, list(named), change.params or {})
    made: list[Version] = []
    for each, filter, known in zip(later, filters, _known(earlier, later), strict=True):
        params = {**known, **(change.params or {})}
        fitting = {name: value for name, value in params.items() if name in names[filter]}
        made.append(replace(each, filter=filter, params=fitting, origin=_origin(each)))
    return made


def _known(earlier: Sequence[Version], later: Sequence[Version]) -> list[Mapping[str, object]]:
    """All parameters set by then, for each version: a new filter may name one that the filter of
    that time does not."""
    known: dict[str, object] = {}
    found: list[Mapping[str, object]] = []
    before: Version | None = None
    for each in [*earlier, *later]:
        is_same = before is not None and _origin(before) == _origin(each)
        known = {**(known if is_same else {}), **each.params}
        found.append(known)
        before = each
    return found[len(earlier) :]


def _filter(id: str, text: str) -> Filter:
    try:
        return Filter(parse_filter(text))
    except TidegateError as error:
        raise SubscriptionError(f"subscription {id!r}: {error}") from None


def _check_parameters(id: str, names: Sequence[str], params: Mapping[str, object]) -> None:
    try:
        checked_parameters(names, params)
    except TidegateError as error:
        raise SubscriptionError(f"subscription {id!r}: {error}") from None
