"""What a broker learns of the links of its domains, and the trees it computes from that."""

from __future__ import annotations

import pytest

from tidegate.routing.overlay.domains import Architecture, Domain, DomainPlan
from tidegate.routing.overlay.graph import Announcement, Graph

ACYCLIC, GENERAL, HIERARCHICAL = (
    Architecture.ACYCLIC,
    Architecture.GENERAL,
    Architecture.HIERARCHICAL,
)


def announced(broker: str, *neighbours: str, version: int = 1) -> Announcement:
    return Announcement(broker, version, tuple((name, 1) for name in neighbours))


def domain_of(architecture: Architecture, me: str, *announcements: Announcement) -> Domain:
    """A domain as seen by a broker that has all announcements."""
    domain = Domain("d", architecture, me)
    for each in announcements:
        if each.broker == me:
            for name, cost_us in each.costs_us:
                domain.link(name, cost_us)
    domain.learn(announcements)
    return domain


RING = [
    announced("a", "b", "d"),
    announced("b", "a", "c"),
    announced("c", "b", "d"),
    announced("d", "c", "a"),
]
LINE = [announced("a", "b"), announced("b", "a", "c"), announced("c", "b")]


@pytest.mark.parametrize("architecture", Architecture)
def test_only_a_general_domain_has_a_tree_per_source_by_itself(architecture: Architecture) -> None:
    is_general = architecture is GENERAL
    domain = Domain("d", architecture, "a")
    assert domain.tree_per_source == is_general
    assert domain.own_tree == ("a" if is_general else None)
    assert Domain("d", architecture, "a", tree_per_source=True).own_tree == "a"


def test_subscriptions_go_to_the_master_only_in_a_hierarchy_that_does_not_flood() -> None:
    assert Domain("d", HIERARCHICAL, "a").routes_to_master
    assert not Domain("d", HIERARCHICAL, "a", floods=True).routes_to_master
    assert not Domain("d", HIERARCHICAL, "a", tree_per_source=True).routes_to_master
    assert not Domain("d", ACYCLIC, "a").routes_to_master


def test_a_new_announcement_is_learned_once() -> None:
    domain = Domain("d", GENERAL, "a")
    first, second = announced("b", "c"), announced("b", "c", "d", version=2)
    assert domain.learn([first]) == [first]
    assert domain.learn([first]) == []
    assert domain.learn([second]) == [second]
    assert domain.learn([first]) == []
    assert domain.announcements() == (second,)


def test_a_plan_is_known_and_may_be_outdated() -> None:
    plan = DomainPlan({each.broker: each for each in LINE}, Graph.of(LINE))
    domain = Domain("d", GENERAL, "a", plan=plan)
    assert domain.announcements() == tuple(LINE)
    assert domain.next_hop("c") is None or domain.graph is plan.graph
    assert domain.learn([LINE[1]]) == []
    cut = announced("b", "a", version=2)
    assert domain.learn([cut]) == [cut]
    assert not domain.graph.reaches("a", "c")


def test_versions_of_announcements_follow_the_clock_and_always_grow() -> None:
    domain = Domain("d", ACYCLIC, "a")
    domain.link("b", 7)
    first = domain.announce(now_us=100)
    domain.link("c", 8)
    second = domain.announce(now_us=100)
    assert first == Announcement("a", 100, (("b", 7),))
    assert second == Announcement("a", 101, (("b", 7), ("c", 8)))
    assert domain.announcements() == (second,)


def test_a_broker_whose_clock_was_ahead_before_it_restarted_still_gets_through() -> None:
    domain = Domain("d", ACYCLIC, "a")
    domain.learn([announced("a", "x", version=5_000)])  # what the others remember of it
    domain.link("b", 7)
    again = domain.announce(now_us=100)
    assert again.version > 5_000
    assert domain.announcements() == (again,)


def test_unlinking_the_master_leaves_none() -> None:
    domain = Domain("d", HIERARCHICAL, "a")
    domain.link("m", 1, is_master=True)
    domain.link("s", 1)
    assert domain.towards_master(None) == ["m"]
    assert domain.towards_master("s") == ["m"]
    assert domain.towards_master("m") == []
    domain.unlink("m")
    assert domain.master is None
    assert domain.towards_master(None) == []
    assert domain.neighbours == {"s": 1}
    domain.unlink("m")  # it is gone already


def test_downstream_is_away_from_the_sender_where_there_is_one_tree() -> None:
    domain = domain_of(ACYCLIC, "b", *LINE)
    assert domain.downstream(None, None) == ["a", "c"]
    assert domain.downstream(None, "a") == ["c"]


def test_downstream_is_down_the_tree_where_each_source_has_one() -> None:
    at_a, at_b = domain_of(GENERAL, "a", *RING), domain_of(GENERAL, "b", *RING)
    assert sorted(at_a.downstream("a", None)) == ["b", "d"]
    down = {name: domain_of(GENERAL, name, *RING).downstream("a", None) for name in "bd"}
    assert sorted(down["b"] + down["d"]) == ["c"]  # by one of the two paths
    assert at_b.downstream("c", "c") == [] or at_b.downstream("c", "c") == ["a"]


def test_downstream_has_neighbours_only() -> None:
    domain = domain_of(GENERAL, "b", *LINE)
    domain.unlink("c")  # the others do not know yet
    assert domain.downstream("a", "a") == []


def test_paths_and_next_hops_are_shortest() -> None:
    domain = domain_of(GENERAL, "b", *LINE)
    assert domain.is_on_path("a", "c")
    assert domain.is_on_path("a", "b")
    assert domain_of(GENERAL, "a", *LINE).is_on_path("a", "c")
    assert not domain_of(GENERAL, "a", *LINE).is_on_path("b", "c")
    assert domain.next_hop("c") == "c"
    assert domain_of(GENERAL, "a", *LINE).next_hop("c") == "b"
    assert domain.next_hop("nobody") is None


@pytest.mark.parametrize("architecture", [ACYCLIC, HIERARCHICAL])
def test_a_second_path_closes_a_cycle(architecture: Architecture) -> None:
    domain = domain_of(architecture, "a", *LINE)
    assert domain.closes_cycle("c", [])
    assert not domain.closes_cycle("new", [])
    assert domain.closes_cycle("a", [])


def test_links_that_only_the_other_end_knows_count_for_cycles_too() -> None:
    domain = domain_of(ACYCLIC, "a", announced("a", "b"), announced("b", "a"))
    assert not domain.closes_cycle("c", [])
    assert domain.closes_cycle("c", [announced("b", "a", "c", version=2), announced("c", "b")])
    assert not domain.closes_cycle("c", [announced("b", "a", "c", version=0), announced("c", "b")])


def test_a_general_domain_may_have_cycles() -> None:
    assert not domain_of(GENERAL, "a", *LINE).closes_cycle("c", [])
