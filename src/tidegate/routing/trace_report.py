"""What a broker says of a traced event: who gets it, where it goes on, where it stops and why.

broker          its name
from            the neighbour from which the event came; null where it is published
refused         why it would be refused, where it is published
relayed         true if the broker only passes it on (summaries)
delivered       [{client, subscription, version, filter, parameters}], at most LISTED_MAX
deliveries      how many there are
undelivered     the filters of clients that come nearest, [{client, subscription, because}]
others          how many filters of clients the event does not match
patterns        how many patterns wait for such an event
passed_on       [{to, because}]
stopped         [{to, because, nearest}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidegate.language.events import Event
from tidegate.language.values import Value, format_value
from tidegate.matching.explain import ExplainedGroup, ExplainedPredicate, explain
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, event_us
from tidegate.matching.subscription import Moment, Subscription
from tidegate.routing.askers import MonitorAsker, NamedAsker
from tidegate.routing.messages import Client, Peer
from tidegate.routing.overlay.broker_domains import TreeInDomain
from tidegate.routing.spaces import routed_event
from tidegate.routing.strategies import Hops, IncomingEvent
from tidegate.routing.substrates import FilterNode

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker

LISTED_MAX = 20
"""Deliveries in a report."""
NEAREST_MAX = 3
"""Filters that do not match, in a report, for each place where the event stops."""
EXAMINED_MAX = 1_000
"""Filters that are compared with the event to find the nearest ones."""
_TEXT_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class _Miss:
    """Why a filter does not match: the predicates that do not hold."""

    who: str
    name: str | None
    filter: str
    because: list[str]
    distance: tuple[int, float]

    def to_json(self) -> dict[str, Any]:
        return {"client": self.who, "subscription": self.name, "filter": self.filter,
                "because": self.because}  # fmt: skip


def refused_report(broker: Broker, reason: str) -> dict[str, Any]:
    """The report of an event that the broker would refuse."""
    return {**_empty(broker, None), "refused": reason}


def relayed_report(broker: Broker, sender: Peer, hops: Hops) -> dict[str, Any]:
    """The report of a broker that passes an event on without looking at it."""
    passed = [{"to": peer, "because": "it is for brokers further on"} for peer, _ in hops]
    return {**_empty(broker, sender), "relayed": True, "passed_on": passed}


def report_of(
    broker: Broker, incoming: IncomingEvent, matched: list[FilterNode], hops: Hops
) -> dict[str, Any]:
    """The report of a broker that has matched an event."""
    event = routed_event(incoming.publication)
    report = _empty(broker, incoming.sender)
    delivered = list(_deliveries(broker, matched, incoming.publication.event))
    report["delivered"], report["deliveries"] = delivered[:LISTED_MAX], len(delivered)
    monitors = {a for node in matched for a in node.subscribers if isinstance(a, MonitorAsker)}
    report["patterns"] = len(monitors)
    misses = list(_undelivered(broker, event))
    report["undelivered"] = [each.to_json() for each in _nearest(misses)]
    report["others"] = len(misses)
    targets = dict(hops)
    for domain, tree, sender in broker.domains.trees_from(incoming.sender, incoming.tree):
        for peer in domain.neighbours:
            if peer in targets:
                notify = targets[peer]
                because = _passed_because(broker, peer, event, notify.targets)
                report["passed_on"].append({"to": peer, "because": because})
            elif peer != sender:
                report["stopped"].append(_stopped(broker, peer, (domain, tree, sender), event))
    return report


def _empty(broker: Broker, sender: Peer | None) -> dict[str, Any]:
    return {
        "broker": broker.name, "from": sender, "refused": None, "relayed": False,
        "delivered": [], "deliveries": 0, "undelivered": [], "others": 0, "patterns": 0,
        "passed_on": [], "stopped": [],
    }  # fmt: skip


# -- clients ----------------------------------------------------------------------------------


def _deliveries(
    broker: Broker, matched: Iterable[FilterNode], event: Event
) -> Iterator[dict[str, Any]]:
    for node in matched:
        for asker in node.subscribers:
            if isinstance(asker, Client):
                yield {"client": asker.identity, "subscription": None, "version": None,
                       "filter": _short(_written(broker, node.item)), "parameters": {}}  # fmt: skip
            elif isinstance(asker, NamedAsker):
                match = broker.named.matched_version(asker, event)
                named = broker.named.present(asker.client, asker.name)
                if match is None or named is None:
                    continue
                subscription = named.subscription
                parameters = {name: _plain(each) for name, each in subscription.parameters.items()}
                yield {"client": asker.client.identity, "subscription": asker.name,
                       "version": match.version, "filter": _short(subscription.filter),
                       "parameters": dict(islice(parameters.items(), LISTED_MAX))}  # fmt: skip


def _undelivered(broker: Broker, event: Event) -> Iterator[_Miss]:
    """The filters of this broker's clients that an event does not match, some of them."""
    for asker, item in islice(broker.subscriptions.asked_here(), EXAMINED_MAX):
        if isinstance(asker, Client):
            miss = _miss(broker, asker.identity, None, _subscription(item), event)
        elif isinstance(asker, NamedAsker):
            named = broker.named.present(asker.client, asker.name)
            if named is None:
                continue
            miss = _miss(broker, asker.client.identity, asker.name, named.subscription, event)
        else:
            continue
        if miss is not None:
            yield miss


def _written(broker: Broker, item: WantedFilter) -> WantedFilter:
    """A filter as its client has written it, without the constraint of its space."""
    written, _ = broker.spaces.unbound(item) if broker.spaces else (item, None)
    return written


# -- neighbours -------------------------------------------------------------------------------


def _passed_because(
    broker: Broker, peer: Peer, event: Event, targets: frozenset[Peer] | None
) -> str:
    strategy = broker.strategy
    if targets is not None:
        brokers = ", ".join(sorted(targets)[:LISTED_MAX])
        return f"it is for {brokers}" if targets else "the next broker to examine it is there"
    if not strategy.sends_subscriptions:
        return "events go to every neighbour"
    for node in islice(broker.subscriptions.nodes_of_peer(peer), EXAMINED_MAX):
        if node.item.matches(event):
            return f"{peer} has asked for `{_short(_written(broker, node.item))}`"
    if broker.domains.domain_of[peer].master == peer:
        return "all events go to the master"
    return "a filter of it may match"


def _stopped(broker: Broker, peer: Peer, way: TreeInDomain, event: Event) -> dict[str, Any]:
    domain, tree, _ = way
    stopped: dict[str, Any] = {"to": peer, "nearest": []}
    nodes = broker.subscriptions.nodes_of_peer(peer)
    if tree is not None and peer not in domain.downstream(tree, None):
        stopped["because"] = f"it is not on the way from {tree}"
    elif broker.strategy.sends_summaries:
        stopped["because"] = "the summaries have no subscription there that may match"
    elif broker.strategy.sends_targets:
        stopped["because"] = "none of its targets is there"
    elif not nodes:
        stopped["because"] = f"{peer} has asked for nothing"
        if broker.strategy.needs_advertisements:
            stopped["because"] += " that an advertisement here allows"
    else:
        all_of = "the only filter" if len(nodes) == 1 else f"any of the {len(nodes):,} filters"
        stopped["because"] = f"it does not match {all_of} of {peer}"
        found = (
            _miss(broker, peer, None, _subscription(node.item), event)
            for node in nodes[:EXAMINED_MAX]
        )
        misses = [each for each in found if each is not None]
        if misses:
            stopped["nearest"] = [
                {"filter": each.filter, "because": each.because} for each in _nearest(misses)
            ]
        else:
            stopped["because"] = f"the filters of {peer} that it matches are for another way"
    return stopped


# -- why not ----------------------------------------------------------------------------------


def _subscription(item: WantedFilter) -> Subscription:
    if isinstance(item, EvolvingFilter):
        return Subscription("", item.filter, since=None, origin=item.origin_us)
    return Subscription("", item)


def _miss(
    broker: Broker, who: str, name: str | None, subscription: Subscription, event: Event
) -> _Miss | None:
    """Why a subscription does not match; None if it does."""
    time_us = event_us(event)
    explained = explain(subscription, event, Moment(time_us, broker.variables.at(time_us)))
    if explained.matches:
        return None
    missing = _missing(explained.tree)
    because = [f"{_short(each.text)}: {_short(each.reason)}" for each in missing[:LISTED_MAX]]
    if not explained.in_force:
        because.insert(0, "it was not in force at that time")
    off = sum(1.0 if each.off is None else each.off for each in missing)
    text = _short(subscription.filter)
    return _Miss(who, name, text, because, (len(missing), off))


def _missing(part: ExplainedPredicate | ExplainedGroup) -> list[ExplainedPredicate]:
    """The fewest predicates that would have to hold too."""
    if part.holds:
        return []
    if isinstance(part, ExplainedPredicate):
        return [part]
    each = [_missing(inner) for inner in part.parts]
    if part.joined_by == "or":
        return min(each, key=len, default=[])
    return [predicate for inner in each for predicate in inner]


def _nearest(misses: list[_Miss]) -> list[_Miss]:
    return nsmallest(NEAREST_MAX, misses, key=lambda each: each.distance)


def _short(text: object) -> str:
    whole = str(text)
    return whole if len(whole) <= _TEXT_CHARS_MAX else f"{whole[: _TEXT_CHARS_MAX - 3]}..."


def _plain(value: Value) -> object:
    """A value for JSON, which has neither times nor infinity."""
    if isinstance(value, datetime) or value in (float("inf"), float("-inf")):
        return format_value(value)
    return value
