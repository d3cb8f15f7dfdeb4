"""The plan: figure 7 of the paper, round by round, and random graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.routing.overlay.graph import Graph
from tidegate.routing.summaries.plan import Plan, plan_of, rounds

FIGURE_7 = "1-2 2-5 3-5 4-5 5-6 5-7 7-8 8-9 8-10 10-11 11-12 11-13"


def graph_of(text: str) -> Graph:
    links: dict[str, dict[str, int]] = {}
    for pair in text.split():
        one, other = pair.split("-")
        links.setdefault(one, {})[other] = 10
        links.setdefault(other, {})[one] = 10
    return Graph(links)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Connected graphs of 1 to 9 brokers."""
    count = draw(st.integers(1, 9))
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, count)}
    more = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    pairs |= {(a, b) for a, b in draw(st.lists(more, max_size=8)) if a < b}
    links: dict[str, dict[str, int]] = {"b0": {}}
    for a, b in pairs:
        cost_us = draw(st.integers(0, 3))
        links.setdefault(f"b{a}", {})[f"b{b}"] = cost_us
        links.setdefault(f"b{b}", {})[f"b{a}"] = cost_us
    return Graph(links)


degree_limits = st.none() | st.integers(1, 3)


def in_order(brokers: frozenset[str]) -> str:
    return " ".join(sorted(brokers, key=int))


# -- algorithm 2 -----------------------------------------------------------------------------------


def test_the_rounds_of_figure_7() -> None:
    messages = [
        [(sender, receiver, in_order(merged)) for sender, receiver, merged in each]
        for each in rounds(graph_of(FIGURE_7), "1")
    ]
    assert messages == [
        [
            ("1", "2", "1"), ("3", "5", "3"), ("4", "5", "4"), ("6", "5", "6"), ("9", "8", "9"),
            ("12", "11", "12"), ("13", "11", "13"),
        ],
        [("2", "5", "1 2"), ("7", "8", "7"), ("10", "8", "10")],
        [],
        [],
        [],
    ]  # fmt: skip


def test_the_knowledge_of_figure_7() -> None:
    plan = plan_of(graph_of(FIGURE_7), "1")
    assert in_order(plan.known("5")) == "1 2 3 4 5 6"
    assert in_order(plan.known("8")) == "7 8 9 10"
    assert in_order(plan.known("11")) == "11 12 13"
    assert [each for each in plan.brokers if plan.parent(each) is None] == ["11", "5", "8"]
    assert plan.degree("5") == 5


@given(graphs(), degree_limits, st.booleans())
def test_rounds_and_plan_agree(graph: Graph, degree_max: int | None, to_hubs: bool) -> None:
    """Driven by dependency or by rounds: the same messages, the same knowledge."""
    plan = plan_of(graph, "b0", degree_max, to_hubs=to_hubs)
    in_rounds = rounds(graph, "b0", degree_max, to_hubs=to_hubs)
    messages = [each for messages in in_rounds for each in messages]
    assert {each.sender: each.receiver for each in messages} == {
        each: parent for each in plan.brokers if (parent := plan.parent(each)) is not None
    }
    known = {each: frozenset((each,)) for each in plan.brokers}
    for sender, receiver, merged in messages:
        assert merged == plan.sent(sender)
        known[receiver] |= merged
    assert known == {each: plan.known(each) for each in plan.brokers}


@given(graphs(), degree_limits)
def test_degrees_rise_along_a_chain_of_lower_children(graph: Graph, degree_max: int | None) -> None:
    plan = plan_of(graph, "b0", degree_max)
    for broker in plan.brokers:
        lower = plan.lower_children(broker)
        assert all(plan.degree(each) < plan.degree(broker) for each in lower)
        parts = [plan.sent(each) for each in plan.children(broker)]
        assert sum(map(len, parts)) == len(frozenset[str]().union(*parts))  # disjoint
        assert len(rounds(graph, broker, degree_max)) == max(map(plan.degree, plan.brokers))


@given(graphs(), degree_limits)
def test_to_hubs_everything_that_comes_is_passed_on(graph: Graph, degree_max: int | None) -> None:
    plan = plan_of(graph, "b0", degree_max, to_hubs=True)
    ends = [each for each in plan.brokers if plan.parent(each) is None]
    for broker in plan.brokers:
        assert plan.lower_children(broker) == plan.children(broker)
        assert plan.known(broker) == plan.sent(broker)
        parent = plan.parent(broker)
        assert parent is None or plan.degree(parent) >= plan.degree(broker)
    # trees, one below each broker without a parent
    assert sum(len(plan.known(each)) for each in ends) == len(plan.brokers)
    assert frozenset(plan.brokers) == frozenset[str]().union(*map(plan.known, ends))


def test_to_hubs_on_figure_7() -> None:
    plan = plan_of(graph_of(FIGURE_7), "1", to_hubs=True)
    assert [plan.parent(each) for each in ("1", "2", "7", "10")] == ["2", "5", "5", "8"]
    assert in_order(plan.known("5")) == "1 2 3 4 5 6 7"
    assert in_order(plan.known("8")) == "8 9 10"


def test_to_hubs_a_chain_of_equal_degrees_comes_to_one_end() -> None:
    chain = graph_of("a-b b-c c-d d-e e-f")
    assert [plan_of(chain, "a").parent(each) for each in "abcdef"] == ["b", "c", "b", "c", "d", "e"]
    plan = plan_of(chain, "a", to_hubs=True)
    assert [plan.parent(each) for each in "abcdef"] == ["b", None, "b", "c", "d", "e"]
    assert plan.known("b") == set("abcdef")
    (at_ends, middle) = rounds(chain, "a", to_hubs=True)
    assert [(each.sender, each.receiver) for each in at_ends] == [("f", "e"), ("a", "b")]
    assert [(each.sender, "".join(sorted(each.merged))) for each in middle] == [
        ("e", "ef"), ("d", "def"), ("c", "cdef"),
    ]  # fmt: skip


def test_neighbours_of_equal_degree_send_to_each_other() -> None:
    plan = plan_of(graph_of("a-b"), "a")
    assert (plan.parent("a"), plan.parent("b")) == ("b", "a")
    assert plan.sent("a") == {"a"}
    assert plan.known("a") == plan.known("b") == {"a", "b"}


def test_a_shorter_name_comes_first() -> None:
    assert plan_of(graph_of("10-8 10-11 8-x 11-y"), "10").parent("10") == "8"


def test_virtual_degrees() -> None:
    star = graph_of("h-a h-b h-c h-d a-b")
    assert plan_of(star, "h").parent("a") == "b"
    limited = plan_of(star, "h", 1)
    assert {limited.degree(each) for each in limited.brokers} == {1}
    assert [limited.parent(each) for each in limited.brokers] == ["b", "a", "h", "h", "a"]


# -- algorithm 3 -----------------------------------------------------------------------------------


def test_the_visits_of_figure_7() -> None:
    plan = plan_of(graph_of(FIGURE_7), "1")
    assert list(plan.stops("1", "13")) == ["5", "8", "11", "13"]
    assert list(plan.stops("1", "8")) == ["5", "8"]
    assert list(plan.stops("1", "4")) == ["5", "4"]
    assert list(plan.stops("5", "4")) == ["4"]
    assert plan.next_examiner("11", plan.bits(plan.brokers)) is None


@given(graphs(), degree_limits, st.booleans())
def test_every_broker_is_visited_or_known(
    graph: Graph, degree_max: int | None, to_hubs: bool
) -> None:
    plan = plan_of(graph, "b0", degree_max, to_hubs=to_hubs)
    everybody = plan.bits(plan.brokers)
    for broker in plan.brokers:
        at: str | None = broker
        examined, visits = 0, 0
        while at is not None:
            assert not examined & plan.bit(at)
            examined |= plan.known_bits(at)
            at = plan.next_examiner(at, examined)
            visits += 1
        assert examined == everybody
        assert visits <= len(plan.brokers)
        for owner in plan.brokers:
            if owner != broker:
                assert list(plan.stops(broker, owner))[-1] == owner


def test_brokers_that_know_the_same_graph_share_a_plan() -> None:
    graph = graph_of(FIGURE_7)
    assert plan_of(graph, "1") is plan_of(graph, "9")
    assert plan_of(graph, "1") is not plan_of(graph, "1", 2)
    assert plan_of(graph, "1") is not plan_of(graph, "1", to_hubs=True)
    assert plan_of(graph, "1").digest != plan_of(graph_of("1-2"), "1").digest


def test_a_broker_alone() -> None:
    plan: Plan = plan_of(Graph({}), "a")
    assert plan.parent("a") is None
    assert plan.known("a") == {"a"}
    assert plan.bit("z") == 0
    assert "a" in plan
    assert "z" not in plan
    assert rounds(Graph({}), "a") == []
