"""Brokers that stop and come back in a world, and connections that break."""

from __future__ import annotations

from tidegate.language.events import Event
from tidegate.routing.durability.durable_state import export_state
from tidegate.routing.messages import Client, Deliver, Message, Publish, Subscribe, Sync, Update
from tidegate.simulation.overlays.plain_networks import chain
from tidegate.simulation.world import World

ANN, PUB = Client("ann"), Client("pub")


class Listener:
    """A client that keeps the events it receives."""

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []

    def receive(self, message: Message, now_us: int) -> None:  # noqa: ARG002
        if isinstance(message, Deliver):
            self.events.append(dict(message.publication.event.attributes))


def three_in_a_line() -> tuple[World, Listener]:
    """Ann subscribes at one end, and the events are published at the other."""
    world = World(chain(3), "subscription", is_durable=True)
    ann = Listener()
    first, _, last = world.topology.brokers
    world.admit(ANN, ann, last)
    world.admit(PUB, Listener(), first)
    world.request(ANN, Subscribe("x > :low", "s", {"low": 0}, version=1))
    world.run()
    return world, ann


def publish(world: World, x: int) -> None:
    world.request(PUB, Publish(Event.of({"x": x})))


def test_nothing_is_lost_on_a_connection_that_breaks() -> None:
    world, ann = three_in_a_line()
    assert world.durable is not None
    first, middle, last = world.topology.brokers
    publish(world, 1)
    world.run(world.now_us + 1)
    world.durable.break_connection(first, middle)  # the event is on its way there
    publish(world, 2)
    world.durable.break_connection(middle, last)
    world.run()
    assert ann.events == []
    world.durable.reconnect(first, middle)
    world.run()
    world.durable.reconnect(middle, last)
    world.run()
    assert ann.events == [{"x": 1}, {"x": 2}]
    assert not any(len(session) for session in world.durable.sessions.values())


def test_a_broker_comes_back_with_what_it_has_stored() -> None:
    world, ann = three_in_a_line()
    assert world.durable is not None
    _, middle, last = world.topology.brokers
    syncs: list[Sync] = []

    def observe(_now_us: int, _sender: object, _receiver: object, message: Message) -> None:
        if isinstance(message, Sync):
            syncs.append(message)

    world.observer = observe
    for name in (middle, last):
        before = export_state(world.sites[name].broker)
        world.durable.stop(name)
        publish(world, 1)
        world.run()
        assert ann.events == []
        world.durable.come_back(name)
        assert export_state(world.sites[name].broker) == before
        world.run()
        assert ann.events == [{"x": 1}]
        ann.events.clear()
    assert [each.filters for each in syncs] == [None] * 3  # all hold what they held
    world.request(ANN, Update("s", 2, {"low": 5}))
    world.run()
    publish(world, 5)
    publish(world, 6)
    world.run()
    assert ann.events == [{"x": 6}]


def test_a_link_that_was_given_up_meanwhile_is_set_up_anew() -> None:
    world, ann = three_in_a_line()
    assert world.durable is not None
    first, middle, _ = world.topology.brokers
    world.durable.stop(middle)
    world.cut(first, middle)
    world.run()
    world.durable.come_back(middle)
    world.run()
    publish(world, 1)
    world.run()
    assert ann.events == [{"x": 1}]


def test_a_broker_that_has_lost_its_disk_is_set_up_anew() -> None:
    world, ann = three_in_a_line()
    _, middle, _ = world.topology.brokers
    world.crash(middle)
    world.run()
    world.restart(middle)
    world.run()
    publish(world, 1)
    world.run()
    assert ann.events == [{"x": 1}]
