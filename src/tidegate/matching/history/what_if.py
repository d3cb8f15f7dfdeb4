"""What if: versions of subscriptions as they would have been with some hypothetical changes.

A hypothetical change is in force from its time on, whatever was changed later: what it sets stays
set in all versions from then on, and what it ends stays ended. That answers the question of someone
who considers a change: what would I have received with it? (What a log with one more row would have
delivered is another question; two logs can be compared for that.)
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
"""The time of a change that is in force from the beginning on."""


def with_changes(
    versions: Iterable[Version], changes: Iterable[Change], beginning: datetime | None = None
) -> list[Version]:
    """The versions as they would be with hypothetical changes.

    A new subscription of time ALWAYS begins at ``beginning``, from where its `t` counts. Raises
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
    """The versions, live and changed, of those subscriptions for which they differ."""
    before, after = _by_id(live), _by_id(changed)
    ids = [id for id in {**before, **after} if _meanings(before, id) != _meanings(after, id)]
    return (
        [each for id in ids for each in before.get(id, [])],
        [each for id in ids for each in after.get(id, [])],
    )


def _by_id(versions: Iterable[Version]) -> dict[str, list[Version]]:
    """The versions of each subscription in order of time."""
    found: dict[str, list[Version]] = {}
    for each in versions:
        found.setdefault(each.id, []).append(each)
    for some in found.values():
        some.sort(key=lambda each: each.since or ALWAYS)
    return found


def _meanings(versions: Mapping[str, list[Version]], id: str) -> list[object]:
    """The versions of a subscription in a form that is equal if they match the same events.

    Parameter values have their kinds beside them: `true` and 1 are equal to Python only.
    """
    found: list[object] = []
    for each in versions.get(id, []):
        try:
            values = check_values("parameter :", each.params).items()
        except TidegateError:
            found.append(each)  # a bad value is reported where the version is indexed
            continue
        params = {name: (kind_of(value), value) for name, value in values if value is not None}
        found.append((replace(each, params={}, origin=_origin(each)), params))
    return found


def _origin(version: Version) -> datetime | None:
    """The time from which `t` counts, written out, because a cut moves ``since``."""
    return version.since if version.origin is None else version.origin


def _cut(versions: Sequence[Version], time: datetime) -> tuple[list[Version], list[Version]]:
    """The versions before a time and those from then on; one that spans it is cut in two."""
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
    """Raise SubscriptionError if a cut would change what `t` is.

    In a version without a beginning `t` is always 0; the later half would have one.
    """
    if _origin(version) is not None:
        return
    leaves = expression_leaves(_filter(version.id, version.filter).node)
    if any(isinstance(leaf, Elapsed) for leaf in leaves):
        raise SubscriptionError(
            f"subscription {version.id!r} is a function of `t` and has no `since`; "
            "give it one, or let the change be in force from the beginning"
        )


def _changed(
    earlier: Sequence[Version],
    later: Sequence[Version],
    change: Change,
    beginning: datetime | None,
) -> list[Version]:
    """The versions from the time of a change on; ``later`` are those without the change."""
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
    # the filter may have changed over time; a parameter that one of its texts names can be set
    named = dict.fromkeys(name for some in names.values() for name in some)
    _check_parameters(change.id, list(named), change.params or {})
    updated: list[Version] = []
    for each, filter, known in zip(later, filters, _set_params(earlier, later), strict=True):
        params = {**known, **(change.params or {})}
        fitting = {name: value for name, value in params.items() if name in names[filter]}
        updated.append(replace(each, filter=filter, params=fitting, origin=_origin(each)))
    return updated


def _set_params(earlier: Sequence[Version], later: Sequence[Version]) -> list[Mapping[str, object]]:
    """For each later version, all parameters set since its subscription began.

    A new filter may name one that the filter of the version does not, and that was set before.
    """
    params: dict[str, object] = {}
    found: list[Mapping[str, object]] = []
    before: Version | None = None
    for each in [*earlier, *later]:
        # another origin: the id was unsubscribed and subscribed again, and starts with no values
        is_same = before is not None and _origin(before) == _origin(each)
        params = {**(params if is_same else {}), **each.params}
        found.append(params)
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
