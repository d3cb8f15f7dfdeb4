from __future__ import annotations

import gc
from dataclasses import replace
from itertools import product

import pytest

from tidegate.errors import RoutingError, SimulationError
from tidegate.language.events import Event
from tidegate.routing import messages as m
from tidegate.routing.messages import Client
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.faults import Fault
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.scenario import (
    PROGRESS_STEPS,
    ROUTINGS,
    SEMANTICS,
    Scenario,
    Simulation,
    SlowSubscribers,
    strategy_name,
)
from tidegate.simulation.verifying.verification import VERIFIED_TOPOLOGIES
from tidegate.simulation.workloads import WORKLOADS, Demand
from tidegate.simulation.world import SilentClient, Weather

pytestmark = pytest.mark.slow

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
def test_all_expected_deliveries_are_made(topology: str, routing: str) -> None:
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


@pytest.mark.parametrize(
    "routing", ["flooding", "match-first", "subscription", "link-matching", "summaries"]
)
def test_the_semantics_can_be_chosen(routing: str) -> None:
    hints, advertised = (
        Simulation(scenario(routing=routing, semantics=each)).run() for each in SEMANTICS
    )
    assert "Advertise" not in hints.kinds
    assert advertised.kinds["Advertise"] == SMALL.publishers
    assert hints.delivered == advertised.delivered == advertised.wanted


def test_an_event_that_was_not_advertised_is_refused() -> None:
    simulation = Simulation(scenario(semantics="advertisement"))
    stranger = Client("stranger")
    simulation.run()
    before = dict(simulation.world.arrived_by_type)
    simulation.world.admit(stranger, SilentClient(), "b0")
    simulation.world.request(stranger, m.Publish(Event.of({"topic": "t0", "level": 99})))
    simulation.world.run()
    new = {
        each
        for each, count in simulation.world.arrived_by_type.items()
        if count != before.get(each, 0)
    }
    assert new == {m.Publish, m.Refused}


def test_a_semantics_that_the_routing_does_not_support() -> None:
    with pytest.raises(RoutingError, match="'advertisement' delivers only advertised events"):
        Simulation(scenario(routing="advertisement", semantics="subscription"))


def test_random_delays_and_duplicates_lose_nothing() -> None:
    """A duplicate is detected at the other end of the link."""
    calm, rough = (
        Simulation(scenario(weather=each)).run() for each in (Weather(), Weather(90_000, 0.5))
    )
    assert rough.delivered == rough.wanted == calm.delivered
    assert rough.delays is not None
    assert calm.delays is not None
    assert rough.delays.median_ms > calm.delays.median_ms
    assert rough.kinds["Notify"] == calm.kinds["Notify"]


def test_only_flooding_sends_events_in_vain() -> None:
    flooding, subscription = (
        Simulation(scenario(routing=routing)).run() for routing in ("flooding", "subscription")
    )
    assert flooding.in_vain > 0 == subscription.in_vain
    assert flooding.kinds["Notify"] > subscription.kinds["Notify"]


def test_slow_brokers_have_queues_and_delays() -> None:
    quick, slow = (Simulation(scenario(processor_us=cost)).run() for cost in (0, 20_000))
    assert quick.delays is not None
    assert slow.delays is not None
    assert slow.delays.p99_ms > quick.delays.p99_ms
    assert max(each.queue_max for each in slow.loads) > 1
    assert max(each.busy_share for each in slow.loads) > 0.1
    assert slow.delivered == slow.wanted


def test_slow_subscribers_have_a_backlog() -> None:
    report = Simulation(scenario(slow=SlowSubscribers(30, 500_000))).run()
    assert report.backlog_max > 1


def test_settings_of_summaries_go_with_their_routing() -> None:
    with pytest.raises(
        SimulationError, match="go with the routing 'summaries', not 'subscription'"
    ):
        scenario(summaries=SummarySettings())
    settings = SummarySettings(period_us=0, degree_max=2)
    report = Simulation(scenario(routing="summaries", summaries=settings)).run()
    assert report.summaries is not None
    assert report.summaries.event_hops <= report.summaries.link_hops


def test_there_cannot_be_more_slow_subscribers_than_subscribers() -> None:
    with pytest.raises(SimulationError, match="31 slow subscribers, but there are only 30 subscr"):
        scenario(slow=SlowSubscribers(31, 1_000))


def test_churn_changes_subscriptions() -> None:
    report = Simulation(scenario(workload="churn")).run()
    assert report.kinds["Unsubscribe"] == report.kinds["Subscribe"] - 30 > 5


def test_clients_of_a_restarted_broker_subscribe_again() -> None:
    demand = replace(SMALL, publishers=8, duration_s=10.0, rate_per_s=20.0)
    crash = Fault(("b0",), 1_000_000, 2_000_000)
    restarted = Simulation(scenario("tree", demand=demand, faults=(crash,))).run()
    stopped = Simulation(
        scenario("tree", demand=demand, faults=(replace(crash, end_us=None),))
    ).run()
    assert stopped.delivered < restarted.delivered < restarted.wanted == stopped.wanted
    assert stopped.unheard > restarted.unheard > 0


def test_progress_is_reported_and_the_garbage_collector_reset() -> None:
    before = gc.get_threshold()
    steps: list[int] = []
    Simulation(scenario()).run(steps.append)
    assert sum(steps) == PROGRESS_STEPS
    assert steps[0] == 0  # also while clients subscribe
    assert gc.get_threshold() == before


def test_a_run_without_clients() -> None:
    report = Simulation(scenario(demand=Demand(0, 0, 0.0, 0.0))).run()
    assert (report.messages, report.delays) == (0, None)
    assert any("none" not in line for line in report.lines())
