"""What the conformance tests do not see: which nodes are shared, what an update leaves alone."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.small_parts import small_rete
from support.sound_network import check_empty_matcher, check_sound, joins_of, network_of, sizes
from support.strategies import (
    PARAMETERS,
    VARIABLES,
    events_aimed_at,
    expressions,
    nodes,
    predicates,
    values,
)
from tidegate.errors import SubscriptionError, UnresolvedError
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.engine import Engine
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rete.beta import BetaNetwork, Join
from tidegate.matching.rete.conditions import Points
from tidegate.matching.rete.matcher import ReteMatcher
from tidegate.matching.subscription import Moment, Subscription


def made(*filters: str, **parameters: Value) -> ReteMatcher:
    """A matcher with subscriptions `s0`, `s1` and so on."""
    matcher = ReteMatcher()
    new = []
    for number, text in enumerate(filters):
        filter = parse(text)
        kept = {name: value for name, value in parameters.items() if name in filter.parameters}
        new.append(Subscription(f"s{number}", filter, kept))
    matcher.add(new)
    check_sound(network_of(matcher))
    return matcher


def end_of(network: BetaNetwork, id: str) -> Join:
    """The join at the end of the only chain of a subscription."""
    (end,) = [join for join in joins_of(network) if id in {chain.id for chain in join.endings}]
    return end


def matches(matcher: ReteMatcher, **event: object) -> list[str]:
    return sorted(matcher.match(Event.of(event), Moment()))


@pytest.mark.parametrize(
    ("filters", "alphas", "joins"),
    [
        (["x = 1", "x = 1.0", "x in (1)"], 1, 1),
        (["x between 1 and 2", "x >= 1 and x <= 2", "x <= 2 and x >= 1"], 1, 1),
        (["s = 'a' and x < 5", "x < 5 and s = 'a'"], 2, 2),
        (["s = 'a' and x < 5", "s = 'b' and x < 5"], 3, 4),
        (["s = 'a' and x < 5", "s = 'a' and x < 6", "s = 'a'"], 3, 3),
        (["x < :p", "x < 5"], 1, 1),
        (["x < @load", "x < @load"], 1, 1),
        (["a = 1 or b = 2", "b = 2 or a = 1"], 2, 2),
        (["a = 1 or a = 1"], 1, 1),
        (["true", "false"], 0, 0),
    ],
)
def test_equal_conditions_and_joins_are_shared(filters: list[str], alphas: int, joins: int) -> None:
    matcher = made(*filters, p=5)
    assert sizes(network_of(matcher)) == (alphas, joins)


def test_nothing_is_left_when_all_subscriptions_are_removed() -> None:
    texts = [
        "s = 'a' and x < :p and y > 2",
        "s = 'a' and x < 5 or s like 'b%'",
        "s != 'a' and x < t",
        "s in ('a', 'b') and x is not null",
    ]
    matcher = made(*texts, *(f"s = 'a' and x < {number}" for number in range(50)), p=5)
    matcher.update("s0", {"p": None})
    for number in range(len(matcher)):
        matcher.remove(f"s{number}")
        check_sound(network_of(matcher))
    check_empty_matcher(matcher)


def test_an_update_changes_a_node_of_its_own_in_place() -> None:
    matcher = made("s = 'a' and x < :p and y > 2", "s = 'a' and x < 3", p=5)
    joins = joins_of(network_of(matcher))
    alphas = [join.alpha for join in joins]
    for value in (6, 2.5, "text", None, 4):
        matcher.update("s0", {"p": value})
        check_sound(network_of(matcher))
        assert joins_of(network_of(matcher)) == joins
        assert [join.alpha for join in joins] == alphas
    assert matches(matcher, s="a", x=3.5, y=3) == ["s0"]


def test_an_update_splits_off_what_is_shared() -> None:
    matcher = made("s = 'a' and x < :p", "s = 'a' and x < :p", p=5)
    assert sizes(network_of(matcher)) == (2, 2)
    matcher.update("s0", {"p": 6})
    assert sizes(network_of(matcher)) == (3, 3)
    assert matches(matcher, s="a", x=5.5) == ["s0"]
    matcher.update("s1", {"p": 6})
    assert sizes(network_of(matcher)) == (2, 2)
    assert matches(matcher, s="a", x=5.5) == ["s0", "s1"]


def test_a_value_to_look_up_changes_in_place_too() -> None:
    matcher = made("s = :p and x < 5", "s = 'b' and x < 6", p="a")
    network = network_of(matcher)
    end = end_of(network, "s0")
    matcher.update("s0", {"p": "b"})
    check_sound(network)
    assert end_of(network, "s0") is end
    assert end.before.alpha.condition == Points("s", frozenset({"b"}))
    assert end.before.chains == 2
    assert matches(matcher, s="b", x=1) == ["s0", "s1"]


def test_the_stock_monitor() -> None:
    """EventJava's example ("Parametric Subscriptions", 3.2): buy whenever IBM is cheaper yet."""
    engine = Engine(matcher="rete")
    monitor = engine.subscribe("firm = 'IBM' and price < :last_buy", last_buy=100.0)
    engine.subscribe("firm = 'IBM' and price < 50", id="low")
    bought = []
    for firm, price in [("IBM", 101), ("IBM", 99), ("HP", 10), ("IBM", 99), ("IBM", 98.5)]:
        if monitor.id in engine.match({"firm": firm, "price": price}):
            bought.append(price)
            monitor.update(last_buy=price)
    assert bought == [99, 98.5]
    assert set(engine.match({"firm": "IBM", "price": 49})) == {monitor.id, "low"}


def test_of_several_all_or_none_are_added() -> None:
    matcher = made("x = 1")
    for ids in (["a", "a"], ["b", "s0"]):
        with pytest.raises(SubscriptionError, match="there already is"):
            matcher.add([Subscription(id, parse("x = 1 and y = 2")) for id in ids])
        assert sizes(network_of(matcher)) == (1, 1)
    assert len(matcher) == 1
    assert matches(matcher, x=1, y=2) == ["s0"]


def test_a_parameter_that_is_not_there_changes_nothing() -> None:
    matcher = made("x < :p", p=5)
    with pytest.raises(UnresolvedError, match="no parameter :q"):
        matcher.update("s0", {"p": 1, "q": 2})
    assert matches(matcher, x=3) == ["s0"]


def test_a_subscription_with_several_matching_disjuncts_is_found_once() -> None:
    matcher = made("x < 5 or y < 5 or x < 6")
    assert matches(matcher, x=1, y=1) == ["s0"]


IDS = [f"s{number}" for number in range(6)]
open_filters = nodes(st.one_of(predicates(), predicates(expressions()))).map(Filter)
settings_of = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
moments = st.builds(
    Moment,
    st.none() | st.integers(0, 10**7),
    st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values)),
)


@given(st.data())
def test_the_network_stays_sound_and_agrees_with_naive(data: st.DataObject) -> None:
    """Few filters for many subscriptions, so that much is shared and split."""
    filters = data.draw(st.lists(open_filters, min_size=1, max_size=4))
    events = events_aimed_at(*(each.node for each in filters))
    naive, rete = NaiveMatcher(), small_rete()
    for number in range(data.draw(st.integers(1, 15))):
        id = data.draw(st.sampled_from(IDS))
        if id not in naive:
            filter = data.draw(st.sampled_from(filters))
            drawn = data.draw(settings_of)
            kept = {name: value for name, value in drawn.items() if name in filter.parameters}
            new = Subscription(id, filter, kept, data.draw(st.sampled_from([None, 0, 10**6])))
            naive.add([new])
            rete.add([new])
        elif number % 4:
            names = naive.get(id).filter.parameters
            changed: dict[str, Value | None] = data.draw(
                st.fixed_dictionaries({}, optional=dict.fromkeys(names, values | st.none()))
            )
            naive.update(id, changed)
            rete.update(id, changed)
        else:
            naive.remove(id)
            rete.remove(id)
        check_sound(network_of(rete))
        event, moment = Event(data.draw(events)), data.draw(moments)
        assert sorted(rete.match(event, moment)) == sorted(naive.match(event, moment))
    for id in IDS:
        if id in rete:
            rete.remove(id)
    check_empty_matcher(rete)


@pytest.mark.parametrize("seed", range(3))
def test_many_parameters_that_change_agree_with_naive(seed: int) -> None:
    """Large fans of every sort, in which conditions change all the time."""
    rng = random.Random(seed)
    texts = [
        "k = :k and x < :x",
        "x > :x and x < :x + 3",
        "s contains :s and x > :x",
        "s starts with :s",
        "k in (:k, 3) and s != :s",
        "x > :x - t",
    ]

    def draw() -> dict[str, Value]:
        return {
            "k": rng.randrange(4),
            "x": rng.choice([rng.randrange(9), rng.random() * 9]),
            "s": "".join(rng.choices("ab", k=rng.randrange(1, 4))),
        }

    naive, rete = NaiveMatcher(), ReteMatcher()
    for number in range(200):
        filter, drawn = parse(rng.choice(texts)), draw()
        kept = {name: drawn[name] for name in filter.parameters}
        new = Subscription(f"s{number}", filter, kept, 0)
        naive.add([new])
        rete.add([new])
    for _ in range(250):
        id = f"s{rng.randrange(200)}"
        name = rng.choice(naive.get(id).filter.parameters)
        value = {name: draw()[name] if rng.random() < 0.9 else None}
        naive.update(id, value)
        rete.update(id, value)
        event, moment = Event(dict(draw())), Moment(rng.randrange(10**7))
        assert sorted(rete.match(event, moment)) == sorted(naive.match(event, moment))
    check_sound(network_of(rete))


def test_threads_see_changes_whole() -> None:
    """Both bounds of a range move together; an event between old and new bounds never matches."""
    filter = parse("x >= :low and x < :high")
    matcher = ReteMatcher()
    matcher.add(
        [Subscription(f"s{number}", filter, {"low": 0, "high": 10}) for number in range(20)]
    )
    start = threading.Barrier(4)

    def change(thread: int) -> None:
        start.wait()
        for step in range(300):
            low = 100 * (step % 2)
            matcher.update(f"s{thread}", {"low": low, "high": low + 10})

    def ask(_: int) -> set[str]:
        start.wait()
        found: set[str] = set()
        for _ in range(300):
            found.update(matcher.match(Event.of({"x": 50}), Moment()))
        return found

    with ThreadPoolExecutor(4) as pool:
        changes = [pool.submit(change, thread) for thread in range(2)]
        answers = [pool.submit(ask, thread) for thread in range(2)]
        assert [each.result() for each in changes] == [None, None]
        assert [each.result() for each in answers] == [set(), set()]
    check_sound(network_of(matcher))
    assert len(matches(matcher, x=5)) == 18
    assert matches(matcher, x=105) == ["s0", "s1"]
