"""What if, time by time: the meaning of hypothetical changes, as plainly as can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from tidegate.language.filters import parse
from tidegate.language.semantics import holds
from tidegate.language.values import Value, to_us
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version
from tidegate.matching.records import subscription_of
from tidegate.matching.subscription import Moment

Delivery = tuple[object, str, str | None]
"""An event by its key, a subscription and its subscriber."""


def live_at(versions: Iterable[Version], id: str, time: datetime) -> Version | None:
    """The version of a subscription at a time."""
    moment = Moment(to_us(time))
    of_id = (each for each in versions if each.id == id)
    found = [each for each in of_id if subscription_of(each, None).lives(moment)]
    assert len(found) <= 1
    return found[0] if found else None


def tried_at(
    versions: Iterable[Version],
    changes: Iterable[Change],
    id: str,
    time: datetime,
    beginning: datetime,
) -> Version | None:
    """The hypothetical version at a time: the live one with all changes made up to then."""
    found = live_at(versions, id, time)
    if found is not None:
        found = replace(found, origin=found.origin or found.since)
    for change in sorted(changes, key=attrgetter("time")):
        if change.id != id or change.time > time:
            continue
        if change.op is Op.SUBSCRIBE:
            begun = max(change.time, beginning) if change.time.year == 1 else change.time
            found = Version(
                id, change.filter or "", change.params or {}, change.subscriber, begun, origin=begun
            )
            found = found if begun <= time else None
        elif change.op is Op.UNSUBSCRIBE:
            found = None
        elif found is not None:
            filter = change.filter or found.filter
            params = {**found.params, **(change.params or {})}
            named = parse(filter).parameters
            fitting = {name: value for name, value in params.items() if name in named}
            found = replace(found, filter=filter, params=fitting)
    return found


def deliveries(
    found: Iterable[tuple[object, Mapping[str, Value], datetime, Version | None]],
) -> Iterator[Delivery]:
    """The deliveries of events (key, attributes, time), each with the version of its time."""
    for key, attributes, time, version in found:
        if version is None:
            continue
        subscription = subscription_of(version, None)
        environment = subscription.environment(Moment(to_us(time)))
        if holds(subscription.filter.node, attributes, environment):
            yield key, version.id, version.subscriber


def ids_of(versions: Sequence[Version], changes: Sequence[Change]) -> set[str]:
    """The ids of all subscriptions, live and hypothetical."""
    return {each.id for each in versions} | {each.id for each in changes}
