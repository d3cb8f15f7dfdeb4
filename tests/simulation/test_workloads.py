from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import pytest

from tidegate.errors import SimulationError
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.workloads import WORKLOADS, ClientPlan, Demand, workload

GRYPHON = generate("gryphon")


@pytest.mark.parametrize("name", WORKLOADS)
def test_one_seed_is_one_plan(name: str) -> None:
    def plan(seed: int) -> list[object]:
        client_plan = ClientPlan(workload(name), Demand(), GRYPHON, seed)
        publishers = [
            (each.broker, each.portfolio, list(islice(each.times_us, 5)))
            for each in client_plan.publishers()
        ]
        return [
            *publishers,
            *((each.broker, str(each.next_filter())) for each in client_plan.subscribers()),
        ]

    assert plan(3) == plan(3) != plan(4)


def test_one_more_client_changes_nothing_for_the_others() -> None:
    def filters(subscribers: int) -> list[str]:
        plan = ClientPlan(WORKLOADS["zipf"], Demand(subscribers=subscribers), GRYPHON, 1)
        return [str(each.next_filter()) for each in plan.subscribers()]

    assert filters(21)[:20] == filters(20)


def test_clients_are_spread_evenly() -> None:
    plan = ClientPlan(WORKLOADS["zipf"], Demand(publishers=39, subscribers=78), GRYPHON, 1)
    assert set(Counter(each.broker for each in plan.publishers()).values()) == {1}
    assert set(Counter(each.broker for each in plan.subscribers()).values()) == {2}


def test_regions_prefer_topics_of_their_own() -> None:
    plan = ClientPlan(WORKLOADS["regional"], Demand(subscribers=3_000), GRYPHON, 1)
    wanted: dict[str, Counter[str]] = {}
    for each in plan.subscribers():
        topic = str(each.next_filter()).split("'")[1]
        wanted.setdefault(GRYPHON.regions[each.broker], Counter())[topic] += 1
    assert len({counts.most_common(1)[0][0] for counts in wanted.values()}) == len(wanted) == 3


def test_without_regions_there_is_no_regional_workload() -> None:
    with pytest.raises(SimulationError, match="the overlay 'tree' has no regions"):
        ClientPlan(WORKLOADS["regional"], Demand(), generate("tree"), 1)


def test_only_churn_and_updates_change_subscriptions() -> None:
    for name in WORKLOADS:
        plan = ClientPlan(WORKLOADS[name], Demand(subscribers=1), GRYPHON, 1)
        (subscriber,) = plan.subscribers()
        assert bool(list(islice(subscriber.times_us, 1))) == (name in ("churn", "updates"))


@pytest.mark.parametrize(
    ("demand", "reason"),
    [
        ({"publishers": -1}, "the number of publishers must be between 0 and 1000000, not -1"),
        (
            {"subscribers": 10**9},
            "the number of subscribers must be between 0 and 1000000, not 1000000000",
        ),
        ({"rate_per_s": math.nan}, "the rate must be a finite number >= 0, not nan"),
        ({"duration_s": -1.0}, "the duration must be a finite number >= 0, not -1.0"),
    ],
)
def test_a_wrong_demand_is_refused(demand: dict[str, float], reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        Demand(**demand)  # type: ignore[arg-type]


def test_an_unknown_workload_is_refused() -> None:
    with pytest.raises(SimulationError, match="there is no workload 'sea'; there are steady, "):
        workload("sea")
