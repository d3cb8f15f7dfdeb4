"""The oracle itself, on answers worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from tidegate import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.batches import EventBatch
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription

SECOND_US = 1_000_000
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NO_TIME = Moment(None, {})


def holding(*subscriptions: Subscription) -> NaiveMatcher:
    matcher = NaiveMatcher()
    matcher.add(subscriptions)
    return matcher


def test_each_subscription_is_asked() -> None:
    matcher = holding(
        Subscription("low", parse("x < 2")),
        Subscription("two", parse("x = 2")),
        Subscription("any", parse("x is not null")),
    )
    found = [matcher.match(Event.of({"x": x}), NO_TIME) for x in (1, 2, 2.0, "2", None)]
    assert found == [["low", "any"], ["two", "any"], ["two", "any"], ["any"], []]


def test_parameters_and_variables() -> None:
    matcher = holding(Subscription("s", parse("x < :p + @load"), {"p": 1}))
    event = Event.of({"x": 2})
    assert matcher.match(event, NO_TIME) == []
    assert matcher.match(event, Moment(None, {"load": 2})) == ["s"]
    matcher.update("s", {"p": -1})
    assert matcher.match(event, Moment(None, {"load": 2})) == []
    matcher.update("s", {"p": None})
    assert matcher.match(event, Moment(None, {"load": 99})) == []
    assert matcher.get("s").parameters == {}


def test_a_subscription_holds_from_since_on_and_before_until() -> None:
    since, until = 10 * SECOND_US, 20 * SECOND_US
    lasting = Subscription("s", parse("x >= t"), since=since, until=until)
    matcher = holding(lasting)
    event = Event.of({"x": 5})
    moments = [since - 1, since, since + 5 * SECOND_US, since + 5 * SECOND_US + 1, until - 1, until]
    found = [bool(matcher.match(event, Moment(each, {}))) for each in moments]
    assert found == [False, True, True, False, False, False]


def test_t_counts_from_the_origin() -> None:
    later = Subscription("s", parse("x = t"), since=10 * SECOND_US, origin=4 * SECOND_US)
    assert holding(later).match(Event.of({"x": 8}), Moment(12 * SECOND_US, {})) == ["s"]


def test_a_batch_is_its_events_one_by_one() -> None:
    matcher = holding(Subscription("a", parse("x < 2")), Subscription("b", parse("x > 0")))
    batch = EventBatch.of_events([Event.of({"x": x}) for x in (0, 1, None, 2)])
    found = matcher.match_batch(batch)
    assert found.events.tolist() == [0, 1, 1, 3]
    assert found.subscriptions.to_pylist() == ["a", "a", "b", "b"]
    judged = batch.judged_at(np.full(4, SECOND_US, np.int64))
    assert matcher.match_batch(judged).events.tolist() == [0, 1, 1, 3]


def test_all_are_added_or_none() -> None:
    matcher = holding(Subscription("a", parse("true")))
    for twice in ("a", "c"):
        new = [Subscription("b", parse("true")), *[Subscription(twice, parse("true"))] * 2]
        with pytest.raises(SubscriptionError, match=f"there already is a subscription '{twice}'"):
            matcher.add(new)
    assert ("a" in matcher, "b" in matcher, len(matcher)) == (True, False, 1)
    matcher.remove("a")
    assert ("a" in matcher, len(matcher)) == (False, 0)
    assert matcher.match(Event.of({}), NO_TIME) == []
