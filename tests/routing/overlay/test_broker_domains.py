"""A gateway acts, in each of its domains, for everything that comes from outside."""

from __future__ import annotations

import pytest

from tidegate.errors import RoutingError
from tidegate.routing.askers import MonitorAsker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Key
from tidegate.routing.outbox import Destination
from tidegate.routing.overlay.broker_domains import BrokerDomains
from tidegate.routing.overlay.domains import Architecture, Domain

ANN = Client("ann")


def gateway() -> tuple[BrokerDomains, Domain, Domain]:
    """Broker g in two domains; only the outer one has a tree for each source."""
    domains = BrokerDomains()
    inner = Domain("inner", Architecture.ACYCLIC, "g")
    outer = Domain("outer", Architecture.GENERAL, "g")
    for domain, peer in ((inner, "i"), (inner, "j"), (outer, "o")):
        domain.link(peer, 1)
        domains.domain_of[peer] = domain
    domains.by_name.update(inner=inner, outer=outer)
    return domains, inner, outer


@pytest.mark.parametrize("asker", [ANN, NamedAsker(ANN, "s"), MonitorAsker(1)])
def test_what_clients_ask_for_starts_on_the_own_tree_of_each_domain(
    asker: Client | NamedAsker | MonitorAsker,
) -> None:
    domains, inner, outer = gateway()
    assert list(domains.trees_of(asker)) == [(inner, None, None), (outer, "g", None)]


def test_what_a_neighbour_asks_for_keeps_its_tree_in_its_own_domain_only() -> None:
    domains, inner, outer = gateway()
    from_inner, from_outer = NeighbourAsker("i", Key(1, None)), NeighbourAsker("o", Key(1, "x"))
    assert list(domains.trees_of(from_inner)) == [(inner, None, "i"), (outer, "g", None)]
    assert list(domains.trees_of(from_outer)) == [(inner, None, None), (outer, "x", "o")]
    assert list(domains.trees_from("o", "x")) == list(domains.trees_of(from_outer))


def test_destinations_are_down_the_trees() -> None:
    domains, _, _ = gateway()
    assert list(domains.destinations_of(NeighbourAsker("o", Key(1, "x")))) == [
        Destination("i", None),
        Destination("j", None),
    ]
    both = [NeighbourAsker("i", Key(1, None)), NeighbourAsker("j", Key(1, None))]
    assert list(domains.destinations_away_from(both)) == [
        Destination("j", None),
        Destination("i", None),
    ]


def test_in_a_hierarchy_the_only_destination_is_the_master() -> None:
    domains = BrokerDomains()
    domain = domains.by_name["d"] = Domain("d", Architecture.HIERARCHICAL, "g")
    for peer in ("m", "s", "t"):
        domain.link(peer, 1, is_master=peer == "m")
        domains.domain_of[peer] = domain
    assert list(domains.destinations_of(ANN)) == [Destination("m", None)]
    assert list(domains.destinations_of(NeighbourAsker("s", Key(1, None)))) == [
        Destination("m", None)
    ]
    assert list(domains.destinations_of(NeighbourAsker("m", Key(1, None)))) == []


def test_a_message_names_a_tree_exactly_where_each_source_has_one() -> None:
    domains, _, _ = gateway()
    domains.check_tree(None, "i")
    domains.check_tree("x", "o")
    with pytest.raises(RoutingError, match="'inner' has one tree only; the tree 'x' does not fit"):
        domains.check_tree("x", "i")
    with pytest.raises(RoutingError, match="a tree for each source; a message without a tree"):
        domains.check_tree(None, "o")
