"""What brokers take; that refusals change nothing is in test_bad_input.py."""

from __future__ import annotations

import pytest

from tidegate.errors import FilterError, RoutingError
from tidegate.language.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.patterns import Pattern, parse_pattern
from tidegate.routing.checks import (
    check_filter,
    check_pattern,
    check_times,
    checked_advertisement,
    checked_subscription,
)
from tidegate.routing.messages import Publication, Stamp


def test_texts_are_read() -> None:
    assert str(checked_subscription("x < 1", DEFAULT_LIMITS)) == "x < 1"
    assert checked_subscription("x < 1", DEFAULT_LIMITS) == parse("x < 1")
    pattern = parse_pattern("x < 1 then x > 2")
    assert checked_subscription("x < 1 then x > 2", DEFAULT_LIMITS) == pattern
    offered = parse_advertisement("x > 0")
    assert checked_advertisement("x > 0", DEFAULT_LIMITS).equals(offered)
    assert checked_advertisement(offered, DEFAULT_LIMITS) is offered


def test_what_is_no_text_of_a_filter_shows_the_place() -> None:
    with pytest.raises(FilterError, match=r"\^"):
        checked_subscription("x <", DEFAULT_LIMITS)


@pytest.mark.parametrize("text", ["x < :limit", "x < t", "x < @load"])
def test_filters_whose_values_are_not_known(text: str) -> None:
    for check in (check_filter, lambda each: checked_subscription(each, DEFAULT_LIMITS)):
        with pytest.raises(RoutingError, match=r"`x < .* has values that change"):
            check(parse(text))


@pytest.mark.parametrize("steps", [0, 3])
def test_the_length_of_a_pattern(steps: int) -> None:
    pattern = Pattern(tuple(parse("x = 1") for _ in range(steps)))
    with pytest.raises(RoutingError, match=f"between 1 and 2 steps, not {steps}"):
        check_pattern(pattern, Limits(pattern_steps_max=2))


def test_other_things() -> None:
    with pytest.raises(RoutingError, match="a subscription has a filter, not int"):
        check_filter(1)
    with pytest.raises(RoutingError, match="an advertisement is needed, not Filter"):
        checked_advertisement(parse("x = 1"), DEFAULT_LIMITS)
    with pytest.raises(RoutingError, match="has its time of publication"):
        check_times([Publication(Event.of({"x": 1}), Stamp("b", 0, 1), "ann")])
