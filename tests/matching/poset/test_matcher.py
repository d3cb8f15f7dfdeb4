"""What the conformance tests do not see: which subscriptions share a node."""

from __future__ import annotations

import pytest

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.poset.matcher import PosetMatcher
from tidegate.matching.subscription import Moment, Subscription


def test_equal_filters_share_a_node() -> None:
    matcher = PosetMatcher()
    matcher.add(
        [
            Subscription("a", parse("price < 10")),
            Subscription("b", parse("price < :limit"), {"limit": 10.0}),
        ]
    )
    poset = matcher._poset  # private on purpose: no answer shows what is shared
    assert len(poset) == 1
    matcher.update("b", {"limit": 20})
    assert len(poset) == 2
    assert matcher.match(Event.of({"price": 15}), Moment()) == ["b"]
    matcher.remove("a")
    matcher.remove("b")
    assert len(poset) == 0


def test_evolving_filters_are_refused() -> None:
    matcher = PosetMatcher()
    with pytest.raises(SubscriptionError, match="and this one evolves: price < t"):
        matcher.add([Subscription("a", parse("x = 1")), Subscription("c", parse("price < t"))])
    assert len(matcher) == 0


def test_of_several_all_or_none_are_added() -> None:
    matcher = PosetMatcher()
    twice = [Subscription("a", parse("x = 1")), Subscription("a", parse("x = 2"))]
    with pytest.raises(SubscriptionError):
        matcher.add(twice)
    assert len(matcher) == 0
    assert matcher.match(Event.of({"x": 1}), Moment()) == []
