"""Marking and forgetting; rule (1) itself is tested in `test_forwarding`."""

from __future__ import annotations

from tidegate.language.filters import parse
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.messages import Client
from tidegate.routing.outbox import Destination
from tidegate.routing.tables.covered_nodes import CoveredNodes

ANN = Client("ann")


def test_destinations_are_computed_again_only_for_marked_nodes() -> None:
    peers = ["p"]

    def destinations(_node: PosetNode[WantedFilter]) -> list[Destination]:
        return [Destination(peer, None) for peer in peers]

    nodes = CoveredNodes(FILTERS, destinations)
    first = nodes.add_asker(ANN, parse("x = 1"))
    nodes.add_asker(ANN, parse("y = 1"))
    assert list(nodes.settle()) == ["p"]
    peers.append("q")
    assert nodes.settle() == {}
    nodes.mark(first)
    assert [str(item) for _, item in nodes.settle()["q"].added] == ["x = 1"]
    nodes.mark_all()
    assert [str(item) for _, item in nodes.settle()["q"].added] == ["y = 1"]


def test_a_forgotten_neighbour_is_sent_all_again() -> None:
    nodes = CoveredNodes(FILTERS, lambda _node: [Destination("p", None)])
    nodes.add_asker(ANN, parse("x = 1"))
    nodes.settle()
    assert len(nodes.sent("p")) == 1
    nodes.forget("p")
    assert nodes.sent("p") == {}
    assert [str(item) for _, item in nodes.settle()["p"].added] == ["x = 1"]
