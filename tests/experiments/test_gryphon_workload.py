"""The workload of Gryphon's simulation."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tidegate.experiments.gryphon_workload import (
    CLIENTS_PER_BROKER,
    PUBLISHERS,
    GryphonWorkload,
    matched_share,
    placed_filters,
    region_number,
)
from tidegate.language.filters import parse
from tidegate.simulation.overlays.paper_networks import gryphon


def test_a_subscription_cares_less_and_less_about_later_attributes() -> None:
    workload, random = GryphonWorkload(attributes=4, degradation=0.5), Random(1)
    drawn = [workload.random_filter(random, 0) for _ in range(2000)]
    cared = [sum(f"a{index}" in each.attributes for each in drawn) / 2000 for index in range(4)]
    assert cared == pytest.approx([0.98, 0.49, 0.245, 0.1225], abs=0.03)


def test_a_subscription_that_cares_about_nothing_wants_everything() -> None:
    assert GryphonWorkload(care=0.0).random_filter(Random(1), 0) == parse("true")


def test_each_region_has_its_own_favourites_in_filters_and_events() -> None:
    workload, random = GryphonWorkload(attributes=1, care=1.0), Random(1)
    for region in range(3):
        order = [(region + rank) % 3 for rank in range(3)]
        events = Counter(
            workload.random_event(random, region, 1).attributes["a0"] for _ in range(1000)
        )
        filters = Counter(str(workload.random_filter(random, region)) for _ in range(1000))
        assert [value for value, _ in events.most_common()] == order
        assert [text for text, _ in filters.most_common()] == [f"a0 = {value}" for value in order]


def test_without_skew_all_values_are_alike() -> None:
    workload, random = GryphonWorkload(attributes=1, values=4, skew=0.0), Random(1)
    drawn = Counter(workload.random_event(random, 2, 1).attributes["a0"] for _ in range(4000))
    assert min(drawn.values()) > 900


def test_subscriptions_are_spread_over_brokers_and_clients() -> None:
    topology = gryphon()
    placed = list(placed_filters(GryphonWorkload(), topology, 39 * 20, seed=1))
    assert Counter(each.broker for each in placed) == dict.fromkeys(topology.brokers, 20)
    clients = {each.client for each in placed}
    assert len(clients) == 39 * CLIENTS_PER_BROKER
    assert len({each.name for each in placed}) == 39 * 20
    assert list(placed_filters(GryphonWorkload(), topology, 50, seed=1)) == placed[:50]


def test_publishers_are_in_different_regions() -> None:
    assert [region_number(gryphon(), broker) for broker in PUBLISHERS] == [0, 1, 2]


@pytest.mark.parametrize(("degradation", "share"), [(0.82, 0.017), (0.5, 0.17)])
def test_the_share_of_matches(degradation: float, share: float) -> None:
    workload, random = GryphonWorkload(attributes=10, degradation=degradation), Random(2)
    filters = list(placed_filters(workload, gryphon(), 600, seed=1))
    events = [workload.random_event(random, number % 3, 1) for number in range(60)]
    assert matched_share(filters, events) == pytest.approx(share, rel=0.2)


def test_no_subscriptions_have_no_matches() -> None:
    assert matched_share([], []) == 0
