"""What is said of every matcher holds for each; their answers are in test_conformance.py."""

from __future__ import annotations

import pytest

from tidegate import SubscriptionError
from tidegate.language.filters import parse
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Subscription


@pytest.fixture(params=[NaiveMatcher, ColumnarMatcher])
def matcher(request: pytest.FixtureRequest) -> Matcher:
    made: Matcher = request.param()
    made.add([Subscription("s", parse("x < :p"), {"p": 1})])
    return made


def test_what_is_not_there_is_a_key_error(matcher: Matcher) -> None:
    with pytest.raises(KeyError):
        matcher.remove("u")
    with pytest.raises(KeyError):
        matcher.update("u", {"p": 1})
    with pytest.raises(KeyError):
        matcher.get("u")
    assert ("u" in matcher, "s" in matcher, len(matcher)) == (False, True, 1)


def test_what_is_there_already_is_refused(matcher: Matcher) -> None:
    with pytest.raises(SubscriptionError, match="there already is a subscription 's'"):
        matcher.add([Subscription("u", parse("true")), Subscription("s", parse("true"))])
    assert ("u" in matcher, len(matcher)) == (False, 1)


def test_a_subscription_is_as_it_was_left(matcher: Matcher) -> None:
    matcher.update("s", {"p": 2.5})
    assert matcher.get("s").parameters == {"p": 2.5}
    matcher.update("s", {"p": None})
    assert matcher.get("s").parameters == {}
    matcher.remove("s")
    assert ("s" in matcher, len(matcher)) == (False, 0)
