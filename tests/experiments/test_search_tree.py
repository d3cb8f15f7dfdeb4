"""The benchmark of the search tree, on small sizes."""

from __future__ import annotations

import pytest

from tidegate.experiments import search_tree
from tidegate.experiments.search_tree import CHART_3, PROTOTYPE, TreeSpeed


def test_all_variants_give_the_same_answers() -> None:
    rows = list(search_tree.measure(CHART_3, [300], rounds=1, count=20))
    assert {row.variant for row in rows} == {
        "columnar", "tree", "no elimination", "no delayed branching", "factored", "plain tree",
    }  # fmt: skip
    assert all(row.is_same for row in rows)
    assert {row.matches for row in rows} == {rows[0].matches}
    assert rows[0].matches > 0
    by_variant = {row.variant: row for row in rows}
    assert by_variant["columnar"].steps is None
    plain, tree = by_variant["plain tree"], by_variant["tree"]
    assert (plain.nodes or 0) > (tree.nodes or 0) > 0


def test_fewer_subscriptions_are_the_first_of_more() -> None:
    few, more = (
        [str(each.filter) for each in search_tree.subscriptions(PROTOTYPE, count)]
        for count in (3, 9)
    )
    assert more[:3] == few


def test_the_schemas_are_those_of_the_paper() -> None:
    assert (PROTOTYPE.values, len(PROTOTYPE.cares), PROTOTYPE.cares[7]) == (30, 30, 0.35)
    assert CHART_3.cares[2] == pytest.approx(0.98 * 0.82**2)


def test_growth_is_the_exponent_of_a_power_law() -> None:
    rows = [
        TreeSpeed("s", size, variant, 1, 1, 1, 7 * size**power, 1, 0, True)
        for variant, power in (("tree", 0.5), ("factored", 0.9))
        for size in (100, 1_000, 10_000)
    ]
    assert search_tree.growth(rows) == pytest.approx(0.5)
