"""The summary as a matcher; the conformance tests say that it agrees with the oracle."""

from __future__ import annotations

import pytest

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.matching.summary.ids import IdLayout
from tidegate.matching.summary.matcher import SummaryMatcher


def matcher_of(*texts: str, budget: SummaryBudget | None = None) -> SummaryMatcher:
    matcher = SummaryMatcher(budget or SummaryBudget())
    matcher.add(Subscription(f"s{i}", parse(text)) for i, text in enumerate(texts))
    return matcher


def match(matcher: SummaryMatcher, **attributes: object) -> list[str]:
    return sorted(matcher.match(Event.of(attributes), Moment()))


def test_false_positives_are_counted_and_not_returned() -> None:
    matcher = matcher_of("x = 1", "x = 2", "x = 3", budget=SummaryBudget(rows_max=1))
    assert match(matcher, x=2) == ["s1"]
    assert (matcher.candidates, matcher.false_positives) == (3, 2)
    assert match(matcher, x=9) == []
    assert (matcher.candidates, matcher.false_positives) == (3, 2)


def test_without_a_budget_there_are_none_but_for_what_rows_cannot_say() -> None:
    matcher = matcher_of("x = 1 and s = 'a'", "x > 1", "s like 'a_'", "s != 'b'")
    assert match(matcher, x=1, s="a") == ["s0", "s3"]
    assert (matcher.candidates, matcher.false_positives) == (3, 1)  # 'a' starts like `a_`
    assert match(matcher, s="b") == []
    assert (matcher.candidates, matcher.false_positives) == (4, 2)
    assert match(matcher, x=2, s="c") == ["s1", "s3"]
    assert (matcher.candidates, matcher.false_positives) == (6, 2)


def test_several_matching_conjuncts_are_one_match() -> None:
    matcher = matcher_of("x = 1 or s != 'b'")
    assert match(matcher, x=1, s="a") == ["s0"]
    assert matcher.candidates == 1


def test_an_evolving_filter_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="subscription 's0': a summary takes static"):
        matcher_of("x < t")


def test_a_parameter_without_a_value_matches_nothing() -> None:
    matcher = SummaryMatcher()
    matcher.add([Subscription("s", parse("x < :p"))])
    assert match(matcher, x=1) == []
    matcher.update("s", {"p": 5})
    assert match(matcher, x=1) == ["s"]
    assert matcher.false_positives == 0


def test_numbers_are_used_again() -> None:
    matcher = matcher_of("x = 0", "x = 1", "x = 2")
    matcher.remove("s1")
    matcher.remove("s0")
    matcher.add([Subscription("t", parse("x = 1")), Subscription("u", parse("x = 7"))])
    matcher.add([Subscription("v", parse("x = 1"))])
    assert match(matcher, x=1) == ["t", "v"]
    assert match(matcher, x=0) == []


@pytest.mark.slow
def test_there_may_be_more_attributes_than_ids_have_bits_by_default() -> None:
    count = IdLayout().attributes_max + 1
    matcher = matcher_of(*(f"a{number} = 1" for number in range(count)))
    assert match(matcher, **{f"a{count - 1}": 1}) == [f"s{count - 1}"]
