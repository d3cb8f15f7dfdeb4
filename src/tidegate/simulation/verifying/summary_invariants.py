"""Invariants of the summaries of a world that is idle, computed from scratch.

1. Each broker knows the links that are up, and has chosen its parent by them.
2. The own summary of a broker has an entry for each filter that its table has sent there, and the
   over-estimate of a filter is in it: events that match the filter match the summary.
3. A neighbour holds a summary exactly if it is the parent. That summary speaks for the brokers that
   the paper's rounds say, and is the merge of their own summaries as they are now.
4. Nothing waits to be sent or acknowledged, and nothing is drained.

By 3, a broker is in the summaries of all brokers up its chain of parents, with its present filters,
and in no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.matching.summary.index import SummaryIndex
from tidegate.matching.summary.merging import merge, restrict
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Peer
from tidegate.routing.overlay.graph import Graph
from tidegate.routing.summaries.exchange import SummaryExchange
from tidegate.routing.summaries.plan import rounds
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.routing.summaries.summaries import Summaries
from tidegate.simulation.verifying.random_filters import random_event
from tidegate.simulation.world import World

EVENTS = 20
"""Random events with which the own summary of each broker is compared with its filters."""


def broken_summary_invariants(world: World) -> list[str]:
    """The violations; none if the world does not route by summaries."""
    brokers = {name: site.broker for name, site in world.sites.items() if site.is_up}
    settings = world.summaries or SummarySettings()
    graphs = {name: _links_that_are_up(world, name) for name in world.topology.domains}
    violations: list[str] = []
    for name, broker in brokers.items():
        summaries = broker.summaries
        if summaries is None:
            continue
        violations += [f"{name}: {each}" for each in _own_problems(broker, summaries, world.now_us)]
        if len(summaries.drains):
            violations.append(f"{name}: {len(summaries.drains)} drains have not ended")
        for domain, exchange in summaries.exchanges.items():
            violations += [
                f"{name}: {each}"
                for each in _exchange_problems(name, exchange, graphs[domain], brokers, settings)
            ]
    return violations


def _links_that_are_up(world: World, domain: str) -> Graph:
    links: dict[Peer, dict[Peer, int]] = {}
    for link in world.topology.links:
        if link.domain == domain and world.directions[link.a, link.b].is_up:
            links.setdefault(link.a, {})[link.b] = 1
            links.setdefault(link.b, {})[link.a] = 1
    return Graph(links)


def _own_problems(broker: Broker, summaries: Summaries, now_us: int) -> Iterator[str]:
    """Check invariant 2."""
    filters = {key.number: item for key, item in broker.subscriptions.sent(broker.name).items()}
    if summaries.own.numbers != filters.keys():
        yield f"has {sorted(summaries.own.numbers)} in its summary, not {sorted(filters)}"
    index = SummaryIndex(summaries.own.present)
    window = next(iter(summaries.own.validity()), None)
    random = Random(f"{broker.name} {now_us}")
    for _ in range(EVENTS):
        time_us = now_us if window is None else random.randint(window.begin_us, window.end_us)
        event = Event(random_event(random).attributes, from_us(max(0, time_us)))
        wanted = [each for each in filters.values() if each.matches(event)]
        if wanted and not index.owners_matching(event):
            kind = "evolving" if isinstance(wanted[0], EvolvingFilter) else "static"
            yield f"its summary misses {dict(event.attributes)}, which a {kind} filter matches"


def _exchange_problems(
    name: Peer,
    exchange: SummaryExchange,
    graph: Graph,
    brokers: Mapping[Peer, Broker],
    settings: SummarySettings,
) -> Iterator[str]:
    """Check invariants 1, 3 and 4 for a broker in one domain."""
    known = {each: set(exchange.domain.graph.neighbours(each)) for each in graph.tree(name).costs}
    actual = {each: set(graph.neighbours(each)) for each in known}
    if known != actual:
        yield f"knows the links {known}, not {actual}"
        return
    if not exchange.is_idle:
        yield "its summary waits to be sent or acknowledged"
    expected = {
        message.sender: message.merged
        for messages in rounds(graph, name, settings.degree_max, to_hubs=settings.to_hubs)
        for message in messages
        if message.receiver == name
    }
    if exchange.held.keys() != expected.keys():
        yield f"holds the summaries of {sorted(exchange.held)}, not of {sorted(expected)}"
        return
    for peer, held in exchange.held.items():
        if held.brokers != expected[peer]:
            yield f"holds of {peer} the summary of {sorted(held.brokers)}, not {expected[peer]}"
            continue
        parts = [_exchange_of(brokers[each], exchange).own.present for each in held.brokers]
        merged = merge(parts)
        if held.tables != merged:
            other = [
                owner
                for owner in sorted(held.brokers)
                if restrict(held.tables, {owner}) != restrict(merged, {owner})
            ]
            yield f"holds of {peer} a summary in which {other or 'a row'} is not as it is now"
        validity = [
            each
            for owner in held.brokers
            for each in _exchange_of(brokers[owner], exchange).own.validity()
        ]
        if sorted(held.validity) != sorted(validity):
            yield f"holds of {peer} the windows {held.validity}, not {validity}"


def _exchange_of(broker: Broker, exchange: SummaryExchange) -> SummaryExchange:
    assert broker.summaries is not None
    return broker.summaries.exchanges[exchange.domain.name]
