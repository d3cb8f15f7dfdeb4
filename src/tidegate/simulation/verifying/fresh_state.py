"""Comparison of the state of brokers with the same state computed from scratch.

What a broker holds must not depend on its history: on what was subscribed, cancelled, hidden and
uncovered before, and on how often links went down. So a second world is made in which brokers know
their links from the start and every client asks once for what it has now. The tables of both must
be equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeVar

from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import underlying_filter
from tidegate.routing import messages as m
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.clients.client_state import subscribe_request
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.messages import Client, Peer
from tidegate.routing.summaries.exchange import MergedSummary
from tidegate.routing.summaries.summaries import Summaries
from tidegate.simulation.world import SilentClient, World

T = TypeVar("T")


def fresh_world(world: World) -> World:
    """Another world with the same brokers, links and clients, but without a history."""
    fresh = World(
        world.topology, world.routing, merging=world.merging,
        only_advertised=world.only_advertised, summaries=world.summaries,
    )  # fmt: skip
    for client, home in world.home.items():
        fresh.admit(client, SilentClient(), home)
        for advertisement in world.sites[home].broker.advertisements.items_of(client):
            fresh.request(client, m.Advertise(advertisement))
    # All advertisements before all subscriptions; any order must lead to the same state, and this
    # one needs the fewest messages.
    fresh.run()
    for client, home in world.home.items():
        broker = world.sites[home].broker
        for wanted in broker.subscriptions.items_of(client):
            fresh.request(client, m.Subscribe(underlying_filter(wanted)))
        for named in broker.named.subscriptions_of(client):
            fresh.request(client, subscribe_request(named))
    fresh.run()
    return fresh


def differences_from_fresh(world: World) -> list[str]:
    """The differences between the tables of brokers and those of a fresh world.

    None are reported if a broker or link is down, because a fresh world has none that are, or if
    filters are merged, because which of them are merged depends on the order of subscriptions.
    """
    is_whole = all(site.is_up for site in world.sites.values()) and all(
        direction.is_up for direction in world.directions.values()
    )
    if not is_whole or world.merging:
        return []
    fresh = fresh_world(world)
    differences: list[str] = []
    for name, site in world.sites.items():
        broker, other = site.broker, fresh.sites[name].broker
        differences += _table_differences(name, broker.subscriptions, other.subscriptions)
        differences += _table_differences(name, broker.advertisements, other.advertisements)
        differences += _summary_differences(name, broker.summaries, other.summaries)
    return differences


def _table_differences(name: Peer, table: Forwarding[T], fresh: Forwarding[T]) -> Iterator[str]:
    for node in table.poset:
        expected = fresh.poset.find(node.item)
        if expected is None:
            yield f"{name} holds {node.item}, which is not there if computed from scratch"
        elif _state(node) != _state(expected):
            yield f"{name} has {_state(node)} for {node.item}, not {_state(expected)}"
    for node in fresh.poset:
        if table.poset.find(node.item) is None:
            yield f"{name} does not hold {node.item}, which is there if computed from scratch"


def _summary_differences(
    name: Peer, summaries: Summaries | None, fresh: Summaries | None
) -> Iterator[str]:
    """The brokers in the summaries that a broker holds, and which of them have entries."""
    if summaries is None or fresh is None:
        return
    for domain, exchange in summaries.exchanges.items():
        held, expected = exchange.held, fresh.exchanges[domain].held
        for peer in sorted(held.keys() | expected.keys()):
            actual, wanted = _merged(held.get(peer)), _merged(expected.get(peer))
            if actual != wanted:
                yield f"{name} holds of {peer} {actual}, not {wanted}"


def _merged(held: MergedSummary | None) -> str:
    if held is None:
        return "no summary"
    return f"a summary of {sorted(held.brokers)} with entries of {held.tables.owners}"


def _state(node: PosetNode[T]) -> tuple[list[str], list[str]]:
    """The askers of an item, and the destinations it was sent to."""
    return sorted(map(_asker_text, node.subscribers)), sorted(map(str, node.forwards))


def _asker_text(asker: Hashable) -> str:
    """An asker without the number of its key, which depends on when the item was sent."""
    if isinstance(asker, NeighbourAsker):
        return f"{asker.peer} on {asker.key.tree}"
    return asker.identity if isinstance(asker, Client) else str(asker)
