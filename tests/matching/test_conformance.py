"""The rules that every matcher in the registry keeps, and their agreement with the oracle."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.small_parts import small_matcher, small_rete, small_summary, small_tree
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
from tidegate.matching.batches import EventBatch
from tidegate.matching.matcher import Matcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.registry import MATCHERS
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.summary.budget import PAPER, SummaryBudget
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import PLAIN

VARIANTS: dict[str, Callable[[], Matcher]] = {
    "rete without wrappers": small_rete,
    "summary as in the paper": lambda: small_summary(PAPER),
    "summary of few bytes": lambda: small_summary(SummaryBudget(bytes_max=400)),
    "summary of one row": lambda: small_summary(SummaryBudget(rows_max=1)),
    "tree as in the paper": lambda: TreeMatcher(PLAIN),
    "tree with factoring": lambda: small_tree(factored=2),
}
MAKERS: dict[str, Callable[[], Matcher]] = {
    **{name: entry.make for name, entry in MATCHERS.items()},
    **VARIANTS,
}
every_fast_one = pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"naive"}))


@pytest.fixture(params=sorted(MAKERS))
def matcher(request: pytest.FixtureRequest) -> Matcher:
    return MAKERS[request.param]()


def both(name: str, data: dict[str, Subscription]) -> tuple[NaiveMatcher, Matcher]:
    """The oracle and a matcher with small sizes, both with the same subscriptions."""
    naive = NaiveMatcher()
    fast: Matcher = VARIANTS[name]() if name in VARIANTS else small_matcher(name)
    naive.add(data.values())
    fast.add(data.values())
    return naive, fast


def pairs(matcher: Matcher, batch: EventBatch) -> list[tuple[int, str]]:
    found = matcher.match_batch(batch)
    listed = list(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True))
    assert [event for event, _ in listed] == sorted(event for event, _ in listed)
    return sorted(listed)


def test_matches_and_changes(matcher: Matcher) -> None:
    matcher.add([Subscription("s", parse("symbol = 'IBM' and price < :limit"), {"limit": 10})])
    event = Event.of({"symbol": "IBM", "price": 9.5})
    assert matcher.match(event, Moment()) == ["s"]
    matcher.update("s", {"limit": 9})
    assert matcher.match(event, Moment()) == []
    matcher.update("s", {"limit": 10.5})
    assert matcher.match(event, Moment()) == ["s"]
    assert "s" in matcher
    assert len(matcher) == 1
    matcher.remove("s")
    assert matcher.match(event, Moment()) == []
    assert "s" not in matcher
    assert len(matcher) == 0


def test_an_id_can_be_used_again(matcher: Matcher) -> None:
    event = Event.of({"a": 1})
    for _ in range(3):
        matcher.add([Subscription("s", parse("a = 1"))])
        assert matcher.match(event, Moment()) == ["s"]
        matcher.remove("s")
        matcher.add([Subscription("s", parse("a = 2"))])
        assert matcher.match(event, Moment()) == []
        matcher.remove("s")


@pytest.mark.parametrize("call", ["remove", "get", "update"])
def test_an_unknown_id_is_a_key_error(matcher: Matcher, call: str) -> None:
    matcher.add([Subscription("s", parse("x < :p"), {"p": 1})])
    arguments: list[object] = [{"p": 1}] if call == "update" else []
    with pytest.raises(KeyError, match="nobody"):
        getattr(matcher, call)("nobody", *arguments)
    assert ("nobody" in matcher, "s" in matcher, len(matcher)) == (False, True, 1)


@pytest.mark.parametrize("twice", ["s", "v"])
def test_all_are_added_or_none(matcher: Matcher, twice: str) -> None:
    """An id may exist already, or be twice among the new ones."""
    matcher.add([Subscription("s", parse("x = 1"))])
    new = [Subscription(id, parse("x = 1")) for id in ("u", twice, "w", twice)]
    with pytest.raises(SubscriptionError, match=f"there already is a subscription '{twice}'"):
        matcher.add(new)
    assert [id in matcher for id in ("s", "u", "v", "w")] == [True, False, False, False]
    assert len(matcher) == 1
    assert matcher.match(Event.of({"x": 1}), Moment()) == ["s"]


def test_an_update_of_an_unknown_parameter_changes_nothing(matcher: Matcher) -> None:
    matcher.add([Subscription("s", parse("x < :p and y < :q + t"), {"p": 1, "q": 1}, since=0)])
    with pytest.raises(UnresolvedError, match="no parameter :r; it has :p, :q"):
        matcher.update("s", {"p": 5, "q": 5, "r": 5})
    assert matcher.get("s").parameters == {"p": 1, "q": 1}
    assert matcher.match(Event.of({"x": 3, "y": 3}), Moment(0)) == []


def test_get_returns_the_subscription_that_was_added(matcher: Matcher) -> None:
    added = Subscription("s", parse("x < :p + t"), {"p": 1}, 3, "me", 9, 2)
    matcher.add([added])
    assert matcher.get("s") == added
    matcher.update("s", {"p": 2.5})
    assert matcher.get("s") == added.updated({"p": 2.5})
    matcher.update("s", {"p": None})
    assert matcher.get("s") == added.updated({"p": None})


def test_several_parameters_change_as_one(matcher: Matcher) -> None:
    filter = parse("x >= :low and x <= :high")
    matcher.add([Subscription("s", filter, {"low": 0, "high": 1})])
    matcher.update("s", {"low": 10, "high": 11})
    assert matcher.match(Event.of({"x": 10.5}), Moment()) == ["s"]
    assert matcher.match(Event.of({"x": 0.5}), Moment()) == []
    assert matcher.get("s").parameters == {"low": 10, "high": 11}


def test_a_subscription_lives_from_since_until_before_until(matcher: Matcher) -> None:
    matcher.add([Subscription("s", parse("a = 1"), since=100, until=200)])
    event = Event.of({"a": 1})
    found = {
        time_us: matcher.match(event, Moment(time_us)) for time_us in (99, 100, 199, 200, None)
    }
    assert found == {99: [], 100: ["s"], 199: ["s"], 200: [], None: ["s"]}


def test_a_parameter_may_change_its_kind(matcher: Matcher) -> None:
    matcher.add([Subscription("s", parse("x < :a and x > :b"), {"a": "m", "b": 1})])
    event = Event.of({"x": 2})
    assert matcher.match(event, Moment()) == []
    matcher.update("s", {"a": 3})
    assert matcher.match(event, Moment()) == ["s"]
    matcher.update("s", {"a": None})
    assert matcher.match(event, Moment()) == []
    matcher.update("s", {"a": 2.5})
    assert matcher.match(event, Moment()) == ["s"]


open_nodes = nodes(st.one_of(predicates(), predicates(expressions())))
settings_of = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values))
moments = st.none() | st.integers(0, 10**7)


@every_fast_one
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_single_events_agree_with_naive(name: str, data: st.DataObject) -> None:
    """Any filters, events at their bounds, updates and removals on the way."""
    filters = data.draw(st.lists(open_nodes.map(Filter), min_size=1, max_size=10))
    known: dict[str, Subscription] = {}
    for number, filter in enumerate(filters):
        kept = {n: v for n, v in data.draw(settings_of).items() if n in filter.parameters}
        since = data.draw(moments)
        known[f"s{number}"] = Subscription(f"s{number}", filter, kept, since)
    naive, fast = both(name, known)
    aimed = events_aimed_at(*(each.node for each in filters))
    for _ in range(data.draw(st.integers(1, 4))):
        event = Event(data.draw(aimed))
        moment = Moment(data.draw(moments), data.draw(variables))
        assert sorted(fast.match(event, moment)) == sorted(naive.match(event, moment))
        change(data, known, naive, fast)


def change(
    data: st.DataObject, known: dict[str, Subscription], naive: Matcher, fast: Matcher
) -> None:
    """One change to both: an update, a removal, or the addition of a removed subscription."""
    id = data.draw(st.sampled_from(sorted(known)))
    names = known[id].filter.parameters
    if id not in naive:
        naive.add([known[id]])
        fast.add([known[id]])
    elif names and data.draw(st.sampled_from(["update", "remove"])) == "update":
        new: dict[str, Value | None] = data.draw(
            st.fixed_dictionaries({}, optional=dict.fromkeys(names, values | st.none()))
        )
        naive.update(id, new)
        fast.update(id, new)
        assert fast.get(id).parameters == naive.get(id).parameters
    else:
        naive.remove(id)
        fast.remove(id)


@every_fast_one
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_batches_agree_with_naive(name: str, data: st.DataObject) -> None:
    """Attributes that change their kind from event to event, absent ones, times."""
    filters = data.draw(st.lists(open_nodes.map(Filter), min_size=1, max_size=8))
    known = {
        f"s{number}": Subscription(f"s{number}", filter, {}, data.draw(moments))
        for number, filter in enumerate(filters)
    }
    aimed = events_aimed_at(*(each.node for each in filters))
    events = [Event(each) for each in data.draw(st.lists(aimed, max_size=12))]
    batch = EventBatch.of_events(events).with_variables(data.draw(variables))
    if data.draw(st.sampled_from(["timed", "timeless"])) == "timed":
        times = st.lists(st.integers(0, 10**7), min_size=len(events), max_size=len(events))
        batch = batch.judged_at(np.array(data.draw(times), np.int64))
    naive, fast = both(name, known)
    assert pairs(fast, batch) == pairs(naive, batch)
    change(data, known, naive, fast)
    assert pairs(fast, batch) == pairs(naive, batch)


TEMPLATES = [
    "a = {i} and x >= {f} and x <= {g}",
    "a = {i} and b = {j}",
    "a = {i} and b = {j} and y > :p",
    "x >= {f} and x <= {g} and y < {h}",
    "y > :p and x < {f} + t",
    "s = 's{i}' and x > {f}",
    "s in ('s{i}', 's{j}') or b = {i}",
    "b != {i} and a = {j} and y between {f} and {g}",
    "s starts with 's{i}' and y > {h}",
    "x > {f} * sin(t) and a = {i}",
]


def mixed_filter(rng: random.Random) -> str:
    low = rng.random()
    return rng.choice(TEMPLATES).format(
        i=rng.randrange(8),
        j=rng.randrange(4),
        f=round(low, 2),
        g=round(low + 0.3, 2),
        h=round(rng.random(), 2),
    )


def mixed_event(rng: random.Random) -> Event:
    event = {
        "a": rng.randrange(9),
        "b": rng.randrange(5),
        "x": round(rng.random() * 1.2, 2),
        "y": round(rng.random(), 2),
        "s": f"s{rng.randrange(10)}",
    }
    return Event.of({name: value for name, value in event.items() if rng.random() < 0.9})


@pytest.mark.slow
@every_fast_one
@pytest.mark.parametrize("seed", range(3))
def test_thousands_with_churn_agree_with_naive(name: str, seed: int) -> None:
    """Enough subscriptions for groups, clusters, bitmaps and merged parts, changed all the time."""
    rng = random.Random(seed)
    naive, fast = NaiveMatcher(), MAKERS[name]()
    alive: list[str] = []

    def add(count: int, start: int) -> None:
        new = []
        for number in range(start, start + count):
            filter = parse(mixed_filter(rng))
            parameters: dict[str, Value] = {name: rng.random() for name in filter.parameters}
            new.append(Subscription(f"s{number}", filter, parameters, rng.randrange(10**6)))
            alive.append(f"s{number}")
        naive.add(new)
        fast.add(new)

    add(1200, 0)
    for step in range(6):
        batch = EventBatch.of_events([mixed_event(rng) for _ in range(25)])
        times = [rng.randrange(2 * 10**6) for _ in range(25)]
        batch = batch.judged_at(np.array(times))
        assert pairs(fast, batch) == pairs(naive, batch)
        for id in rng.sample(alive, 120):
            alive.remove(id)
            naive.remove(id)
            fast.remove(id)
        for id in rng.sample(alive, 150):
            if naive.get(id).filter.parameters:
                value = rng.random()
                naive.update(id, {"p": value})
                fast.update(id, {"p": value})
        add(rng.choice([3, 400]), 10_000 * (step + 1))
