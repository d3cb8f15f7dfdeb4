"""Askers of all kinds are keys of one table, so no two of different kinds may be equal."""

from __future__ import annotations

from itertools import combinations

from tidegate.matching.poset.ordered_set import OrderedSet
from tidegate.routing.askers import Asker, MonitorAsker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Key

ASKERS: list[Asker] = [
    Client("a"),
    Client("b"),
    NamedAsker(Client("a"), "a"),
    NamedAsker(Client("a"), "b"),
    NamedAsker(Client("b"), "a"),
    MonitorAsker(1),
    MonitorAsker(2),
    NeighbourAsker("a", Key(1, None)),
    NeighbourAsker("a", Key(1, "a")),
    NeighbourAsker("a", Key(2, None)),
    NeighbourAsker("b", Key(1, None)),
]


def test_askers_that_differ_are_not_equal() -> None:
    """They are tuples, which are equal whatever their class."""
    assert all(one != other for one, other in combinations(ASKERS, 2))


def test_a_set_keeps_them_apart_and_in_order() -> None:
    askers: OrderedSet[Asker] = OrderedSet()
    for each in [*ASKERS, *reversed(ASKERS)]:
        askers.add(each)
    assert list(askers) == ASKERS
