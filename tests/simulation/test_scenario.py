from __future__ import annotations

import gc
from dataclasses import replace
from itertools import product

import pytest

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Message
from tidegate.simulation.faults import Fault
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.scenario import (
    ROUTINGS,
    SEMANTICS,
    SLICES,
    Scenario,
    Simulation,
    Slowness,
    strategy_name,
)
from tidegate.simulation.verifying.verification import VERIFIED_TOPOLOGIES
from tidegate.simulation.workloads import WORKLOADS, Demand
from tidegate.simulation.world import Weather

SMALL = Demand(publishers=4, subscribers=30, rate_per_s=50.0, duration_s=2.0)


class Nobody:
    def receive(self, message: Message, now_us: int) -> None:
        pass


def scenario(topology: str = "random-graph", **more: object) -> Scenario:
    brokers = None if topology in ("centralized", "gryphon") else 8
    return replace(Scenario(generate(topology, brokers, 1), demand=SMALL), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topology", "routing"),
    [
        (topology, routing)
        for topology, routing in product(VERIFIED_TOPOLOGIES, ROUTINGS)
        if routing != "hierarchy" or topology in ("centralized", "hierarchy")
    ],
)
def test_all_that_is_wanted_is_delivered(topology: str, routing: str) -> None:
    report = Simulation(scenario(topology, routing=routing)).run()
    assert report.delivered == report.wanted > 50
    assert (report.spurious, report.refused, report.unheard) == (0, 0, 0)
    assert report.kinds["Deliver"] == report.delivered
    assert report.messages == sum(report.kinds.values())
    assert report.link_messages == report.messages - sum(
        report.kinds.get(kind, 0) for kind in ("Deliver", "Publish", "Subscribe", "Advertise")
    )


@pytest.mark.parametrize("workload", WORKLOADS)
def test_one_seed_is_one_report(workload: str) -> None:
    def run(seed: int) -> object:
        report = Simulation(scenario("gryphon", workload=workload, seed=seed)).run()
        return replace(report, wall_s=0.0, messages_per_s=0.0)

    assert run(1) == run(1) != run(2)


def test_a_hierarchy_is_needed_for_its_routing() -> None:
    with pytest.raises(RoutingError, match="'random-graph' is general"):
        Simulation(scenario(routing="hierarchy"))
    assert strategy_name("hierarchy", generate("hierarchy", 5)) == "subscription"


@pytest.mark.parametrize("routing", ["flooding", "match-first", "subscription"])
def test_the_semantics_can_be_chosen(routing: str) -> None:
    hints, advertised = (
        Simulation(scenario(routing=routing, semantics=each)).run() for each in SEMANTICS
    )
    assert "Advertise" not in hints.kinds
    assert advertised.kinds["Advertise"] == SMALL.publishers
    assert hints.delivered == advertised.delivered == advertised.wanted


def test_what_was_not_advertised_is_not_delivered() -> None:
    simulation = Simulation(scenario(semantics="advertisement"))
    stranger = Client("stranger")
    simulation.run()
    before = dict(simulation.world.kinds)
    simulation.world.admit(stranger, Nobody(), "b0")
    simulation.world.request(stranger, m.Publish(Event.of({"topic": "t0", "level": 99})))
    simulation.world.run()
    new = {kind for kind, count in simulation.world.kinds.items() if count != before.get(kind, 0)}
    assert new == {m.Publish, m.Refused}


def test_a_semantics_that_does_not_go_with_the_routing() -> None:
    with pytest.raises(RoutingError, match="'advertisement' delivers only what was advertised"):
        Simulation(scenario(routing="advertisement", semantics="subscription"))


def test_links_that_delay_and_repeat_lose_nothing() -> None:
    """A transport that carries a message twice is found out at the other end of the link."""
    still, rough = (
        Simulation(scenario(weather=each)).run() for each in (Weather(), Weather(90_000, 0.5))
    )
    assert rough.delivered == rough.wanted == still.delivered
    assert rough.delays is not None
    assert still.delays is not None
    assert rough.delays.median_ms > still.delays.median_ms
    assert rough.kinds["Notify"] == still.kinds["Notify"]


def test_flooding_sends_in_vain_and_subscriptions_do_not() -> None:
    flooding, subscription = (
        Simulation(scenario(routing=routing)).run() for routing in ("flooding", "subscription")
    )
    assert flooding.in_vain > 0 == subscription.in_vain
    assert flooding.kinds["Notify"] > subscription.kinds["Notify"]


def test_brokers_that_take_time_have_queues_and_delays() -> None:
    quick, slow = (Simulation(scenario(processor_us=cost)).run() for cost in (0, 20_000))
    assert quick.delays is not None
    assert slow.delays is not None
    assert slow.delays.p99_ms > quick.delays.p99_ms
    assert max(each.queue_max for each in slow.loads) > 1
    assert max(each.busy_share for each in slow.loads) > 0.1
    assert slow.delivered == slow.wanted


def test_slow_consumers_have_a_backlog() -> None:
    report = Simulation(scenario(slow=Slowness(30, 500_000))).run()
    assert report.backlog_max > 1


def test_churn_changes_subscriptions() -> None:
    report = Simulation(scenario(workload="churn")).run()
    assert report.kinds["Unsubscribe"] == report.kinds["Subscribe"] - 30 > 5


def test_clients_of_a_broker_that_comes_back_say_again_what_they_want() -> None:
    demand = replace(SMALL, publishers=8, duration_s=10.0, rate_per_s=20.0)
    crash = Fault(("b0",), 1_000_000, 2_000_000)
    hurt = Simulation(scenario("tree", demand=demand, faults=(crash,))).run()
    gone = Simulation(scenario("tree", demand=demand, faults=(replace(crash, end_us=None),))).run()
    assert gone.delivered < hurt.delivered < hurt.wanted == gone.wanted
    assert gone.unheard > hurt.unheard > 0


def test_progress_and_the_setting_of_the_collector() -> None:
    before = gc.get_threshold()
    steps: list[int] = []
    Simulation(scenario()).run(steps.append)
    assert sum(steps) == SLICES
    assert steps[0] == 0  # it is shown also while clients subscribe
    assert gc.get_threshold() == before


def test_nobody_and_nothing() -> None:
    report = Simulation(scenario(demand=Demand(0, 0, 0.0, 0.0))).run()
    assert (report.messages, report.delays) == (0, None)
    assert any("none" not in line for line in report.lines())
