"""The benchmark of link matching, on small sizes."""

from __future__ import annotations

from collections import Counter

import pytest

from tidegate.experiments import links
from tidegate.experiments.links import LinkWorkload, assigned_links, workload
from tidegate.matching.matcher import COLLECTED


@pytest.mark.parametrize("name", links.WORKLOADS)
def test_all_methods_give_the_same_answers(name: str) -> None:
    rows = list(links.measure(name, [400], [4], rounds=1, events=25))
    assert [(row.locality, row.method) for row in rows] == [
        (locality, method)
        for locality in ("spread", "regional")
        for method in ("columnar full", "tree full", "columnar links", "tree links")
    ]
    assert all(row.is_same for row in rows)
    by_method = {row.method: row for row in rows if row.locality == "spread"}
    assert by_method["columnar full"].steps is None
    tree, in_full = by_method["tree links"].steps, by_method["tree full"].steps
    assert 0 < (tree or 0) <= (in_full or 0)
    assert {row.matches for row in rows} == {rows[0].matches}
    assert rows[0].matches > 0
    assert 0 < rows[0].found <= 4


def test_an_event_goes_over_fewer_links_where_similar_subscriptions_are_together() -> None:
    rows = list(links.measure("market", [2_000], [10], rounds=1, events=40, own_share=0))
    found = {row.locality: row.found for row in rows}
    assert found["regional"] < found["spread"] / 1.5
    assert {row.own for row in rows} == {0}


@pytest.mark.parametrize("name", links.WORKLOADS)
def test_a_workload_is_drawn_by_its_seed(name: str) -> None:
    one, other = workload(name, 50, 5), workload(name, 50, 5)
    assert one == other
    assert (len(one.filters), len(one.region), len(one.events)) == (50, 50, 5)
    assert all(0 <= each < one.regions for each in one.region)
    assert one.filters != workload(name, 50, 5, seed=2).filters


def test_regions_are_in_the_order_of_the_first_range() -> None:
    drawn = workload("market", 200, 1)
    lows = sorted(
        zip(drawn.region, (str(each) for each in drawn.filters), strict=True),
        key=lambda one: one[0],
    )
    prices = [float(text.split("price >= ")[1].split(" ")[0]) for _, text in lows]
    assert prices == sorted(prices)


@pytest.mark.parametrize("locality", links.LOCALITIES)
def test_each_subscription_has_one_link_or_is_the_brokers_own(locality: str) -> None:
    drawn = LinkWorkload([], [number % 3 for number in range(3_000)], 3, [])
    assigned = Counter(assigned_links(drawn, 5, locality, own_share=0.2))
    assert set(assigned) == {1, 2, 4, 8, 16, 32}
    assert assigned[COLLECTED] == pytest.approx(600, rel=0.15)


def test_links_lead_to_regions() -> None:
    drawn = LinkWorkload([], [number % 3 for number in range(300)], 3, [])
    of_region: dict[int, set[int]] = {}
    assigned = assigned_links(drawn, 6, "regional", own_share=0)
    for region, each in zip(drawn.region, assigned, strict=True):
        of_region.setdefault(region, set()).add(each)
    assert of_region == {0: {2, 4}, 1: {8, 16}, 2: {32, 64}}
    in_order = LinkWorkload([], list(range(10)), 10, [])
    assert assigned_links(in_order, 2, "regional", own_share=0) == [2] * 5 + [4] * 5
