"""What is placed, and when; that it comes to the same is tested in `test_forwarding`."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.language.filters import parse
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.askers import Asker, NamedAsker
from tidegate.routing.cell_updates import identity, structure
from tidegate.routing.messages import Client
from tidegate.routing.outbox import Destination
from tidegate.routing.tables.covered_nodes import CoveredNodes
from tidegate.routing.tables.deferred_nodes import DeferredNodes

ANN, BOB = NamedAsker(Client("ann"), "s"), NamedAsker(Client("bob"), "s")


class CountingNodes(CoveredNodes[WantedFilter]):
    """Counts what is done to it."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__(FILTERS, _to_p, structure=structure)
        self.steps = steps

    def add_asker(self, asker: Asker, item: WantedFilter) -> PosetNode[WantedFilter]:
        self.steps.append(f"add {item}")
        return super().add_asker(asker, item)

    def replace(
        self, asker: Asker, node: PosetNode[WantedFilter], item: WantedFilter
    ) -> PosetNode[WantedFilter]:
        self.steps.append(f"replace {node.item} by {item}")
        return super().replace(asker, node, item)

    def remove_asker(self, asker: Asker, node: PosetNode[WantedFilter]) -> None:
        self.steps.append(f"remove {node.item}")
        super().remove_asker(asker, node)


def _to_p(_node: PosetNode[WantedFilter]) -> Iterable[Destination]:
    return [Destination("p", None)]


class Deferred:
    """A deferred table, and what was done to place its nodes."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.has_destinations = True
        self.nodes = DeferredNodes(
            identity, lambda: CountingNodes(self.steps), lambda: self.has_destinations
        )

    def settle(self) -> list[str]:
        """Settle; returns what was done since the last time."""
        self.steps.clear()
        self.nodes.settle()
        return list(self.steps)


def test_changes_of_one_asker_are_joined() -> None:
    it = Deferred()
    node = it.nodes.add_asker(ANN, parse("x < 1"))
    node = it.nodes.replace(ANN, node, parse("x < 2"))
    assert it.settle() == ["add x < 2"]
    for limit in (3, 4, 5):
        node = it.nodes.replace(ANN, node, parse(f"x < {limit}"))
    assert it.settle() == ["replace x < 2 by x < 5"]
    assert it.settle() == []
    (sent,) = it.nodes.sent("p").values()
    assert str(sent) == "x < 5"


def test_what_has_come_and_gone_is_not_placed() -> None:
    it = Deferred()
    it.nodes.remove_asker(ANN, it.nodes.add_asker(ANN, parse("x < 1")))
    assert it.settle() == []
    node = it.nodes.add_asker(ANN, parse("x < 1"))
    it.settle()
    node = it.nodes.replace(ANN, node, parse("x < 2"))
    it.nodes.remove_asker(ANN, node)
    assert it.settle() == ["remove x < 1"]
    assert len(it.nodes.poset) == 0


def test_an_asker_that_moves_to_the_filter_of_another_keeps_its_place_for_an_update() -> None:
    it = Deferred()
    it.nodes.add_asker(BOB, parse("x < 9"))
    node = it.nodes.add_asker(ANN, parse("x < 1"))
    it.settle()
    node = it.nodes.replace(ANN, node, parse("x < 9"))
    assert list(node.subscribers) == [BOB, ANN]
    assert it.settle() == ["replace x < 1 by x < 9"]
    node = it.nodes.replace(ANN, node, parse("x < 3"))
    # which the poset does so, because bob still wants the other
    assert it.settle() == ["replace x < 9 by x < 3", "remove x < 9", "add x < 3"]
    assert [str(each.item) for each in it.nodes.poset] == ["x < 9", "x < 3"]


def test_nothing_is_placed_while_nobody_is_sent_anything() -> None:
    it = Deferred()
    it.has_destinations = False
    it.nodes.add_asker(ANN, parse("x < 1"))
    it.nodes.add_asker(BOB, parse("x < 2"))
    assert it.settle() == []
    assert len(it.nodes.poset) == 2
    it.has_destinations = True
    assert it.settle() == ["add x < 1", "add x < 2"]
    it.nodes.forget("p")
    it.has_destinations = False
    assert it.settle() == []
    assert it.nodes.sent("p") == {}
    it.has_destinations = True
    assert it.settle() == ["add x < 1", "add x < 2"]
