"""The examination of events: the way of figure 7, missing summaries, lists, copies on links."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.routing.messages import (
    Client,
    Deliver,
    Examination,
    Message,
    Notify,
    Publication,
    Publish,
    Stamp,
    Subscribe,
    Validity,
)
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.summaries.examination import EventCounts, Examiner, check_notify
from tidegate.routing.summaries.exchange import SummaryExchange
from tidegate.routing.summaries.plan import Plan
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.world import SilentClient, World

TREE = [("a", "b"), ("b", "c"), ("c", "d"), ("c", "e")]
"""a -> b -> c, d -> c, e -> c; c has degree 3 and no parent."""


def network(settings: SummarySettings | None = None) -> Network:
    found = Network(TREE, "summaries", summaries=settings)
    found.wait()
    return found


def exchange_of(network: Network, broker: str) -> SummaryExchange:
    summaries = network.brokers[broker].summaries
    assert summaries is not None
    return summaries.exchanges["d"]


def publication(**attributes: int) -> Publication:
    return Publication(Event(attributes, from_us(1)), Stamp("a", 0, 1), "pub")


# -- figure 7 --------------------------------------------------------------------------------------


def figure_7() -> World:
    """The 13 brokers, with subscribers at 4, 8 and 13, and all summaries sent."""
    world = World(generate("summaries13"), "summaries")
    for home in ("4", "8", "13"):
        world.admit(Client(f"at-{home}"), SilentClient(), home)
        world.request(Client(f"at-{home}"), Subscribe("x = 1"))
    world.admit(Client("pub"), SilentClient(), "1")
    world.run()
    return world


def test_the_event_of_figure_7() -> None:
    """From 1 to 5, from 5 to 4 and 8, from 8 to 11, from 11 to 13; it ends at 11."""
    world = figure_7()
    plan: Plan | None = None
    arrived: list[tuple[str, str]] = []
    lists: dict[str, set[str]] = {}
    delivered: list[str] = []
    summaries = world.sites["1"].broker.summaries
    assert summaries is not None
    plan = next(iter(summaries.exchanges.values())).plan

    def observe(_now_us: int, sender: object, receiver: object, message: Message) -> None:
        if isinstance(message, Deliver):
            delivered.append(str(sender))
        if isinstance(message, Notify):
            if receiver in (message.targets or ()):
                arrived.append(("owner", str(receiver)))
            examination = message.examination
            if examination is not None and examination.examiner == receiver:
                arrived.append(("examiner", examination.examiner))
                lists[examination.examiner] = {
                    each for each in plan.brokers if examination.examined & plan.bit(each)
                }

    world.observer = observe
    world.request(Client("pub"), Publish(Event.of({"x": 1})))
    world.run()
    assert arrived == [
        ("examiner", "5"), ("owner", "4"), ("examiner", "8"), ("examiner", "11"), ("owner", "13"),
    ]  # fmt: skip
    assert lists == {
        "5": {"1"},
        "8": {"1", "2", "3", "4", "5", "6"},
        "11": {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"},
    }
    assert delivered == ["4", "8", "13"]
    counts = [
        each.broker.summaries.counts for each in world.sites.values() if each.broker.summaries
    ]
    assert sum(each.to_examiners for each in counts) == 3
    assert sum(each.to_owners for each in counts) == 2
    assert sum(each.copies for each in counts) == 1 + 1 + 1 + 2 + 2 + 1  # over 2, 7 and 10
    assert sum(each.examined for each in counts) == 4


def test_brokers_that_only_relay_neither_match_nor_see_an_event() -> None:
    world = figure_7()
    world.request(Client("pub"), Publish(Event.of({"x": 1})))
    world.run()
    for relay, saw in (("2", False), ("7", False), ("10", False), ("8", True), ("4", True)):
        seen = {stamp.broker for stamp in world.sites[relay].broker.events.last_seen()}
        assert ("1" in seen) == saw


# -- whom an event is for --------------------------------------------------------------------------


def test_a_broker_of_which_nothing_is_known_counts_as_an_owner() -> None:
    found = network()
    counts = EventCounts()
    exchange = exchange_of(found, "c")
    examiner = Examiner(exchange, counts)
    event = Event.of({"x": 1})
    assert examiner.examine(publication(x=1), event, None) == (set(), None)
    del exchange.held["b"]
    exchange.revision += 1
    assert examiner.examine(publication(x=1), event, None) == ({"a", "b"}, None)
    assert counts.unknown == 2


@pytest.mark.parametrize(("time_us", "is_valid"), [(9, False), (10, True), (20, True), (21, False)])
def test_a_summary_speaks_for_its_window_only(time_us: int, is_valid: bool) -> None:
    found = network()
    exchange = exchange_of(found, "c")
    held = exchange.held["b"]
    exchange.held["b"] = replace(held, validity=(Validity("a", 10, 20),))
    exchange.revision += 1
    event = Event({"x": 1}, from_us(time_us))
    at = Publication(event, Stamp("e", 0, 1), "pub")
    owners, _ = Examiner(exchange, EventCounts()).examine(at, event, None)
    assert owners == (set() if is_valid else {"a"})


def test_who_is_in_the_list_gets_no_second_copy() -> None:
    found = network()
    found.subscribe("a", "ann", "x = 1")
    found.subscribe("d", "bob", "x = 1")
    found.wait()
    exchange = exchange_of(found, "c")
    examiner = Examiner(exchange, EventCounts())
    plan, event = exchange.plan, Event.of({"x": 1})
    known = Examination("c", plan.bits("a"), plan.digest)
    assert examiner.examine(publication(x=1), event, known) == ({"d"}, None)
    other = Examination("c", plan.bits("a"), plan.digest + 1)
    assert examiner.examine(publication(x=1), event, other) == ({"a", "d"}, None)


# -- copies on links -------------------------------------------------------------------------------


def test_targets_behind_one_neighbour_share_a_copy() -> None:
    found = network()
    examiner = Examiner(exchange_of(found, "a"), EventCounts())
    onward = Examination("c", 0, 0)
    (copy,) = examiner.copies(publication(x=1), {"d", "e", "nobody"}, onward)
    assert copy == ("b", Notify(publication(x=1), None, frozenset("de"), onward))
    assert examiner.copies(publication(x=1), {"nobody"}, Examination("nobody", 0, 0)) == []


def test_copies_split_where_ways_part() -> None:
    found = network()
    examiner = Examiner(exchange_of(found, "c"), EventCounts())
    onward = Examination("d", 0, 0)
    assert examiner.copies(publication(x=1), {"e"}, onward) == [
        ("e", Notify(publication(x=1), None, frozenset("e"), None)),
        ("d", Notify(publication(x=1), None, frozenset(), onward)),
    ]


def test_a_broker_that_cannot_reach_the_examiner_takes_its_place() -> None:
    found = network()
    found.subscribe("d", "bob", "x = 1")
    found.wait()
    lost = Notify(publication(x=1), None, frozenset(), Examination("gone", 0, 0))
    found.take("c", found.brokers["c"].handle(lost, "b", found.now_us))
    found.run()
    assert found.delivered("bob") == [{"x": 1}]


def test_an_event_that_was_examined_here_is_not_examined_again() -> None:
    """So it cannot go round between brokers that disagree about the links."""
    found = network()
    found.subscribe("d", "bob", "x = 1")
    found.wait()
    again = Notify(publication(x=1), None, frozenset("e"), Examination("c", 0, 0))
    first = found.brokers["c"].handle(again, "b", found.now_us)
    second = found.brokers["c"].handle(again, "b", found.now_us)
    assert {who for who, _ in first} >= {"d", "e"}
    assert second == [("e", Notify(publication(x=1), None, frozenset("e"), None))]


def test_an_event_follows_no_tree() -> None:
    with pytest.raises(RoutingError, match="follows no tree"):
        check_notify(Notify(publication(x=1), "a"))
    with pytest.raises(RoutingError, match="no set of bits"):
        check_notify(Notify(publication(x=1), examination=Examination("a", -1, 0)))


LINKS = {
    "acyclic": (TREE, Architecture.ACYCLIC),
    "general": ([*TREE, ("e", "a"), ("d", "b")], Architecture.GENERAL),
    "hierarchical": ([("a", "r"), ("b", "r"), ("c", "a"), ("d", "b")], Architecture.HIERARCHICAL),
}


@pytest.mark.parametrize("where", LINKS)
@given(
    filters=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=6),
    events=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=6),
    degree_max=st.none() | st.integers(1, 2),
    waits=st.booleans(),
)
def test_every_event_comes_once_to_those_who_want_it_and_in_order(
    where: str,
    filters: list[tuple[str, int]],
    events: list[tuple[str, int]],
    degree_max: int | None,
    waits: bool,
) -> None:
    links, architecture = LINKS[where]
    found = Network(
        links, "summaries", architecture, summaries=SummarySettings(degree_max=degree_max)
    )
    for home, value in filters:
        found.subscribe(home, f"{home}{value}", f"x >= {value}")
    if waits:
        found.wait()
    arrivals: Counter[tuple[str, int]] = Counter()
    for number, (home, value) in enumerate(events):
        found.publish(home, f"pub-{home}", x=value, n=number)
    found.run()
    for home, value in set(filters):
        by_home: dict[str, list[int]] = {}
        for each in found.delivered(f"{home}{value}"):
            arrived = each["n"]
            assert isinstance(arrived, int)
            by_home.setdefault(events[arrived][0], []).append(arrived)
            arrivals[f"{home}{value}", arrived] += 1
        assert all(numbers == sorted(numbers) for numbers in by_home.values())
    assert arrivals == Counter(
        (f"{home}{value}", number)
        for home, value in set(filters)
        for number, (_, x) in enumerate(events)
        if x >= value
    )
