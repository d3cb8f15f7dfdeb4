"""The oracle itself, on answers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.matching.batches import EventBatch
from tidegate.matching.matcher import LinkMatches
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription

SECOND_US = 1_000_000
NO_TIME = Moment(None, {})


def naive(*subscriptions: Subscription) -> NaiveMatcher:
    matcher = NaiveMatcher()
    matcher.add(subscriptions)
    return matcher


def test_each_filter_is_evaluated() -> None:
    matcher = naive(
        Subscription("low", parse("x < 2")),
        Subscription("two", parse("x = 2")),
        Subscription("any", parse("x is not null")),
    )
    found = [matcher.match(Event.of({"x": x}), NO_TIME) for x in (1, 2, 2.0, "2", None)]
    assert found == [["low", "any"], ["two", "any"], ["two", "any"], ["any"], []]


def test_parameters_and_variables() -> None:
    matcher = naive(Subscription("s", parse("x < :p + @load"), {"p": 1}))
    event = Event.of({"x": 2})
    assert matcher.match(event, NO_TIME) == []
    assert matcher.match(event, Moment(None, {"load": 2})) == ["s"]
    matcher.update("s", {"p": -1})
    assert matcher.match(event, Moment(None, {"load": 2})) == []
    matcher.update("s", {"p": None})
    assert matcher.match(event, Moment(None, {"load": 99})) == []
    assert matcher.get("s").parameters == {}


def test_a_subscription_is_in_force_from_since_on_and_before_until() -> None:
    since, until = 10 * SECOND_US, 20 * SECOND_US
    lasting = Subscription("s", parse("x >= t"), since=since, until=until)
    matcher = naive(lasting)
    event = Event.of({"x": 5})
    moments = [since - 1, since, since + 5 * SECOND_US, since + 5 * SECOND_US + 1, until - 1, until]
    found = [bool(matcher.match(event, Moment(each, {}))) for each in moments]
    assert found == [False, True, True, False, False, False]


def test_t_counts_from_the_origin() -> None:
    later = Subscription("s", parse("x = t"), since=10 * SECOND_US, origin=4 * SECOND_US)
    assert naive(later).match(Event.of({"x": 8}), Moment(12 * SECOND_US, {})) == ["s"]


def test_a_pinned_filter_is_evaluated_as_of_its_pin() -> None:
    cached = Subscription("s", parse("x < t"), since=0, evolve=Cached(9.0))
    matcher = naive(cached)
    event, moment = Event.of({"x": 1.5}), Moment(2 * SECOND_US)
    assert matcher.match(event, moment) == ["s"]
    matcher.pin(["s"], SECOND_US)
    assert matcher.match(event, moment) == []
    matcher.pin(["s"], None)
    assert matcher.match(event, moment) == ["s"]
    with pytest.raises(KeyError, match="u"):
        matcher.pin(["u"], 0)


def test_a_batch_is_its_events_one_by_one() -> None:
    matcher = naive(Subscription("a", parse("x < 2")), Subscription("b", parse("x > 0")))
    batch = EventBatch.of_events([Event.of({"x": x}) for x in (0, 1, None, 2)])
    found = matcher.match_batch(batch)
    assert found.events.tolist() == [0, 1, 1, 3]
    assert found.subscriptions.to_pylist() == ["a", "a", "b", "b"]
    judged = batch.judged_at(np.full(4, SECOND_US, np.int64))
    assert matcher.match_batch(judged).events.tolist() == [0, 1, 1, 3]


def test_all_are_added_or_none() -> None:
    matcher = naive(Subscription("a", parse("true")))
    for twice in ("a", "c"):
        new = [Subscription("b", parse("true")), *[Subscription(twice, parse("true"))] * 2]
        with pytest.raises(SubscriptionError, match=f"there already is a subscription '{twice}'"):
            matcher.add(new)
    assert ("a" in matcher, "b" in matcher, len(matcher)) == (True, False, 1)
    matcher.remove("a")
    assert ("a" in matcher, len(matcher)) == (False, 0)
    assert matcher.match(Event.of({}), NO_TIME) == []


def test_links_of_all_matching_subscriptions_within_the_mask() -> None:
    matcher = NaiveMatcher()
    filters = {"a": "x = 1", "b": "x > 0", "c": "x = 2", "d": "x = 1"}
    matcher.add(Subscription(id, parse(text)) for id, text in filters.items())
    for id, links in {"a": 0b010, "b": 0b101, "c": 0b1000}.items():
        matcher.set_links(id, links)
    event = Event.of({"x": 1})
    assert matcher.match_links(event, NO_TIME, 0b111) == LinkMatches(0b111, ["b"], 2)
    assert matcher.match_links(event, NO_TIME, 0b010) == LinkMatches(0b010, [], 1)
    with pytest.raises(KeyError):
        matcher.set_links("e", 1)
