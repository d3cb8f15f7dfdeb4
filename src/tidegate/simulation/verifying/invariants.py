"""Invariants of the brokers of a world that is idle, that is, without any messages on their way.

1. Each table has sent exactly what rule (1) of `forwarding.py` requires, computed from scratch: a
   filter goes to all destinations of those who asked for it, except to those where a filter that
   covers it has gone.
2. Each neighbour holds exactly what was sent to it (rule 2 there). Together with 1, no filter is
   lost or left over anywhere in the overlay.
3. A client is known only at its home broker, with exactly the filters and advertisements it has
   asked for.
4. No wave and no move of a client is unfinished.
5. With link matching, each filter has the links that lead to those who asked for it, and on each
   spanning tree exactly those are in the mask to which the path leads over this broker. Both are
   computed from scratch, in another way than by the broker: path by path, without virtual links.
6. With summaries, the invariants of `summary_invariants.py`.

Deliveries can be right by chance while one of these is broken; then a later change goes wrong. So
a run checks them after each round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.filters import Filter
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS, Coverage
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.askers import NamedAsker, NeighbourAsker
from tidegate.routing.broker import Broker
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.links.link_matching import LinkMatching
from tidegate.routing.messages import Client, Peer
from tidegate.routing.tables.covered_nodes import DestinationsOf
from tidegate.simulation.verifying.summary_invariants import broken_summary_invariants
from tidegate.simulation.world import World

T = TypeVar("T")


def broken_invariants(world: World) -> list[str]:
    """The violations of invariants 1, 2, 4, 5 and 6 and, for clients that moved, 3."""
    violations = broken_summary_invariants(world)
    brokers = {name: site.broker for name, site in world.sites.items() if site.is_up}
    for name, broker in brokers.items():
        filters, advertisements = broker.subscriptions, broker.advertisements
        violations += [
            f"{name}: {each}"
            for each in (
                *_table_problems(filters, FILTERS, broker.tables.filter_destinations),
                *_table_problems(
                    advertisements, ADVERTISEMENTS, broker.tables.advertisement_destinations
                ),
            )
        ]
        for what in ("subscriptions", "advertisements"):
            violations += [
                f"{name}, {what}: {each}" for each in _link_problems(name, what, brokers)
            ]
        violations += [f"{name}: {each}" for each in _session_problems(world, name, broker)]
        if isinstance(broker.matching, LinkMatching):
            violations += [f"{name}: {each}" for each in _mask_problems(broker, broker.matching)]
    return violations


def wrong_client_state(
    world: World,
    client: Client,
    wanted: Sequence[Filter],
    offered: Sequence[Advertisement],
    is_known: bool,
) -> list[str]:
    """The violations of invariant 3 for a client: unnamed filters, advertisements, its session.

    Named subscriptions are compared by `fresh_state.py`.
    """
    home = world.home[client]
    violations: list[str] = []
    for name, site in world.sites.items():
        if not site.is_up:
            continue
        broker, is_home = site.broker, name == home
        if client in broker.sessions and not (is_home and is_known):
            violations.append(f"{name}: {client.identity} has left and still has a session here")
        wrong = [
            *_differences(
                broker.subscriptions.nodes_of(client), wanted if is_home else (), FILTERS
            ),
            *_differences(
                broker.advertisements.nodes_of(client), offered if is_home else (), ADVERTISEMENTS
            ),
        ]
        violations += [f"{name}: {client.identity} {each}" for each in wrong]
    return violations


def _differences(
    held: Sequence[PosetNode[T]], asked: Sequence[T], coverage: Coverage[T]
) -> Iterator[str]:
    """Compares items by covering in both directions, as equal ones may be written differently."""
    items = [node.item for node in held]
    for item in items:
        if not any(coverage.covers(item, each) and coverage.covers(each, item) for each in asked):
            yield f"has not asked for {item}, which is held"
    for item in asked:
        if not any(coverage.covers(item, each) and coverage.covers(each, item) for each in items):
            yield f"has asked for {item}, which is not held"


def _table_problems(
    table: Forwarding[T], coverage: Coverage[T], destinations: DestinationsOf[T]
) -> Iterator[str]:
    """Check invariant 1."""
    hides = isinstance(table.poset, Poset)
    for node in table.poset:
        hidden = {
            destination
            for other in table.poset
            if hides and other is not node and coverage.covers(other.item, node.item)
            for destination in other.forwards
        }
        expected = set(destinations(node)) - hidden
        if set(node.forwards) != expected:
            yield f"{node.item} was sent to {sorted(map(str, node.forwards))}, not {expected}"
        if not node.subscribers:
            yield f"nobody asks for {node.item}"


def _link_problems(name: Peer, what: str, brokers: dict[Peer, Broker]) -> Iterator[str]:
    """Check invariant 2 for a table, ``what``, of a broker."""
    table: Forwarding[object] = getattr(brokers[name], what)
    for peer in brokers[name].domains.domain_of:
        if peer not in brokers:
            yield f"has the neighbour {peer}, which is down"
            continue
        peer_table: Forwarding[object] = getattr(brokers[peer], what)
        held = {
            asker.key
            for node in peer_table.poset
            for asker in node.subscribers
            if isinstance(asker, NeighbourAsker) and asker.peer == name
        }
        sent = set(table.sent(peer))
        if held != sent:
            yield f"{peer} holds {sorted(held, key=str)} and was sent {sorted(sent, key=str)}"


def _session_problems(world: World, name: Peer, broker: Broker) -> Iterator[str]:
    """Check invariant 4, and that nothing is left of clients that moved."""
    for table in (broker.subscriptions, broker.advertisements):
        for node in table.poset:
            for asker in node.subscribers:
                client = asker.client if isinstance(asker, NamedAsker) else asker
                if isinstance(client, Client) and world.home[client] != name:
                    yield f"{client.identity} is at {world.home[client]} and still asks here"
    if len(broker.waves):
        yield f"{len(broker.waves)} waves have not come back"
    if len(broker.moves):
        yield f"{len(broker.moves)} moves have not ended"


def _mask_problems(broker: Broker, matching: LinkMatching) -> Iterator[str]:
    """Check invariant 5."""
    matching.prepare()
    for node in broker.subscriptions.poset:
        links = matching.links_of(node)
        asked = [each for each in node.subscribers if isinstance(each, NeighbourAsker)]
        if bool(links & COLLECTED) != (len(asked) < len(node.subscribers)):
            who = "some" if links & COLLECTED else "no"
            yield f"{node.item} is taken for one that {who} client wants"
        if matching.is_own(node) != bool(links & COLLECTED):
            yield f"{node.item} is not among the broker's own filters, or is and should not be"
        for domain in broker.domains.by_name.values():
            homes = {
                str(each.key.tree)
                for each in asked
                if broker.domains.domain_of[each.peer] is domain
            }
            for tree in domain.graph.tree(broker.name).costs:
                expected = {
                    domain.next_hop(home) for home in homes if domain.is_on_path(tree, home)
                }
                mask = matching.numbers.mask([(domain, tree, None)])
                reached = set(matching.numbers.peers(links & mask, domain))
                if reached != expected:
                    yield f"{node.item} leads to {reached} on the tree of {tree}, not {expected}"
