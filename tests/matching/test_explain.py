"""Explanations: values, outcomes, distances and reasons of predicates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.explain import ExplainedGroup, ExplainedPredicate, Explanation, explain
from tidegate.matching.subscription import Moment, Subscription


def explained(text: str, event: dict[str, object], **parameters: Value) -> Explanation:
    subscription = Subscription("s", parse(text), parameters, since=0)
    return explain(subscription, Event.of(event), Moment(2_000_000))


def only(explanation: Explanation) -> ExplainedPredicate:
    assert isinstance(explanation.tree, ExplainedPredicate)
    return explanation.tree


def test_each_predicate_has_its_values_and_outcome() -> None:
    found = explained(
        "symbol = 'IBM' and price < :limit", {"symbol": "IBM", "price": 31.0}, limit=30
    )
    assert not found.matches
    assert isinstance(found.tree, ExplainedGroup)
    assert found.tree.joined_by == "and"
    assert found.tree.parts == (
        ExplainedPredicate("symbol = 'IBM'", True, "IBM", ("IBM",), 0.0),
        ExplainedPredicate("price < :limit", False, 31.0, (30,), 1.0),
    )
    assert str(found) == (
        "subscription 's' does not match (t = 2 s)\n"
        "  no   all of\n"
        "    yes  symbol = 'IBM'                    'IBM' against 'IBM'\n"
        "    no   price < :limit                    31.0 against 30, off by 1"
    )


@pytest.mark.parametrize(
    ("text", "value", "off"),
    [
        ("x < 10", 12, 2.0),
        ("x > 10", 7.5, 2.5),
        ("x = 10", 7, 3.0),
        ("x between 2 and 4", 9, 5.0),
        ("x between 2 and 4", 1, 1.0),
        ("x in (1, 5)", 7, 2.0),
        ("x != 10", 10, None),
        ("x < 10", "a", None),
        ("x starts with 'a'", "b", None),
        ("x > 3 + t", 4, 1.0),
        ("x < 10", 1, 0.0),
    ],
)
def test_how_far_off_a_number_is(text: str, value: object, off: float | None) -> None:
    assert only(explained(text, {"x": value})).off == off


def test_how_far_off_a_timestamp_is_in_seconds() -> None:
    late = datetime(2026, 1, 2, 3, 4, 7, tzinfo=UTC)
    found = explained("x < timestamp '2026-01-02T03:04:05Z'", {"x": late})
    assert only(found).off == 2.0
    assert found.to_json()["explanation"] == {
        "predicate": "x < timestamp '2026-01-02T03:04:05Z'",
        "holds": False,
        "value": "2026-01-02T03:04:07+00:00",
        "compared_with": ["2026-01-02T03:04:05+00:00"],
        "off": 2.0,
    }


@pytest.mark.parametrize(
    ("text", "event", "reason"),
    [
        ("x < 10", {}, "the event has no such attribute"),
        ("x < :p", {"x": 1}, "value 1; the value to compare it with is undefined"),
        ("x < 10", {"x": "a"}, "'a' against 10: a string, not a number"),
        ("x is not null", {"x": 1}, "1"),
    ],
)
def test_reasons(text: str, event: dict[str, object], reason: str) -> None:
    assert only(explained(text, event)).reason == reason


def test_missing_attributes_are_listed() -> None:
    found = explained("a = 1 and (b = 2 or c.d = 3)", {"a": 1, "b": 2})
    assert found.matches
    assert found.missing == ("c.d",)
    assert "missing from the event: c.d" in str(found)


def test_true_and_false_have_no_parts() -> None:
    assert explained("true", {}).tree == ExplainedGroup("true", True, ())
    assert "no   false" in str(explained("false", {}))


def test_a_subscription_that_is_not_in_force_does_not_match() -> None:
    subscription = Subscription("s", parse("a = 1"), since=10, until=20)
    found = explain(subscription, Event.of({"a": 1}), Moment(20))
    assert (found.matches, found.in_force) == (False, False)
    assert "it was not in force at that time" in str(found)
