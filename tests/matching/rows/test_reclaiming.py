"""What is gone leaves nothing behind: counts of things in a matcher's structures after cycles."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from support.footprints import RowMatcher, check_counts, footprint
from support.small_parts import small_columnar, small_tree
from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher


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


@pytest.mark.parametrize("make", [ColumnarMatcher, small_columnar, TreeMatcher])
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


@pytest.mark.parametrize(
    ("make", "last"),
    [
        (ColumnarMatcher, "y = 'abc' and x = 1"),
        (small_columnar, "y contains 'b' and x = 1"),
        (small_tree, "y contains 'b' and x = 1"),
    ],
)
def test_an_attribute_that_survives_many_others_gets_another_column(
    make: Callable[[], RowMatcher], last: str
) -> None:
    matcher = make()
    matcher.add([Subscription("first", parse("x = 1"))])
    for number in range(300):
        matcher.add([Subscription(f"{number}", parse(f"a{number} = 's{number}' and x < 2"))])
    for id, text in (("last", last), ("other", "y = 'abc' and z < :z")):
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
