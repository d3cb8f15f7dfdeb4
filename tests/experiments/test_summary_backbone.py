"""What crosses which link, and what brokers send, without a run; see also `test_summary_runs`."""

from __future__ import annotations

import pytest

from tidegate.experiments.summary_backbone import (
    Backbone,
    Channel,
    CoveredSubscriptions,
    known_summaries,
    sent_summaries,
)
from tidegate.experiments.summary_workload import PlacedInterest
from tidegate.language.filters import Filter, parse
from tidegate.matching.summary.summary import Summary
from tidegate.simulation.overlays.paper_networks import isp24, summaries13

NARROW = parse("x between 2 and 3")
WIDE = parse("x between 1 and 4")
OTHER = parse("y = 1")


@pytest.fixture
def drawn() -> CoveredSubscriptions:
    """`a` holds the narrow one and the other; `b` the wide one, and gets it once more; then `a`
    gets the wide one."""
    first = [placed("a", 0, NARROW), placed("a", 1, OTHER), placed("b", 0, WIDE)]
    return CoveredSubscriptions([first, [placed("b", 1, WIDE)], [placed("a", 2, WIDE)]])


def placed(broker: str, number: int, filter: Filter) -> PlacedInterest:
    return PlacedInterest(broker, number, (), filter)


def crossing(drawn: CoveredSubscriptions, brokers: str, stage: int) -> list[int]:
    return sorted(drawn.crossing(Channel(frozenset(brokers), 1), stage))


def test_only_subscriptions_of_the_channel_hide_each_other(drawn: CoveredSubscriptions) -> None:
    assert crossing(drawn, "a", 0) == [0, 1]
    assert crossing(drawn, "ab", 0) == [1, 2]


def test_of_equal_ones_the_first_crosses(drawn: CoveredSubscriptions) -> None:
    assert crossing(drawn, "b", 1) == [2]
    assert crossing(drawn, "ab", 2) == [1, 2]


def test_a_new_one_hides_those_that_crossed_before(drawn: CoveredSubscriptions) -> None:
    assert crossing(drawn, "a", 1) == [0, 1]
    assert crossing(drawn, "a", 2) == [1, 4]
    assert [each.number for each in drawn.wanted("a", 2, subsumption=False)] == [0, 1, 2]


def test_the_share_that_is_covered_at_home(drawn: CoveredSubscriptions) -> None:
    assert drawn.covered_share(0) == 0
    assert drawn.covered_share(1) == 1 / 4
    assert drawn.covered_share(2) == 2 / 5


def test_the_tree_of_a_backbone_has_a_link_less_than_brokers() -> None:
    backbone = Backbone(isp24())
    assert len(backbone.as_tree().links) == 23
    assert sum(each.links for each in backbone.channels(one_tree=True)) == 2 * 23
    assert sum(each.links for each in backbone.channels(one_tree=False)) == 24 * 23


def test_hops_on_the_tree_of_the_paper() -> None:
    backbone = Backbone(summaries13())
    assert sum(backbone.hops(backbone.graph.tree("5"))) == 29
    assert backbone.middle.root == "7"
    assert sum(backbone.hops(backbone.middle)) == 28


def test_summaries_are_of_the_brokers_that_the_paper_names() -> None:
    backbone = Backbone(summaries13())
    own = {}
    for broker in backbone.brokers:
        summary = Summary()
        summary.add(broker, 0, NARROW)
        own[broker] = summary.tables()
    plan = backbone.plan()
    sent = sent_summaries(plan, own)
    assert sent["2"].owners == ("1", "2")
    known = known_summaries(plan, own, sent)
    assert set(known["5"].owners) == set("123456")
