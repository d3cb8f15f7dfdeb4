from __future__ import annotations

from collections.abc import Callable

import pytest

from tidegate.errors import SimulationError, TopologyError
from tidegate.language.events import Event
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Message
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.costs import Costs
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.topology import Link, Topology
from tidegate.simulation.world import Weather, World

ANN, BOB = Client("ann"), Client("bob")


class Inbox:
    """A client that keeps the messages it receives, with their times."""

    def __init__(self) -> None:
        self.received: list[tuple[int, Message]] = []

    def receive(self, message: Message, now_us: int) -> None:
        self.received.append((now_us, message))

    @property
    def deliveries(self) -> list[tuple[int, object]]:
        """The time and the attribute x of each delivery."""
        return [
            (time, message.publication.event.attributes["x"])
            for time, message in self.received
            if isinstance(message, m.Deliver)
        ]


def world_of(world: World, *, ann: str = "b0", bob: str = "b1") -> Inbox:
    """Admit Ann, who wants all events with an x, and Bob, who publishes; returns Ann's inbox."""
    inbox = Inbox()
    world.admit(ANN, inbox, ann)
    world.admit(BOB, Inbox(), bob)
    world.request(ANN, m.Subscribe("x is not null"))
    world.run()
    return inbox


def publish(world: World, x: int) -> Callable[[], None]:
    return lambda: world.request(BOB, m.Publish(Event.of({"x": x})))


def overlay(bandwidth: float | None = None) -> Topology:
    link = Link("b0", "b1", 0.010, "all", bandwidth)
    return Topology("two", ("b0", "b1"), (link,), {"all": Architecture.ACYCLIC})


def test_a_message_takes_the_delay_of_its_link() -> None:
    world = World(overlay(), "subscription")
    inbox = world_of(world)
    world.at(1_000_000, publish(world, 1))
    world.run()
    assert inbox.deliveries == [(1_010_000, 1)]
    assert world.arrived_by_type == {
        m.Subscribe: 1,
        m.FilterDelta: 1,
        m.Publish: 1,
        m.Notify: 1,
        m.Deliver: 1,
    }
    assert world.arrived == 5


def test_bytes_take_time_one_message_after_the_other() -> None:
    world = World(overlay(bandwidth=4_000.0), "flooding")  # 40 bytes take 10 ms
    inbox = world_of(world)
    for x in (1, 2):
        world.at(1_000_000, publish(world, x))
    world.run()
    assert inbox.deliveries == [(1_020_000, 1), (1_030_000, 2)]
    assert world.directions["b1", "b0"].bytes == 80


def test_a_broker_takes_one_message_after_the_other() -> None:
    costs = Costs(by_kind_us={"Notify": 3_000})
    world = World(overlay(), "flooding", costs=costs)
    inbox = world_of(world)
    for x in (1, 2, 3):
        world.at(1_000_000, publish(world, x))
    world.run()
    assert inbox.deliveries == [(1_013_000, 1), (1_016_000, 2), (1_019_000, 3)]
    site = world.sites["b0"]
    assert (site.waiting, site.waiting_max, site.busy_us) == (0, 3, 9_000)


def test_the_matching_steps_of_a_message_delay_those_that_wait() -> None:
    costs = Costs(by_kind_us={"Notify": 3_000}, step_us=500.0)
    world = World(overlay(), "flooding", costs=costs, substrate="naive")
    inbox = world_of(world)
    for _ in range(3):  # of other clients: the oracle takes a step for each
        cy = Client(f"cy{len(world.clients)}")
        world.admit(cy, Inbox(), "b0")
        world.request(cy, m.Subscribe(f"x = {len(world.clients)}"))
    for x in (1, 2, 3):
        world.at(1_000_000, publish(world, x))
    world.run()
    assert inbox.deliveries == [(1_013_000, 1), (1_018_000, 2), (1_023_000, 3)]
    site = world.sites["b0"]
    assert (site.waiting, site.waiting_max) == (0, 3)
    assert (site.busy_us, site.steps_us) == (3 * 5_000, 3 * 2_000)


def test_messages_keep_their_order_while_the_processor_is_busy_with_steps() -> None:
    costs = Costs(by_kind_us={"Notify": 3_000}, step_us=500.0)
    world = World(overlay(), "flooding", costs=costs, substrate="naive")
    ann, late = world_of(world), Inbox()
    world.admit(Client("cy"), late, "b0")
    for x in (1, 2):
        world.at(1_000_000, publish(world, x))
    # After the first event, whose step puts off the second; subscribing itself takes no time.
    world.at(1_013_100, lambda: world.request(Client("cy"), m.Subscribe("x > 0")))
    world.run()
    assert [x for _, x in ann.deliveries] == [1, 2]
    assert late.deliveries == []


def test_actions_from_outside_precede_the_messages_of_the_same_time() -> None:
    """Whenever they were scheduled: so a trace needs only requests and times."""
    world = World(overlay(), "flooding")
    order: list[str] = []
    world.observer = lambda _now, _from, _to, message: order.append(type(message).__name__)
    world_of(world)
    order.clear()
    world.at(1_000_000, publish(world, 1))
    world.run(1_005_000)
    world.at(1_010_000, publish(world, 2))  # the first event arrives then
    world.run(1_010_000)
    assert order == ["Publish", "Publish", "Notify", "Deliver"]


def test_duplicates_are_dropped_and_order_is_kept() -> None:
    weather = Weather(extra_delay_us_max=50_000, duplicated=1.0)
    world = World(overlay(), "flooding", seed=3, weather=weather)
    inbox = world_of(world)
    for x in range(50):
        world.at(1_000_000 + x * 1_000, publish(world, x))
    world.run()
    assert [x for _, x in inbox.deliveries] == list(range(50))


def test_events_that_are_neither_delivered_nor_forwarded_are_counted() -> None:
    world = World(generate("star", 4), "flooding")
    world_of(world, ann="b0", bob="b1")
    publish(world, 1)()
    world.run()
    assert {name: site.in_vain for name, site in world.sites.items()} == {
        "b0": 0, "b1": 0, "b2": 1, "b3": 1,
    }  # fmt: skip


def test_messages_on_a_link_that_goes_down_are_lost() -> None:
    world = World(overlay(), "flooding")
    inbox = world_of(world)
    world.at(1_000_000, publish(world, 1))
    world.at(1_005_000, lambda: world.cut("b0", "b1"))
    world.at(2_000_000, publish(world, 2))
    world.at(3_000_000, lambda: world.mend("b0", "b1"))
    world.at(4_000_000, publish(world, 3))
    world.run()
    assert [x for _, x in inbox.deliveries] == [3]


def test_a_broker_that_crashes_loses_its_state_and_its_neighbours_clear_theirs() -> None:
    world = World(generate("chain", 3), "subscription")
    inbox = world_of(world, ann="b0", bob="b2")
    world.crash("b0")
    world.run()
    assert not len(world.sites["b2"].broker.subscriptions.poset)
    publish(world, 1)()
    world.request(ANN, m.Subscribe("x = 2"))  # the broker is down
    world.restart("b0")
    world.run()
    assert not len(world.sites["b2"].broker.subscriptions.poset)
    world.request(ANN, m.Subscribe("x = 3"))
    world.run()
    publish(world, 3)()
    world.run()
    assert [x for _, x in inbox.deliveries] == [3]


def test_messages_that_wait_for_the_processor_are_lost_in_a_crash() -> None:
    world = World(overlay(), "flooding", costs=Costs(by_kind_us={"Notify": 50_000}))
    inbox = world_of(world)
    world.at(1_000_000, publish(world, 1))
    world.at(1_030_000, lambda: world.crash("b0"))
    world.at(1_031_000, lambda: world.restart("b0"))
    world.run()
    assert inbox.deliveries == []
    assert world.sites["b0"].waiting == 0


def test_messages_that_wait_for_the_processor_are_lost_with_their_link() -> None:
    """Otherwise a broker would accept a connection that the other end has given up."""
    world = World(overlay(), "flooding", costs=Costs(by_kind_us={"Connect": 50_000}))
    inbox = world_of(world)
    world.cut("b0", "b1")
    world.mend("b0", "b1")
    world.run(20_000)
    assert world.sites["b0"].waiting == 1
    world.cut("b0", "b1")
    world.run()
    assert world.sites["b0"].waiting == 0
    world.mend("b0", "b1")
    world.run()
    publish(world, 1)()
    world.run()
    assert [x for _, x in inbox.deliveries] == [1]


def test_a_restart_of_a_broker_that_is_up_does_nothing() -> None:
    world = World(overlay(), "subscription")
    inbox = world_of(world)
    world.restart("b0")
    publish(world, 1)()
    world.run()
    assert len(inbox.deliveries) == 1


def test_a_client_gets_nothing_from_a_broker_that_it_has_left() -> None:
    world = World(overlay(), "subscription")
    inbox = world_of(world)
    world.home[ANN] = "b1"
    publish(world, 1)()
    world.run()
    assert inbox.deliveries == []


def test_monitors_of_patterns_are_woken() -> None:
    world = World(overlay(), "subscription")
    inbox = world_of(world)
    world.request(ANN, m.Subscribe("x = 1 then x = 2"))
    world.run()
    for x in (1, 2):
        world.at(world.now_us + x * 1_000, publish(world, x))
    world.run()
    (sequence,) = [each for _, each in inbox.received if isinstance(each, m.DeliverSequence)]
    assert [each.event.attributes["x"] for each in sequence.publications] == [1, 2]


def test_the_time_of_the_next_action() -> None:
    world = World(overlay(), "flooding")
    times = [world.next_us]
    world.at(700, lambda: None)
    world.at(300, lambda: None)
    times.append(world.next_us)
    world.run(300)
    times.append(world.next_us)
    assert (times, world.now_us) == ([None, 300, 700], 300)


def test_an_unknown_link() -> None:
    with pytest.raises(TopologyError, match="there is no link from 'b0' to 'b9'"):
        World(overlay(), "subscription").cut("b0", "b9")


def test_one_seed_is_one_run() -> None:
    def trace(seed: int) -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []
        world = World(
            generate("random-graph", 8, 2),
            "subscription",
            seed,
            weather=Weather(extra_delay_us_max=9_000),
            observer=lambda now, _from, to, message: seen.append((now, f"{to} {message}")),
        )
        world_of(world, ann="b3", bob="b5")
        publish(world, 1)()
        world.run()
        return seen

    assert trace(1) == trace(1) != trace(2)


def test_a_world_that_never_becomes_idle() -> None:
    world = World(generate("centralized"), "flooding")

    def again() -> None:
        world.at(world.now_us + 1, again)

    again()
    with pytest.raises(SimulationError, match="the world is not idle after 1,000 actions"):
        world.run(actions_max=1_000)


def test_the_variables_load_and_free_bandwidth() -> None:
    """`@load` counts messages that wait, `@free_bandwidth` the links that carry nothing."""
    world = World(overlay(bandwidth=4_000.0), "flooding", costs=Costs(base_us=1_000))
    seen = world.sites["b0"].broker.variables
    assert dict(seen.at(None)) == {"mode": "standard", "load": 0, "free_bandwidth": 4_000.0}
    client = Client("c")
    world.admit(client, Inbox(), "b0")
    for _ in range(3):
        world.request(client, m.Publish(Event.of({"x": 1})))
    assert seen.at(None)["load"] == 3
    world.run(1_500)
    assert seen.at(None)["load"] == 2
    assert seen.at(None)["free_bandwidth"] == 0.0
    world.run()
    assert seen.at(None)["free_bandwidth"] == 4_000.0
    assert "free_bandwidth" not in World(overlay(), "flooding").sites["b0"].broker.variables.at(0)
