"""Violations are found: each test breaks one invariant of a world in which all hold."""

from __future__ import annotations

import pytest

from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.filters import parse
from tidegate.routing import messages as m
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.links.link_matching import LinkMatching
from tidegate.routing.messages import Client, Key
from tidegate.routing.outbox import Destination
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.invariants import broken_invariants, wrong_client_state
from tidegate.simulation.world import SilentClient, World

ANN = Client("ann")


@pytest.fixture
def world() -> World:
    """A chain of three; Ann at one end has two filters, of which neither covers the other."""
    world = World(generate("chain", 3), "advertisement")
    world.admit(ANN, SilentClient(), "b0")
    world.admit(Client("bob"), SilentClient(), "b2")
    world.request(Client("bob"), m.Advertise("x is not null and y is not null"))
    world.run()
    world.request(ANN, m.Subscribe("x < 5"))
    world.request(ANN, m.Subscribe("y < 5"))
    world.run()
    return world


def test_all_invariants_hold(world: World) -> None:
    assert broken_invariants(world) == []
    assert len(world.sites["b2"].broker.subscriptions.poset) == 2


def test_links_are_wrong() -> None:
    world = World(generate("chain", 3), "link-matching")
    world.admit(ANN, SilentClient(), "b0")
    world.request(ANN, m.Subscribe("x < 5"))
    world.request(ANN, m.Subscribe("x < 3 or y < 1"))
    world.run()
    assert broken_invariants(world) == []
    for name, problem in (("b0", "taken for one that no client wants"), ("b1", "leads to set()")):
        links = world.sites[name].broker.matching
        assert isinstance(links, LinkMatching)
        links._links = dict.fromkeys(links._links, 0)
        assert any(problem in each for each in broken_invariants(world))


def test_something_was_not_sent(world: World) -> None:
    node = next(iter(world.sites["b0"].broker.subscriptions.poset))
    node.forwards.clear()
    assert any("b0: x < 5 was sent to [], not " in each for each in broken_invariants(world))


def test_something_was_sent_that_is_covered(world: World) -> None:
    table = world.sites["b0"].broker.subscriptions
    node = table.poset.insert(parse("x < 3"))
    node.subscribers.add(Client("cy"))
    world.admit(Client("cy"), SilentClient(), "b0")
    assert broken_invariants(world) == []
    node.forwards.add(Destination("b1", None))
    assert any("x < 3 was sent to" in each for each in broken_invariants(world))


def test_something_is_held_that_was_not_sent(world: World) -> None:
    table = world.sites["b1"].broker.subscriptions
    next(iter(table.poset)).subscribers.add(NeighbourAsker("b0", Key(99, None)))
    assert any("b0, subscriptions: b1 holds [" in each for each in broken_invariants(world))


def test_a_node_nobody_asks_for(world: World) -> None:
    world.sites["b2"].broker.subscriptions.poset.insert(parse("z = 1"))
    assert any("b2: nobody asks for z = 1" in each for each in broken_invariants(world))


def test_an_advertisement_that_was_not_sent(world: World) -> None:
    next(iter(world.sites["b2"].broker.advertisements.poset)).forwards.clear()
    assert any(each.startswith("b2: ") for each in broken_invariants(world))


def test_something_is_left_of_a_client_that_moved(world: World) -> None:
    world.home[ANN] = "b1"
    assert "b0: ann is at b1 and still asks here" in broken_invariants(world)


def test_a_neighbour_that_is_down(world: World) -> None:
    world.sites["b2"].is_up = False
    assert any("has the neighbour b2, which is down" in each for each in broken_invariants(world))


def test_a_wave_that_has_not_come_back(world: World) -> None:
    world.sites["b0"].broker.start_wave(list)
    assert "b0: 1 waves have not come back" in broken_invariants(world)


def test_a_move_that_has_not_ended(world: World) -> None:
    world.sites["b0"].broker.moves.begin(Client("dee"), "b2", 1)
    assert "b0: 1 moves have not ended" in broken_invariants(world)


def test_what_a_client_has_asked_for(world: World) -> None:
    wanted = [parse("x < 5"), parse("y < 5")]
    assert wrong_client_state(world, ANN, wanted, [], is_known=True) == []
    offered = [parse_advertisement("x is not null and y is not null")]
    assert wrong_client_state(world, Client("bob"), [], offered, is_known=True) == []


def test_what_a_client_has_not_asked_for(world: World) -> None:
    assert wrong_client_state(world, ANN, [parse("x < 5"), parse("z = 1")], [], is_known=True) == [
        "b0: ann has not asked for y < 5, which is held",
        "b0: ann has asked for z = 1, which is not held",
    ]
    (found,) = wrong_client_state(world, Client("bob"), [], [], is_known=True)
    assert found.startswith("b2: bob has not asked for x is not null")


def test_a_client_that_has_left_and_is_known(world: World) -> None:
    left = "ann has left and still has a session here"
    assert f"b0: {left}" in wrong_client_state(world, ANN, [], [], is_known=False)
    world.home[ANN] = "b1"
    assert f"b0: {left}" in wrong_client_state(world, ANN, [], [], is_known=True)
    world.sites["b0"].is_up = False
    assert wrong_client_state(world, ANN, [], [], is_known=False) == []
