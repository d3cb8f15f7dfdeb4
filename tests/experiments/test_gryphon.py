"""The experiments of Gryphon, on the paper's network with few subscriptions and events."""

from __future__ import annotations

import pytest

from tidegate.experiments import gryphon
from tidegate.experiments.gryphon import (
    CHART_2,
    CHART_3,
    COSTS,
    GryphonSetting,
    OverloadRate,
    highest_rate,
    is_overloaded,
    overload_rates,
    premise_costs,
    steps_by_hops,
)
from tidegate.experiments.gryphon_workload import GryphonWorkload
from tidegate.simulation.arrivals import Bursts
from tidegate.simulation.overlays import paper_networks

SELECTIVE = GryphonSetting(GryphonWorkload(attributes=4, degradation=1.0))


@pytest.mark.parametrize("limit", [3.0, 100.0, 333.0, 12_345.0])
def test_the_highest_rate_is_found_by_bisection(limit: float) -> None:
    tried: list[float] = []

    def is_too_high(rate_per_s: float) -> bool:
        tried.append(rate_per_s)
        return rate_per_s > limit

    assert limit - 5 <= highest_rate(is_too_high) <= limit
    assert len(tried) < 25


def test_there_is_an_end_to_rates_that_nothing_limits() -> None:
    assert highest_rate(lambda _rate: False) >= 50_000


@pytest.fixture
def short_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that need few events."""
    monkeypatch.setattr(gryphon, "QUEUE_MAX", 8)
    monkeypatch.setattr(gryphon, "WARM_UP_S", 0.1)
    monkeypatch.setattr(gryphon, "RATE_ERROR_PER_S", 50.0)


@pytest.mark.slow
@pytest.mark.usefixtures("short_queues")
def test_link_matching_takes_more_events_than_flooding_if_few_are_wanted() -> None:
    def rates(bursts: Bursts | None) -> dict[str, OverloadRate]:
        rows = overload_rates(
            [39], [1.0], ["flooding", "link-matching"],
            setting=SELECTIVE, bursts=bursts, duration_s=0.3,
        )  # fmt: skip
        return {each.routing: each for each in rows}

    steady = rates(None)
    assert steady["link-matching"].rate_per_s > steady["flooding"].rate_per_s > 0
    assert steady["flooding"].matched_share == steady["link-matching"].matched_share
    assert 0 < steady["flooding"].matched_share < 0.1
    bursty = rates(Bursts(on_s=0.03, off_s=0.09))
    assert bursty["flooding"].bursts
    assert bursty["flooding"].rate_per_s < steady["flooding"].rate_per_s


@pytest.mark.slow
@pytest.mark.usefixtures("short_queues")
def test_a_world_is_idle_after_a_trial_and_gives_the_same_answers_again() -> None:
    filters = SELECTIVE.filters(paper_networks.gryphon(), 39)
    world = SELECTIVE.world("flooding", filters)
    for _ in range(2):
        assert is_overloaded(world, SELECTIVE, 0.1, None, 2_000.0)
        assert world.next_us is None
        assert all(site.waiting == 0 for site in world.sites.values())
        assert not is_overloaded(world, SELECTIVE, 0.1, None, 50.0)
    assert world.costs is COSTS


def test_steps_add_up_over_hops() -> None:
    setting = GryphonSetting(GryphonWorkload(attributes=4, degradation=0.5))
    rows = list(steps_by_hops([78], events=12, setting=setting))
    by_hops = {each.hops: each for each in rows}
    assert set(by_hops) == {1, 2, 3, 4, 5, 6, None}
    # one broker that looks for links takes fewer steps than one that looks for all subscriptions
    assert 0 < by_hops[1].steps < by_hops[None].steps
    assert by_hops[6].steps > by_hops[1].steps
    assert by_hops[None].samples == 12
    assert [each.subscriptions for each in rows] == [78] * 7


def test_the_charts_have_the_settings_of_the_paper() -> None:
    workload = CHART_3.workload
    assert (workload.attributes, workload.values, workload.care, workload.degradation) == (
        10, 3, 0.98, 0.82,
    )  # fmt: skip
    assert CHART_3.factored == 3
    assert (CHART_2.workload.attributes, CHART_2.workload.values, CHART_2.factored) == (15, 3, 1)


@pytest.mark.slow  # fills a network of 39 brokers
def test_what_it_costs_that_every_broker_holds_all_filters() -> None:
    setting = GryphonSetting(GryphonWorkload(attributes=3, degradation=0.7))
    costs = {each.routing: each for each in premise_costs(60, 6, setting=setting)}
    assert len({each.deliveries for each in costs.values()}) == 1
    flooding, links = costs["flooding"], costs["link-matching"]
    subscription, match_first = costs["subscription"], costs["match-first"]
    # Filters stay at home, and every event goes to 38 other brokers.
    assert flooding.filter_messages == 0
    assert flooding.event_messages == 6 * 38
    # Nothing is hidden: a filter is in all brokers or in none.
    assert links.filters_held % 39 == 0
    assert links.filters_held > subscription.filters_held > flooding.filters_held
    assert links.filter_bytes > subscription.filter_bytes > 0
    # Events take the same ways; a list of targets makes them larger.
    assert links.event_messages == subscription.event_messages == match_first.event_messages
    assert links.event_bytes == subscription.event_bytes < match_first.event_bytes
