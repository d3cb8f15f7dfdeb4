"""What must hold of the brokers of a world when nothing is on its way any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.filters import Filter
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS, Coverage
from tidegate.matching.poset.nodes import PosetNode
from tidegate.routing.broker import Broker
from tidegate.routing.forwarding import Forwarding, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Peer
from tidegate.simulation.world import World

T = TypeVar("T")


def broken_rules(world: World) -> list[str]:
    """All that does not hold."""
    found: list[str] = []
    brokers = {name: site.broker for name, site in world.sites.items() if site.is_up}
    for name, broker in brokers.items():
        found += [f"{name}: {each}" for each in _table_problems(broker.subscriptions, FILTERS)]
        found += [f"{name}: {each}" for each in _table_problems(broker.offers, ADVERTISEMENTS)]
        for what in ("subscriptions", "offers"):
            found += [f"{name}, {what}: {each}" for each in _link_problems(name, what, brokers)]
        found += [f"{name}: {each}" for each in _session_problems(world, name, broker)]
    return found


def unlike_asked(
    world: World,
    client: Client,
    wanted: Sequence[Filter],
    offered: Sequence[Advertisement],
    is_known: bool,
) -> list[str]:
    """Where brokers know of a client what they should not, or not what they should."""
    home = world.home[client]
    found: list[str] = []
    for name, site in world.sites.items():
        if not site.is_up:
            continue
        broker, is_home = site.broker, name == home
        if client in broker.sessions and not (is_home and is_known):
            found.append(f"{name}: {client.identity} has left and is still known here")
        unlike = [
            *_unlike(broker.subscriptions.held(client), wanted if is_home else (), FILTERS),
            *_unlike(broker.offers.held(client), offered if is_home else (), ADVERTISEMENTS),
        ]
        found += [f"{name}: {client.identity} {each}" for each in unlike]
    return found


def _unlike(held: Sequence[PosetNode[T]], asked: Sequence[T], order: Coverage[T]) -> Iterator[str]:
    items = [node.item for node in held]
    for item in items:
        if not any(order.covers(item, each) and order.covers(each, item) for each in asked):
            yield f"has not asked for {item}, which is held"
    for item in asked:
        if not any(order.covers(item, each) and order.covers(each, item) for each in items):
            yield f"has asked for {item}, which is not held"


def _table_problems(table: Forwarding[T], order: Coverage[T]) -> Iterator[str]:
    """See that what was sent is what rule (1) of `forwarding` says, computed from scratch."""
    for node in table.poset:
        hidden = {
            label
            for other in table.poset
            if other is not node and order.covers(other.item, node.item)
            for label in other.forwards
        }
        should = set(table.wanted(node)) - hidden
        if set(node.forwards) != should:
            yield f"{node.item} was sent to {sorted(map(str, node.forwards))}, not {should}"
        if not node.subscribers:
            yield f"nobody asks for {node.item}"


def _link_problems(name: Peer, what: str, brokers: dict[Peer, Broker]) -> Iterator[str]:
    """See that each neighbour holds exactly what was sent to it."""
    table: Forwarding[object] = getattr(brokers[name], what)
    for peer in brokers[name].around.domain_of:
        if peer not in brokers:
            yield f"has the neighbour {peer}, which is down"
            continue
        there: Forwarding[object] = getattr(brokers[peer], what)
        held = {
            asker.key
            for node in there.poset
            for asker in node.subscribers
            if isinstance(asker, NeighbourAsker) and asker.peer == name
        }
        sent = set(table.sent(peer))
        if held != sent:
            yield f"{peer} holds {sorted(held, key=str)} and was sent {sorted(sent, key=str)}"


def _session_problems(world: World, name: Peer, broker: Broker) -> Iterator[str]:
    """See that nothing is left of those who left."""
    for table in (broker.subscriptions, broker.offers):
        for node in table.poset:
            for asker in node.subscribers:
                client = asker.client if isinstance(asker, NamedAsker) else asker
                if isinstance(client, Client) and world.home[client] != name:
                    yield f"{client.identity} is at {world.home[client]} and still asks here"
    if len(broker.waves):
        yield f"{len(broker.waves)} waves have not come back"
    if len(broker.moves):
        yield f"{len(broker.moves)} moves have not ended"
