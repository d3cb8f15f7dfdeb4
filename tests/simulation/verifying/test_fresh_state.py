"""The state of brokers does not depend on their history; where it does, that is found."""

from __future__ import annotations

import pytest

from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.filters import parse
from tidegate.routing import messages as m
from tidegate.routing.messages import Client
from tidegate.routing.outbox import Destination
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.fresh_state import differences_from_fresh, fresh_world
from tidegate.simulation.world import SilentClient, World

ANN, BOB, PUB = Client("ann"), Client("bob"), Client("pub")


@pytest.fixture
def world() -> World:
    """A graph of brokers with a history: cancelled subscriptions, a link that was down."""
    world = World(generate("random-graph", 6, 2), "advertisement")
    for client, broker in ((ANN, "b0"), (BOB, "b3"), (PUB, "b5")):
        world.admit(client, SilentClient(), broker)
    world.request(PUB, m.Advertise("x is not null and y is not null"))
    world.run()
    for client, text in ((ANN, "x < 5"), (BOB, "x < 9"), (BOB, "y = 1")):
        world.request(client, m.Subscribe(text))
    world.run()
    world.cut("b0", world.topology.neighbours("b0")[0])
    world.run()
    world.request(BOB, m.Unsubscribe("x < 9"))
    world.mend("b0", world.topology.neighbours("b0")[0])
    world.run()
    return world


def test_the_state_is_that_of_a_fresh_world(world: World) -> None:
    assert differences_from_fresh(world) == []
    assert len(fresh_world(world).sites["b5"].broker.subscriptions.poset) == 2


def test_a_filter_that_is_left_over(world: World) -> None:
    table = world.sites["b5"].broker.subscriptions
    table.poset.insert(parse("x < 9"))
    assert differences_from_fresh(world) == [
        "b5 holds x < 9, which is not there if computed from scratch"
    ]


def test_an_advertisement_that_is_missing(world: World) -> None:
    table = world.sites["b5"].broker.advertisements
    node = table.poset.find(parse_advertisement("x is not null and y is not null"))
    assert node is not None
    table.poset.remove(node)
    (found,) = [each for each in differences_from_fresh(world) if each.startswith("b5 ")]
    assert found.startswith("b5 does not hold ")


def test_a_filter_that_was_sent_elsewhere(world: World) -> None:
    node = world.sites["b0"].broker.subscriptions.poset.find(parse("x < 5"))
    assert node is not None
    node.forwards.add(Destination("b9", "b0"))
    (found,) = differences_from_fresh(world)
    assert found.startswith("b0 has (['ann'], [")
    assert "b9" in found


def test_a_world_with_a_broken_link_is_not_compared(world: World) -> None:
    world.sites["b5"].broker.subscriptions.poset.insert(parse("x < 9"))
    assert differences_from_fresh(world)
    world.cut("b5", world.topology.neighbours("b5")[0])
    assert differences_from_fresh(world) == []
