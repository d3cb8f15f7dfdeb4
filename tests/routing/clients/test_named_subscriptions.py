"""Named subscriptions: no event falls between two versions, whatever the network does."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.routing.broker import BrokerLimits
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.messages import (
    Cancel,
    Client,
    Deliver,
    Depart,
    InForce,
    MatchedVersion,
    Message,
    Probe,
    Publish,
    Refused,
    Resume,
    Subscribe,
    Suspend,
    Unsubscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture

ANN = Client("ann")
LINE = [("a", "b"), ("b", "c"), ("c", "d")]
TREE = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a"), ("b", "e")]
HIERARCHY = [("a", "r"), ("b", "r"), ("c", "a"), ("d", "b")]
WORLDS = {
    "acyclic": (TREE, Architecture.ACYCLIC),
    "general": (RING, Architecture.GENERAL),
    "hierarchical": (HIERARCHY, Architecture.HIERARCHICAL),
}
ROUTINGS = ["flooding", "match-first", "subscription", "advertisement", "link-matching"]
SECOND = 1_000_000


def world(where: str, routing: str = "subscription", **more: str | bool) -> Network:
    links, architecture = WORLDS[where]
    network = Network(links, routing, architecture, only_advertised=False, **more)  # type: ignore[arg-type]
    for name in network.brokers:
        network.advertise(name, f"pub-{name}", "x is not null and y is not null")
    network.run()
    return network


def named(
    text: str, name: str = "s", version: int = 1, *, confirm: bool = False, **parameters: object
) -> Subscribe:
    return Subscribe(text, name, parameters, version=version, confirm=confirm)  # type: ignore[arg-type]


def update(version: int, *, confirm: bool = False, **parameters: object) -> Update:
    return Update("s", version, parameters, confirm=confirm)  # type: ignore[arg-type]


# -- no gap -------------------------------------------------------------------------------------

MATCHING_FIVE: list[tuple[str, dict[str, Any]]] = [
    ("x > :low", {"low": 0}),
    ("x > :low", {"low": 4}),
    ("x between :low and :high", {"low": 5, "high": 5}),
    ("x between :low and :high", {"low": 0, "high": 9}),
    ("x > :low and y is not null", {"low": 1}),
    ("x = :value or y = :value", {"value": 5}),
    ("x > :low - t", {"low": 4}),
    ("x is not null and y < 1 + t", {}),
    ("x is not null", {}),
]
"""Filters that all match x = 5, y = 0, at any time."""


def random_version(random: Random, version: int) -> Update:
    text, values = random.choice(MATCHING_FIVE)
    return Update("s", version, values, filter=text, confirm=random.random() < 0.3)


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("where", WORLDS)
@settings(max_examples=settings().max_examples // 10)
@given(
    more=st.sampled_from([{}, {"merging": True}, {"substrate": "naive"}]),
    seed=st.integers(0, 2**32),
)
def test_what_matches_all_versions_comes_exactly_once(
    where: str, routing: str, more: dict[str, str | bool], seed: int
) -> None:
    random = Random(seed)
    network = world(where, routing, **more)
    brokers = list(network.brokers)
    home = random.choice(brokers)
    text, values = random.choice(MATCHING_FIVE)
    network.ask(home, "ann", named(text, **values))
    for number in range(4):  # others, whose filters cover and are covered
        network.subscribe(random.choice(brokers), f"other-{number}", f"x > {random.randrange(9)}")
    network.run(random)
    published, version = 0, 1
    for _ in range(60):
        what = random.randrange(4)
        if what == 0:
            published += 1
            network.publish(random.choice(brokers), "pub", x=5, y=0, n=published)
        elif what == 1:
            version += 1
            network.ask(home, "ann", random_version(random, version))
        elif what == 2:
            number = random.randrange(4)
            wanted = f"x > {random.randrange(9)}"
            network.ask(random.choice(brokers), f"other-{number}", Subscribe(wanted))
        else:
            network.step(random)
    network.run(random)
    numbers = [event["n"] for event in network.delivered("ann")]
    assert sorted(numbers) == list(range(1, published + 1))  # type: ignore[type-var]
    versions = [match.version for (match,) in network.matches("ann")]
    assert versions == sorted(versions)
    assert not any(isinstance(each, Refused) for each in network.received["ann"])


def test_an_event_is_matched_by_the_old_version_or_by_the_new_one() -> None:
    """Wherever the update is when events come by: 7 matches both, 3 the old, 15 the new one."""
    seen = set()
    for seed in range(40):
        random = Random(seed)
        network = Network(LINE)
        network.ask("d", "ann", named("x > :low and x < :high", low=0, high=10))
        network.run()
        for number in range(6):
            if number == 3:
                network.ask("d", "ann", update(2, low=5, high=20))
            for x in (3, 7, 15):
                network.publish("a", "pub", x=x)
            for _ in range(random.randrange(12)):
                network.step(random)
        network.run(random)
        versions = [version for ((_, version),) in network.matches("ann")]
        got = list(zip((event["x"] for event in network.delivered("ann")), versions, strict=True))
        assert sum(x == 7 for x, _ in got) == 6
        assert set(got) <= {(3, 1), (7, 1), (7, 2), (15, 2)}
        assert versions == sorted(versions)
        seen.add(tuple(got))
    assert len(seen) > 5


# -- in force -----------------------------------------------------------------------------------


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("where", WORLDS)
@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 2**32), merging=st.booleans())
def test_a_version_in_force_brings_all_events_that_match_it(
    where: str, routing: str, seed: int, merging: bool
) -> None:
    random = Random(seed)
    network = world(where, routing, merging=merging)
    brokers = list(network.brokers)
    home = random.choice(brokers)
    network.ask(home, "ann", named("x = :value", value=0, confirm=True))
    for number in range(3):
        network.subscribe(random.choice(brokers), f"other-{number}", f"x = {random.randrange(4)}")
    due: list[int] = []
    for version in range(2, 6):
        for _ in range(random.randrange(6)):
            network.step(random)
        wide = random.random() < 0.3
        text = "x = :value or x = 9" if wide else "x = :value"
        change = Update("s", version, {"value": version}, filter=text, confirm=True)
        network.ask(home, "ann", change)
        while ("s", version) not in network.in_force("ann"):
            assert network.step(random)
        for name in brokers:  # before anything else happens
            network.publish(name, f"pub-{name}", x=version, y=0)
        network.run(random)
        due += [version] * len(brokers)
        assert [event["x"] for event in network.delivered("ann")] == due
        assert {match.version for (match,) in network.matches("ann")[-len(brokers) :]} == {version}
    assert network.in_force("ann")[-4:] == [("s", version) for version in range(2, 6)]


def test_a_version_is_confirmed_when_all_brokers_have_it() -> None:
    network = Network(LINE)
    network.ask("a", "ann", named("x < :n", n=1, confirm=True))
    for link in (("a", "b"), ("a", "b"), ("b", "c"), ("b", "c"), ("c", "d"), ("c", "d")):
        network.arrive(*link)
        assert network.in_force("ann") == []
    assert len(network.brokers["d"].subscriptions.poset) == 1
    for link in (("d", "c"), ("c", "b")):
        network.arrive(*link)
        assert network.in_force("ann") == []
    network.arrive("b", "a")
    assert network.in_force("ann") == [("s", 1)]


def test_a_broker_without_neighbours_confirms_at_once() -> None:
    network = Network([])
    network.add("a")
    (confirmation,) = network.ask("a", "ann", named("x < 1", confirm=True))
    assert confirmation == InForce("s", 1)
    assert network.ask("a", "ann", Update("s", 2, filter="x < 2")) == []
    assert network.ask("a", "ann", Update("s", 3, confirm=True)) == [InForce("s", 3)]


def test_where_subscriptions_are_sent_nowhere_it_is_in_force_at_once() -> None:
    network = Network(LINE, "flooding")
    assert network.ask("a", "ann", named("x < 1", confirm=True)) == [InForce("s", 1)]
    assert not any(network.waiting.values())


def test_only_requests_with_confirm_are_confirmed() -> None:
    network = Network(LINE)
    network.ask("a", "ann", named("x < :n", n=1))
    network.ask("a", "ann", update(2, n=2))
    network.run()
    assert network.received["ann"] == []


def test_confirmations_asked_for_while_a_wave_is_on_its_way_share_the_next() -> None:
    network = Network(LINE)
    network.ask("a", "ann", named("x < :n", n=1, confirm=True))
    for version in range(2, 7):
        network.ask("a", "ann", update(version, n=version, confirm=True))
    network.ask("a", "bob", named("y < 1", version=8, confirm=True))
    probes = 0
    while links := [link for link, waiting in network.waiting.items() if waiting]:
        probes += isinstance(network.waiting[links[0]][0], Probe)
        network.arrive(*links[0])
    assert probes == 2 * 3
    assert network.in_force("ann") == [("s", 1), ("s", 6)]  # 6 is later than all in between
    assert network.in_force("bob") == [("s", 8)]


def test_a_lost_link_does_not_hold_a_confirmation_up() -> None:
    for steps in range(12):
        network = Network(LINE)
        network.ask("a", "ann", named("x < 1", confirm=True))
        for _ in range(steps):
            network.step()
        network.cut("b", "c")
        network.run()
        assert network.in_force("ann") == [("s", 1)]


def test_what_was_cancelled_is_not_confirmed() -> None:
    network = Network(LINE)
    network.ask("a", "ann", named("x < 1", confirm=True))
    network.ask("a", "ann", named("y < 1", "other", version=2, confirm=True))
    network.ask("a", "ann", Cancel("s"))
    network.ask("a", "ann", Cancel("other"))
    network.run()
    assert network.in_force("ann") == []


def test_another_one_of_the_same_name_and_version_is_not_confirmed_by_mistake() -> None:
    network = Network(LINE)
    network.ask("a", "ann", named("x < 1", confirm=True))
    network.ask("a", "ann", Depart())
    network.ask("a", "ann", named("x > 1"))
    network.run()
    assert network.in_force("ann") == []


# -- deliveries ---------------------------------------------------------------------------------


def test_all_that_match_are_named_in_one_delivery() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x > :n", "one", version=1, n=0))
    network.ask("d", "ann", named("x < :n", "two", version=2, n=9))
    network.ask("d", "ann", named("y = 1", "three", version=3))
    network.subscribe("d", "ann", "z = 1")
    network.run()
    network.publish("a", "pub", x=5)
    network.publish("a", "pub", x=50, z=1)
    network.publish("a", "pub", z=1)
    network.run()
    deliveries = [each for each in network.received["ann"] if isinstance(each, Deliver)]
    assert [(set(each.matches), each.unnamed) for each in deliveries] == [
        ({MatchedVersion("one", 1), MatchedVersion("two", 2)}, False),
        ({MatchedVersion("one", 1)}, True),
        (set(), True),
    ]


def test_names_are_of_one_client_only() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x = 1"))
    network.ask("d", "bob", named("x = 2"))
    network.ask("d", "ann", Update("s", 2, filter="x = 3"))
    network.run()
    for x in (1, 2, 3):
        network.publish("a", "pub", x=x)
    network.run()
    assert network.delivered("ann") == [{"x": 3}]
    assert network.delivered("bob") == [{"x": 2}]


def test_one_with_a_name_and_one_without_do_not_replace_each_other() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x = 1"))
    network.subscribe("d", "ann", "x > 0")
    network.ask("d", "ann", named("x is not null", "wide", version=2))
    network.ask("d", "ann", Cancel("wide"))
    network.run()
    network.publish("a", "pub", x=1)
    network.run()
    assert network.matches("ann") == [(MatchedVersion("s", 1),)]
    network.ask("d", "ann", Cancel("s"))
    network.run()
    network.publish("a", "pub", x=1)
    network.run()
    assert network.matches("ann")[1:] == [()]


def test_nothing_is_delivered_that_does_not_match_at_its_time() -> None:
    """Other brokers may use estimates; ann's own broker is exact."""
    network = Network(LINE, "subscription")
    request = Subscribe("x between t - 1 and t + 1", "s", version=1, origin_us=0)
    network.ask("d", "ann", request)
    network.run()
    for second, x in ((0, 0), (5, 0), (5, 5), (5, 5.9), (5, 6.1), (3, 3)):
        event = Event.of({"x": x}, from_us(second * SECOND))
        network.ask("a", "pub", Publish(event))
    network.run()
    assert [event["x"] for event in network.delivered("ann")] == [0, 5, 5.9, 3]


def test_an_event_from_before_it_began_is_not_delivered() -> None:
    network = Network(LINE)
    network.ask("d", "ann", Subscribe("x < 5 + t", "s", version=1, origin_us=10 * SECOND))
    network.run()
    for second in (9, 10):
        network.ask("a", "pub", Publish(Event.of({"x": second}, from_us(second * SECOND))))
        network.ask("a", "pub", Publish(Event.of({"x": 1}, from_us(second * SECOND))))
    network.run()
    assert network.delivered("ann") == [{"x": 1}]


def test_variables_are_those_of_the_own_broker_and_take_effect_at_once() -> None:
    network = Network(LINE)
    network.brokers["a"].variables.set(v=100)
    network.ask("d", "ann", named("x < :n * @v", n=2))
    network.run()
    for v in (None, 3, "high", 10):
        if v is not None:
            network.brokers["d"].variables.set(v=v)
        assert not any(network.waiting.values())
        for x in (5, 15):
            network.publish("a", "pub", x=x, v=str(v))
        network.run()
    assert network.delivered("ann") == [
        {"x": 5, "v": "3"}, {"x": 5, "v": "10"}, {"x": 15, "v": "10"}
    ]  # fmt: skip


def test_an_update_does_not_restart_t() -> None:
    network = Network(LINE)
    network.ask("d", "ann", Subscribe("x < :n + t", "s", {"n": 0}, version=1, origin_us=0))
    network.ask("d", "ann", update(2, n=1))
    network.ask("d", "ann", Update("s", 3, filter="x < :n + 2 * t"))
    network.run()
    for x in (20, 22):
        network.ask("a", "pub", Publish(Event.of({"x": x}, from_us(10 * SECOND))))
    network.run()
    assert network.delivered("ann") == [{"x": 20}]


def test_t_counts_by_default_from_when_the_broker_gets_the_request() -> None:
    network = Network(LINE)
    network.now_us = 7 * SECOND
    network.ask("d", "ann", named("x < t"))
    network.run()
    network.ask("a", "pub", Publish(Event.of({"x": 1.5}, from_us(8 * SECOND))))
    network.ask("a", "pub", Publish(Event.of({"x": 1.5}, from_us(9 * SECOND))))
    network.run()
    assert len(network.delivered("ann")) == 1


def test_parameters_of_a_new_filter_keep_their_values() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x < :n and y < :m", n=5, m=6))
    network.ask("d", "ann", Update("s", 2, {"k": 1}, filter="x < :n and z = :k"))
    network.ask("d", "ann", Update("s", 3, filter="x < :n and y < :m"))  # m was dropped
    network.run()
    network.publish("a", "pub", x=1, y=1, z=1)
    network.run()
    assert network.delivered("ann") == []
    network.ask("d", "ann", update(4, m=2))
    network.run()
    network.publish("a", "pub", x=1, y=1)
    network.run()
    assert network.matches("ann") == [(MatchedVersion("s", 4),)]


# -- ending -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "routing", ["subscription", "advertisement", "match-first", "link-matching"]
)
def test_cancelled_departed_and_unsubscribed_leave_nothing(routing: str) -> None:
    endings: list[tuple[Message, ...]] = [
        (Cancel("s"), Cancel("evolving")),
        (Depart(),),
        (Unsubscribe("x is not null"),),
        (Suspend(), Depart()),
    ]
    for ending in endings:
        network = world("acyclic", routing)
        network.ask("e", "ann", named("x < :n", n=5, confirm=True))
        network.ask("e", "ann", named("x < :n + t and y > @v", "evolving", version=2, n=5))
        network.run()
        network.ask("e", "ann", update(3, n=7, confirm=True))
        for message in ending:
            assert network.ask("e", "ann", message) == []
        network.run()
        for name, broker in network.brokers.items():
            assert len(broker.subscriptions.poset) == 0, name
            assert len(broker.waves) == 0
            assert broker.named.count(ANN) == 0
        assert network.in_force("ann") == [("s", 1)]  # the update was cancelled before its wave
        network.publish("a", "pub-a", x=1, y=1)
        network.run()
        assert network.delivered("ann") == []
        network.ask("e", "ann", Depart())
        for name in list(network.brokers):
            network.ask(name, f"pub-{name}", Depart())
        network.run()
        assert network.is_empty()


def test_an_unsubscription_cancels_the_present_versions_that_it_covers() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x < :n", "one", n=5))
    network.ask("d", "ann", named("x < :n", "two", version=2, n=50))
    network.ask("d", "ann", named("x < 0 - t", "three", version=3))
    network.ask("d", "ann", named("x < t", "four", version=4))
    network.ask("d", "ann", named("x < 5 and y < @v", "five", version=5))
    network.subscribe("d", "ann", "x = 3")
    network.subscribe("d", "ann", "y = 3")
    network.ask("d", "bob", named("x < 1"))
    assert network.ask("d", "ann", Unsubscribe("x <= 9")) == []
    held = network.brokers["d"].named.subscriptions_of(ANN)
    assert [each.subscription.id for each in held] == ["two", "four"]
    left = network.brokers["d"].subscriptions.nodes_of(ANN)
    assert [str(node.item) for node in left] == ["y = 3"]
    assert network.brokers["d"].named.count(Client("bob")) == 1
    network.ask("d", "ann", Update("two", 6, {"n": 8}))
    assert network.ask("d", "ann", Unsubscribe("x <= 9")) == []
    (refused,) = network.ask("d", "ann", Unsubscribe("x <= 9"))
    assert "'ann' has no subscription that `x <= 9` covers" in str(refused)


def test_a_name_can_be_used_again() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x = 1"))
    network.ask("d", "ann", Cancel("s"))
    assert network.ask("d", "ann", named("x = 2")) == []
    network.run()
    for x in (1, 2):
        network.publish("a", "pub", x=x)
    network.run()
    assert network.delivered("ann") == [{"x": 2}]


def test_both_kinds_count_towards_the_most_that_a_client_may_have() -> None:
    network = Network(LINE, limits=BrokerLimits(per_client_max=2))
    network.ask("a", "ann", named("x = 1"))
    network.subscribe("a", "ann", "x = 2")
    for message in (named("x = 3", "more", version=2), Subscribe("x = 3")):
        (refused,) = network.ask("a", "ann", message)
        assert "'ann' has 2 subscriptions, which is the most" in str(refused)
    assert network.ask("a", "ann", Update("s", 3, filter="x = 9")) == []
    network.ask("a", "ann", Cancel("s"))
    assert network.ask("a", "ann", Subscribe("x = 3")) == []


# -- suspended and on the move ------------------------------------------------------------------


def test_updates_of_the_suspended_take_effect_and_keep_what_was_kept() -> None:
    network = Network(LINE)
    network.ask("d", "ann", named("x < :n", n=5))
    network.run()
    network.ask("d", "ann", Suspend())
    network.publish("a", "pub", x=4)
    network.run()
    network.ask("d", "ann", update(2, n=3))
    network.run()
    for x in (4, 2):
        network.publish("a", "pub", x=x)
    network.run()
    assert network.delivered("ann") == []
    network.ask("d", "ann", Resume())
    assert network.delivered("ann") == [{"x": 4}, {"x": 2}]
    assert network.matches("ann") == [(MatchedVersion("s", 1),), (MatchedVersion("s", 2),)]


@pytest.mark.parametrize("where", WORLDS)
def test_values_versions_and_t_move_with_the_client(where: str) -> None:
    network = world(where)
    network.ask("a", "ann", Subscribe("x < :n + t", "s", {"n": 1}, version=4, origin_us=0))
    network.ask("a", "ann", Update("s", 6, {"n": 2}))
    network.ask("a", "ann", named("y = :n", "other", version=5, n=7))
    network.run()
    network.ask("a", "ann", Suspend())
    network.ask("d", "ann", Resume("a"))
    network.run()
    assert ANN not in network.brokers["a"].sessions
    assert network.brokers["a"].named.count(ANN) == 0
    held = network.brokers["d"].named.subscriptions_of(ANN)
    assert [(each.subscription.id, each.version) for each in held] == [("s", 6), ("other", 5)]
    for x in (11, 13):
        network.ask("b", "pub-b", Publish(Event.of({"x": x, "y": 0}, from_us(10 * SECOND))))
    network.publish("c", "pub-c", x=99, y=7)
    network.run()
    assert sorted(network.matches("ann")) == [
        (MatchedVersion("other", 5),),
        (MatchedVersion("s", 6),),
    ]
    assert network.ask("d", "ann", Update("s", 7, {"n": 4}, confirm=True)) == []
    network.run()
    assert network.in_force("ann") == [("s", 7)]
    (refused,) = network.ask("d", "ann", Update("other", 5, {"n": 4}))
    assert isinstance(refused, Refused)


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("where", WORLDS)
@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_missed_or_comes_twice_while_it_moves_and_changes(
    where: str, routing: str, seed: int
) -> None:
    random = Random(seed)
    network = world(where, routing)
    brokers = list(network.brokers)
    way = random.sample(brokers, k=3)
    text, values = random.choice(MATCHING_FIVE)
    network.ask(way[0], "ann", named(text, **values))
    network.run(random)
    published, version = 0, 1
    for home, there in [*pairwise(way), (way[-1], None)]:
        for _ in range(random.randrange(15)):
            what = random.randrange(4)
            if what == 0:
                published += 1
                network.publish(random.choice(brokers), "pub", x=5, y=0, n=published)
            elif what == 1:
                version += 1
                network.ask(home, "ann", random_version(random, version))
            else:
                network.step(random)
        if there is not None:
            network.ask(home, "ann", Suspend())
            network.ask(there, "ann", Resume(home))
    network.run(random)
    numbers = [event["n"] for event in network.delivered("ann")]
    assert sorted(numbers) == list(range(1, published + 1))  # type: ignore[type-var]
    assert not any(isinstance(each, Refused) for each in network.received["ann"])
    (held,) = network.brokers[way[-1]].named.subscriptions_of(ANN)
    assert held.version == version
    network.ask(way[-1], "ann", Depart())
    for name in brokers:
        network.ask(name, f"pub-{name}", Depart())
    network.run(random)
    assert network.is_empty()


def test_what_is_asked_while_arriving_is_done_on_arrival() -> None:
    network = world("acyclic")
    network.ask("a", "ann", named("x < :n", n=5))
    network.run()
    network.ask("a", "ann", Suspend())
    network.ask("e", "ann", Resume("a"))
    assert network.ask("e", "ann", update(2, n=9, confirm=True)) == []
    assert network.ask("e", "ann", named("y = 1", "other", version=3)) == []
    assert network.ask("e", "ann", Cancel("unknown")) == []
    network.run()
    assert network.in_force("ann") == [("s", 2)]
    (refused,) = [each for each in network.received["ann"] if isinstance(each, Refused)]
    assert "'ann' has no subscription 'unknown'" in refused.reason
    network.publish("c", "pub-c", x=8, y=1)
    network.run()
    assert network.matches("ann") == [(MatchedVersion("s", 2), MatchedVersion("other", 3))]


def test_dropped_deliveries_are_reported() -> None:
    network = world("acyclic")
    network.brokers["a"].sessions = Sessions(kept_max=1)
    network.ask("a", "ann", named("x < :n", n=5))
    network.run()
    network.ask("a", "ann", Suspend())
    for x in (1, 2):
        network.publish("c", "pub-c", x=x)
    network.run()
    network.ask("e", "ann", Resume("a"))
    network.run()
    assert [type(each).__name__ for each in network.received["ann"]] == ["Missed", "Deliver"]
