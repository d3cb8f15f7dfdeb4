"""What comes and goes: numbers are used again and mean nothing else, and nothing grows for ever."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.footprints import RowMatcher, check_counts, footprint, forgetful
from support.small_parts import small_columnar, small_matcher, small_tree
from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.registry import MATCHERS
from tidegate.matching.subscription import Moment, Subscription

pytestmark = pytest.mark.filterwarnings("ignore::tidegate.errors.NeverMatchesWarning")

TEMPLATES = [
    "{a} = '{s}'",
    "{a} = 1 and {b} > :n",
    "{a} contains '{s}'",
    "{a} contains :s",
    "{a} starts with :s and {b} = 1",
    "{a} like '%{s}_%' or {b} ends with :s",
    "{a} not contains '{s}' and {b} < :n",
    "{a} != '{s}' and {a} != :s",
    "{a} in ('{s}', :s, 1)",
    "{a} = :s and {b} = '{s}'",
    "{a} < :n + @{b} and {b} = 1",
    "{a} > :n - 2 * sin(t) * @{a}",
    "{a} between :n + t and 3 + 2 * t",
    "{a} is not null and {b} >= '{s}'",
]
NAMES = ["n0", "n1", "n2", "n3", "n4", "n5"]
TEXTS = ["a", "b", "ab", "ba", "abc", "cab", ""]

names = st.sampled_from(NAMES)
texts = st.sampled_from(TEXTS)
numbers = st.integers(-2, 4)
parameters = st.fixed_dictionaries({"s": texts | numbers, "n": numbers})
ids = st.integers(0, 7)
adding = st.tuples(st.just("add"), ids, st.sampled_from(TEMPLATES), names, names, texts, parameters)
events = st.dictionaries(names, texts | numbers, max_size=4)
steps = st.lists(
    adding
    | st.tuples(st.just("update"), ids, parameters)
    | st.tuples(st.just("cancel"), ids)
    | st.tuples(st.just("match"), events, st.integers(0, 3)),
    max_size=40,
)


def apply(step: tuple[Any, ...], matchers: list[Matcher]) -> None:
    """Make a change in all matchers, if it can be made."""
    id = str(step[1])
    there = id in matchers[0]
    match step:
        case ("add", _, template, a, b, text, values) if not there:
            filter = parse(template.format(a=a, b=b, s=text))
            kept = {name: values[name] for name in filter.parameters}
            for each in matchers:
                each.add([Subscription(id, filter, kept, since=0)])
        case ("update", _, values) if there:
            mine = matchers[0].get(id).filter.parameters
            for each in matchers:
                each.update(id, {name: values[name] for name in mine})
        case ("cancel", _) if there:
            for each in matchers:
                each.remove(id)


def check_same(oracle: Matcher, matcher: Matcher, events: list[dict[str, Any]], time: int) -> None:
    """Compare the matches of events, alone and in a batch."""
    moment = Moment(time * 1_000_000, {name: index - 1 for index, name in enumerate(NAMES)})
    for event in events:
        taken = Event.of(event)
        assert sorted(matcher.match(taken, moment)) == sorted(oracle.match(taken, moment)), event
    batch = EventBatch.of_events([Event.of(each) for each in events])
    found = [
        sorted(zip(each.events.tolist(), each.subscriptions.to_pylist(), strict=True))
        for each in (m.match_batch(batch) for m in (oracle, matcher))
    ]
    assert found[0] == found[1]


EVENTS: list[dict[str, Any]] = [
    *(dict.fromkeys(NAMES, text) for text in TEXTS),
    *(dict.fromkeys(NAMES, number) for number in (-1, 1, 3)),
    *({name: value} for name in NAMES for value in ("ab", 1)),
]


def run(steps: list[tuple[Any, ...]], matcher: Matcher) -> None:
    """Run steps with a matcher beside the oracle."""
    oracle = NaiveMatcher()
    for step in steps:
        if step[0] == "match":
            check_same(oracle, matcher, [step[1], {}], step[2])
        else:
            apply(step, [oracle, matcher])
            if isinstance(matcher, RowMatcher):
                check_counts(matcher)
    check_same(oracle, matcher, EVENTS, 2)


@pytest.mark.parametrize("make", [small_columnar, small_tree])
@settings(max_examples=150)
@given(steps=steps)
def test_reused_numbers_never_mean_what_they_meant(
    make: Callable[[], RowMatcher], steps: list[tuple[Any, ...]]
) -> None:
    matcher = make()
    forgetful(matcher)
    run(steps, matcher)


@pytest.mark.parametrize("name", ["rete", "poset"])
@given(steps=steps)
def test_other_matchers_agree_while_names_come_and_go(
    name: str, steps: list[tuple[Any, ...]]
) -> None:
    run(steps, small_matcher(name))


@given(before=steps, after=steps)
def test_a_snapshot_has_free_numbers(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]], tmp_path_factory: Any
) -> None:
    oracle, matcher = NaiveMatcher(), small_columnar()
    forgetful(matcher)
    for step in before:
        apply(step, [oracle, matcher])
    path: Path = tmp_path_factory.mktemp("snapshots") / "snapshot"
    matcher.save(path)
    loaded = ColumnarMatcher.load(path)
    forgetful(loaded)
    check_counts(loaded)
    for step in after:
        apply(step, [oracle, loaded])
        check_counts(loaded)
    check_same(oracle, loaded, EVENTS, 1)


# -- nothing grows with history ---------------------------------------------------------------


def cycle(matcher: Matcher, number: int) -> None:
    """Subscriptions with names, strings, patterns and programs that never were before."""
    rng = random.Random(number)
    filters = [
        f"name{number} = 'v{number}' and price{number} < :x",
        f"fixed contains :s and other{number} not like '%{number}%{number}'",
        f"fixed starts with 'p{number}' or fixed = 'q{number}'",
        f"fixed < 1 + @load{number} + {' + '.join(['sin(t)'] * (1 + number % 3))}",
        f"fixed in ({', '.join(str(rng.random()) for _ in range(1 + number % 7))}) "
        f"and f = :p{number}",
    ]
    ids = [f"{number}.{index}" for index in range(len(filters))]
    for id, text in zip(ids, filters, strict=True):
        filter = parse(text)
        values = dict.fromkeys(filter.parameters, f"first {number}")
        matcher.add([Subscription(id, filter, values, since=0)])
    event = Event.of({"fixed": f"p{number} text", f"name{number}": f"v{number}", "f": number})
    matcher.match(event, Moment(number))
    for id, text in zip(ids, filters, strict=True):
        for attempt in range(2):
            values = dict.fromkeys(parse(text).parameters, f"{attempt}. string of {number}")
            if values:
                matcher.update(id, values)
    matcher.match(event, Moment(number))
    for id in ids:
        matcher.remove(id)


@pytest.mark.parametrize("make", [ColumnarMatcher, small_columnar, MATCHERS["tree"].make])
def test_nothing_grows_with_cycles_of_new_names_strings_and_patterns(
    make: Callable[[], Matcher],
) -> None:
    matcher: Any = make()
    matcher.add([Subscription("stays", parse("fixed contains 'text' and x < 1"))])
    for number in range(60):
        cycle(matcher, number)
    before = footprint(matcher)
    for number in range(60, 400):
        cycle(matcher, number)
    after = footprint(matcher)
    check_counts(matcher)
    assert {name: count for name, count in after.items() if count > before[name] + 8} == {}
    assert after["strings"] == 1
    assert after["attributes"] < 120
    assert sorted(matcher.match(Event.of({"fixed": "text", "x": 0}), Moment())) == ["stays"]


@pytest.mark.parametrize("make", [small_columnar, small_tree])
def test_what_many_subscriptions_needed_at_once_is_given_back(
    make: Callable[[], RowMatcher],
) -> None:
    matcher = make()
    matcher.add([Subscription("stays", parse("x = 1"))])
    for number in range(500):
        matcher.add([Subscription(f"{number}", parse(f"a{number} = 's{number}' and x < 2"))])
        matcher.match(Event.of({"x": 1}), Moment())
    assert footprint(matcher)["columns"] == 501
    for number in range(500):
        matcher.remove(str(number))
    matcher.match(Event.of({"x": 1}), Moment())
    after = footprint(matcher)
    assert after["strings"] == 0
    assert after["attributes"] <= 33
    if isinstance(matcher, ColumnarMatcher):
        assert after["columns"] < 140
    assert matcher.match(Event.of({"x": 1}), Moment()) == ["stays"]


@pytest.mark.parametrize("make", [ColumnarMatcher, small_columnar, small_tree])
def test_an_attribute_that_survives_many_others_gets_another_column(
    make: Callable[[], RowMatcher],
) -> None:
    matcher = make()
    matcher.add([Subscription("first", parse("x = 1"))])
    for number in range(300):
        matcher.add([Subscription(f"{number}", parse(f"a{number} = 's{number}' and x < 2"))])
    for id, text in (("last", "y contains 'b' and x = 1"), ("other", "y = 'abc' and z < :z")):
        matcher.add([Subscription(id, parse(text), {"z": 2} if id == "other" else {})])
    event = Event.of({"x": 1, "y": "abc", "z": 3})
    assert sorted(matcher.match(event, Moment())) == ["first", "last"]
    matcher.update("other", {"z": 4})  # makes a plan, which has a channel
    for number in range(300):
        matcher.remove(str(number))
        if number % 50 == 0:
            assert sorted(matcher.match(event, Moment())) == ["first", "last", "other"]
    assert sorted(matcher.match(event, Moment())) == ["first", "last", "other"]
    matcher.update("other", {"z": 3})
    assert sorted(matcher.match(event, Moment())) == ["first", "last"]
    assert sorted(matcher.match(Event.of({"x": 1, "y": "a"}), Moment())) == ["first"]
    if make is ColumnarMatcher:
        assert footprint(matcher)["columns"] < 140


def test_refused_subscriptions_leave_nothing_behind() -> None:
    matcher = small_columnar()
    matcher.add([Subscription("s", parse("x = 1"))])
    for number in range(100):
        new = [("t", f"a{number} contains 's{number}'"), ("s", "y = 1")]
        with pytest.raises(SubscriptionError):
            matcher.add([Subscription(id, parse(text)) for id, text in new])
    after = footprint(matcher)
    assert (after["strings"], after["string numbers"], after["shapes"]) == (0, 1, 33)
    check_counts(matcher)


def test_events_with_new_strings_leave_few_of_them_behind() -> None:
    matcher = ColumnarMatcher()
    matcher.add([Subscription("s", parse("name contains 'needle'"))])
    for number in range(3_000):
        assert matcher.match(Event.of({"name": f"{number:020000}"}), Moment()) == []
    assert len(matcher._channels._satisfied) * 20_000 < 16_000_000
    assert footprint(matcher)["strings"] == 1
