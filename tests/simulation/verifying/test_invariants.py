"""Broken state is found: each test breaks one thing of a world in which all is well."""

from __future__ import annotations

import pytest

from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.filters import parse
from tidegate.routing import messages as m
from tidegate.routing.forwarding import NeighbourAsker
from tidegate.routing.messages import Client, Key, Message
from tidegate.routing.outbox import Destination
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.invariants import broken_rules, unlike_asked
from tidegate.simulation.world import World

ANN = Client("ann")


class Nobody:
    def receive(self, message: Message, now_us: int) -> None:
        pass


@pytest.fixture
def world() -> World:
    """A chain of three; Ann at one end wants two things, one of which covers the other's like."""
    world = World(generate("chain", 3), "advertisement")
    world.admit(ANN, Nobody(), "b0")
    world.admit(Client("bob"), Nobody(), "b2")
    world.request(Client("bob"), m.Advertise("x is not null and y is not null"))
    world.run()
    world.request(ANN, m.Subscribe("x < 5"))
    world.request(ANN, m.Subscribe("y < 5"))
    world.run()
    return world


def test_all_is_well(world: World) -> None:
    assert broken_rules(world) == []
    assert len(world.sites["b2"].broker.subscriptions.poset) == 2


def test_something_was_not_sent(world: World) -> None:
    node = next(iter(world.sites["b0"].broker.subscriptions.poset))
    node.forwards.clear()
    assert any("b0: x < 5 was sent to [], not " in each for each in broken_rules(world))


def test_something_was_sent_that_is_covered(world: World) -> None:
    table = world.sites["b0"].broker.subscriptions
    node = table.poset.insert(parse("x < 3"))
    node.subscribers.add(Client("cy"))
    world.admit(Client("cy"), Nobody(), "b0")
    assert broken_rules(world) == []
    node.forwards.add(Destination("b1", None))
    assert any("x < 3 was sent to" in each for each in broken_rules(world))


def test_something_is_held_that_was_not_sent(world: World) -> None:
    table = world.sites["b1"].broker.subscriptions
    next(iter(table.poset)).subscribers.add(NeighbourAsker("b0", Key(99, None)))
    assert any("b0, subscriptions: b1 holds [" in each for each in broken_rules(world))


def test_a_node_nobody_asks_for(world: World) -> None:
    world.sites["b2"].broker.subscriptions.poset.insert(parse("z = 1"))
    assert any("b2: nobody asks for z = 1" in each for each in broken_rules(world))


def test_an_advertisement_that_was_not_sent(world: World) -> None:
    next(iter(world.sites["b2"].broker.offers.poset)).forwards.clear()
    assert any(each.startswith("b2: ") for each in broken_rules(world))


def test_something_is_left_of_a_client_that_moved(world: World) -> None:
    world.home[ANN] = "b1"
    assert "b0: ann is at b1 and still asks here" in broken_rules(world)


def test_a_neighbour_that_is_down(world: World) -> None:
    world.sites["b2"].is_up = False
    assert any("has the neighbour b2, which is down" in each for each in broken_rules(world))


def test_a_wave_that_has_not_come_back(world: World) -> None:
    world.sites["b0"].broker.start_wave(list)
    assert "b0: 1 waves have not come back" in broken_rules(world)


def test_a_move_that_has_not_ended(world: World) -> None:
    world.sites["b0"].broker.moves.begin(Client("dee"), "b2", 1)
    assert "b0: 1 moves have not ended" in broken_rules(world)


def test_what_a_client_has_asked_for(world: World) -> None:
    wanted = [parse("x < 5"), parse("y < 5")]
    assert unlike_asked(world, ANN, wanted, [], is_known=True) == []
    offered = [parse_advertisement("x is not null and y is not null")]
    assert unlike_asked(world, Client("bob"), [], offered, is_known=True) == []


def test_what_a_client_has_not_asked_for(world: World) -> None:
    assert unlike_asked(world, ANN, [parse("x < 5"), parse("z = 1")], [], is_known=True) == [
        "b0: ann has not asked for y < 5, which is held",
        "b0: ann has asked for z = 1, which is not held",
    ]
    (found,) = unlike_asked(world, Client("bob"), [], [], is_known=True)
    assert found.startswith("b2: bob has not asked for x is not null")


def test_a_client_that_has_left_and_is_known(world: World) -> None:
    left = "ann has left and is still known here"
    assert f"b0: {left}" in unlike_asked(world, ANN, [], [], is_known=False)
    world.home[ANN] = "b1"
    assert f"b0: {left}" in unlike_asked(world, ANN, [], [], is_known=True)
    world.sites["b0"].is_up = False
    assert unlike_asked(world, ANN, [], [], is_known=False) == []
