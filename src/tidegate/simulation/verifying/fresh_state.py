"""The state of all brokers computed from scratch, to compare what they have come to with it.

What a broker holds must not depend on how it came about: whatever was subscribed, cancelled, hidden
and uncovered before, and however often links went down. So a second world is made in which brokers
know their links from the beginning and every client asks, once, for what it has now.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeVar

from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import filter_of
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import request_of
from tidegate.routing.forwarding import Forwarding, NeighbourAsker
from tidegate.routing.messages import Client, Message, Peer
from tidegate.simulation.world import World

T = TypeVar("T")


class _Nobody:
    """A client that wants no answers."""

    def receive(self, message: Message, now_us: int) -> None:
        """Take what comes."""


def recomputed(world: World) -> World:
    """Another world with the same brokers, links and clients, where nothing ever changed."""
    fresh = World(
        world.topology, world.routing, merging=world.merging, only_advertised=world.only_advertised
    )
    for client, home in world.home.items():
        fresh.admit(client, _Nobody(), home)
        for offer in world.sites[home].broker.offers.asked(client):
            fresh.request(client, m.Advertise(offer))
    fresh.run()
    for client, home in world.home.items():
        broker = world.sites[home].broker
        for wanted in broker.subscriptions.asked(client):
            fresh.request(client, m.Subscribe(filter_of(wanted)))
        for named in broker.claims.held(client):
            fresh.request(client, request_of(named))
    fresh.run()
    return fresh


def differences(world: World) -> list[str]:
    """Where brokers hold something else than in the recomputed world.

    Says nothing of a world in which something is down, or in which filters are merged: which ones
    become one depends on who came first.
    """
    is_whole = all(site.is_up for site in world.sites.values()) and all(
        line.is_up for line in world.lines.values()
    )
    if not is_whole or world.merging:
        return []
    fresh = recomputed(world)
    found: list[str] = []
    for name, site in world.sites.items():
        broker, other = site.broker, fresh.sites[name].broker
        found += _table_differences(name, broker.subscriptions, other.subscriptions)
        found += _table_differences(name, broker.offers, other.offers)
    return found


def _table_differences(name: Peer, table: Forwarding[T], fresh: Forwarding[T]) -> Iterator[str]:
    for node in table.poset:
        should = fresh.poset.find(node.item)
        if should is None:
            yield f"{name} holds {node.item}, which is not there if computed from scratch"
        elif _state(node) != _state(should):
            yield f"{name} has {_state(node)} for {node.item}; from scratch it is {_state(should)}"
    for node in fresh.poset:
        if table.poset.find(node.item) is None:
            yield f"{name} does not hold {node.item}, which is there if computed from scratch"


def _state(node: PosetNode[T]) -> tuple[list[str], list[str]]:
    """Who asks for something, and where it is sent."""
    return sorted(map(_asker, node.subscribers)), sorted(map(str, node.forwards))


def _asker(asker: Hashable) -> str:
    """Who asks; the name that a neighbour gives to something depends on when it came."""
    if isinstance(asker, NeighbourAsker):
        return f"{asker.peer} on {asker.key.tree}"
    return asker.identity if isinstance(asker, Client) else str(asker)
