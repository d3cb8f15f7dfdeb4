from __future__ import annotations

import gc
from dataclasses import replace
from itertools import product

import pytest

from tidegate.errors import RoutingError
from tidegate.simulation.faults import Fault
from tidegate.simulation.generators import generate
from tidegate.simulation.scenario import (
    ROUTINGS,
    SLICES,
    Scenario,
    Simulation,
    Slowness,
    strategy_name,
)
from tidegate.simulation.verification import VERIFIED_TOPOLOGIES
from tidegate.simulation.workloads import WORKLOADS, Demand

SMALL = Demand(publishers=4, subscribers=30, rate_per_s=50.0, duration_s=2.0)


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
    assert gc.get_threshold() == before


def test_nobody_and_nothing() -> None:
    report = Simulation(scenario(demand=Demand(0, 0, 0.0, 0.0))).run()
    assert (report.messages, report.delays) == (0, None)
    assert any("none" not in line for line in report.lines())
