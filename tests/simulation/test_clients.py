from __future__ import annotations

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.routing import messages as m
from tidegate.simulation.clients import ExpectedDeliveries, SimulatedSubscriber, Tally
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.workloads import WORKLOADS, ClientPlan, Demand
from tidegate.simulation.world import World

CHAIN = generate("chain", 2)


def subscriber(tally: Tally, service_us: int) -> SimulatedSubscriber:
    (schedule,) = ClientPlan(WORKLOADS["zipf"], Demand(subscribers=1), CHAIN, 1).subscribers()
    return SimulatedSubscriber(schedule, World(CHAIN, "flooding"), tally, service_us)


def delivery(published_us: int) -> m.Deliver:
    event = Event({"topic": "none"}, from_us(published_us))
    return m.Deliver(m.Publication(event, m.Stamp("b0", 0, 1), "p0"))


def test_the_queue_of_a_slow_subscriber_grows() -> None:
    tally = Tally()
    slow = subscriber(tally, service_us=1_000)
    for now_us in (0, 100, 200, 300, 10_000):
        slow.receive(delivery(now_us), now_us)
    assert list(tally.delays_us) == [1_000, 1_900, 2_800, 3_700, 1_000]
    assert tally.backlog_max == 4


def test_a_fast_subscriber_has_no_queue() -> None:
    tally = Tally()
    quick = subscriber(tally, service_us=0)
    quick.receive(delivery(5), 25)
    assert (list(tally.delays_us), tally.backlog_max) == ([20], 0)


def test_spurious_deliveries_and_refusals_are_counted() -> None:
    tally = Tally()
    client = subscriber(tally, 0)
    client.receive(delivery(0), 0)
    client.receive(m.Refused(m.Suspend(), "no"), 0)
    assert (tally.spurious, tally.refused) == (1, 1)


def test_expected_deliveries() -> None:
    expected = ExpectedDeliveries()
    for text in ("x = 1", "x = 1", "x < 5", "x = 2"):
        expected.add(parse(text))
    assert expected.count(Event.of({"x": 1})) == 3
    expected.remove(parse("x = 1"))
    assert expected.count(Event.of({"x": 1})) == 2
    expected.remove(parse("x = 1"))
    assert expected.count(Event.of({"x": 1})) == 1
