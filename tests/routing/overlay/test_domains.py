from __future__ import annotations

import pytest

from tidegate.routing.overlay.domains import Architecture, Domain, DomainPlan
from tidegate.routing.overlay.graph import Announcement, Graph

ACYCLIC, GENERAL, HIERARCHICAL = (
    Architecture.ACYCLIC,
    Architecture.GENERAL,
    Architecture.HIERARCHICAL,
)


def said(broker: str, *near: str, version: int = 1) -> Announcement:
    return Announcement(broker, version, tuple((name, 1) for name in near))


def domain_of(architecture: Architecture, me: str, *all_said: Announcement) -> Domain:
    """A domain as a broker sees it that has heard all there is."""
    domain = Domain("d", architecture, me)
    for each in all_said:
        if each.broker == me:
            for name, cost_us in each.costs_us:
                domain.link(name, cost_us)
    domain.learn(all_said)
    return domain


RING = [said("a", "b", "d"), said("b", "a", "c"), said("c", "b", "d"), said("d", "c", "a")]
LINE = [said("a", "b"), said("b", "a", "c"), said("c", "b")]


@pytest.mark.parametrize("architecture", Architecture)
def test_only_a_general_domain_has_a_tree_per_source_by_itself(architecture: Architecture) -> None:
    is_general = architecture is GENERAL
    domain = Domain("d", architecture, "a")
    assert domain.tree_per_source == is_general
    assert domain.own_tree == ("a" if is_general else None)
    assert Domain("d", architecture, "a", tree_per_source=True).own_tree == "a"


def test_subscriptions_go_only_upward_in_a_hierarchy_that_does_not_flood() -> None:
    assert Domain("d", HIERARCHICAL, "a").only_upward
    assert not Domain("d", HIERARCHICAL, "a", floods=True).only_upward
    assert not Domain("d", HIERARCHICAL, "a", tree_per_source=True).only_upward
    assert not Domain("d", ACYCLIC, "a").only_upward


def test_what_is_new_is_learned_once() -> None:
    domain = Domain("d", GENERAL, "a")
    first, second = said("b", "c"), said("b", "c", "d", version=2)
    assert domain.learn([first]) == [first]
    assert domain.learn([first]) == []
    assert domain.learn([second]) == [second]
    assert domain.learn([first]) == []
    assert domain.known() == (second,)


def test_a_plan_is_known_and_may_be_outdated() -> None:
    plan = DomainPlan({each.broker: each for each in LINE}, Graph.of(LINE))
    domain = Domain("d", GENERAL, "a", plan=plan)
    assert domain.known() == tuple(LINE)
    assert domain.next_hop("c") is None or domain.graph is plan.graph
    assert domain.learn([LINE[1]]) == []
    cut = said("b", "a", version=2)
    assert domain.learn([cut]) == [cut]
    assert not domain.graph.reaches("a", "c")


def test_announcements_are_numbered_by_time_and_always_upward() -> None:
    domain = Domain("d", ACYCLIC, "a")
    domain.link("b", 7)
    first = domain.announcement(now_us=100)
    domain.link("c", 8)
    second = domain.announcement(now_us=100)
    assert first == Announcement("a", 100, (("b", 7),))
    assert second == Announcement("a", 101, (("b", 7), ("c", 8)))
    assert domain.known() == (second,)


def test_a_broker_whose_clock_was_ahead_before_it_restarted_is_heard() -> None:
    domain = Domain("d", ACYCLIC, "a")
    domain.learn([said("a", "x", version=5_000)])  # what the others remember of it
    domain.link("b", 7)
    again = domain.announcement(now_us=100)
    assert again.version > 5_000
    assert domain.known() == (again,)


def test_unlinking_the_master_leaves_none() -> None:
    domain = Domain("d", HIERARCHICAL, "a")
    domain.link("m", 1, is_master=True)
    domain.link("s", 1)
    assert domain.upward(None) == ["m"]
    assert domain.upward("s") == ["m"]
    assert domain.upward("m") == []
    domain.unlink("m")
    assert domain.master is None
    assert domain.upward(None) == []
    assert domain.neighbours == {"s": 1}
    domain.unlink("m")  # it is gone already


def test_onward_is_away_from_the_sender_where_there_is_one_tree() -> None:
    domain = domain_of(ACYCLIC, "b", *LINE)
    assert domain.onward(None, None) == ["a", "c"]
    assert domain.onward(None, "a") == ["c"]


def test_onward_is_down_the_tree_where_each_source_has_one() -> None:
    at_a, at_b = domain_of(GENERAL, "a", *RING), domain_of(GENERAL, "b", *RING)
    assert sorted(at_a.onward("a", None)) == ["b", "d"]
    down = {name: domain_of(GENERAL, name, *RING).onward("a", None) for name in "bd"}
    assert sorted(down["b"] + down["d"]) == ["c"]  # by one of the two ways
    assert at_b.onward("c", "c") == [] or at_b.onward("c", "c") == ["a"]


def test_onward_names_neighbours_only() -> None:
    domain = domain_of(GENERAL, "b", *LINE)
    domain.unlink("c")  # the others do not know yet
    assert domain.onward("a", "a") == []


def test_between_and_next_hop_follow_the_shortest_path() -> None:
    domain = domain_of(GENERAL, "b", *LINE)
    assert domain.is_between("a", "c")
    assert domain.is_between("a", "b")
    assert domain_of(GENERAL, "a", *LINE).is_between("a", "c")
    assert not domain_of(GENERAL, "a", *LINE).is_between("b", "c")
    assert domain.next_hop("c") == "c"
    assert domain_of(GENERAL, "a", *LINE).next_hop("c") == "b"
    assert domain.next_hop("nobody") is None


@pytest.mark.parametrize("architecture", [ACYCLIC, HIERARCHICAL])
def test_a_second_way_closes_a_cycle(architecture: Architecture) -> None:
    domain = domain_of(architecture, "a", *LINE)
    assert domain.closes_cycle("c", [])
    assert not domain.closes_cycle("new", [])
    assert domain.closes_cycle("a", [])


def test_what_the_other_knows_counts_too_when_a_cycle_is_looked_for() -> None:
    domain = domain_of(ACYCLIC, "a", said("a", "b"), said("b", "a"))
    assert not domain.closes_cycle("c", [])
    assert domain.closes_cycle("c", [said("b", "a", "c", version=2), said("c", "b")])
    assert not domain.closes_cycle("c", [said("b", "a", "c", version=0), said("c", "b")])


def test_a_general_domain_may_have_cycles() -> None:
    assert not domain_of(GENERAL, "a", *LINE).closes_cycle("c", [])
