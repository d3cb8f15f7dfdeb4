"""Validation of requests; that refused ones change nothing is in test_bad_input.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.errors import FilterError, FilterLimitError, RoutingError, UnresolvedError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Lazy
from tidegate.language.filters import parse
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.matching.subscription import Subscription
from tidegate.routing.messages import Publication, Stamp, Subscribe, Update
from tidegate.routing.validation import (
    check_filter,
    check_pattern,
    check_publication_times,
    check_wanted_filter,
    checked_advertisement,
    checked_named_subscription,
    checked_subscription,
    is_time_us,
    size_problem,
    updated_subscription,
)


def test_texts_are_parsed() -> None:
    assert str(checked_subscription("x < 1", DEFAULT_LIMITS)) == "x < 1"
    assert checked_subscription("x < 1", DEFAULT_LIMITS) == parse("x < 1")
    pattern = parse_pattern("x < 1 then x > 2")
    assert checked_subscription("x < 1 then x > 2", DEFAULT_LIMITS) == pattern
    advertisement = parse_advertisement("x > 0")
    assert checked_advertisement("x > 0", DEFAULT_LIMITS).equals(advertisement)
    assert checked_advertisement(advertisement, DEFAULT_LIMITS) is advertisement


def test_a_text_that_does_not_parse_shows_the_place() -> None:
    with pytest.raises(FilterError, match=r"\^"):
        checked_subscription("x <", DEFAULT_LIMITS)


@pytest.mark.parametrize("text", ["x < :limit", "x < t", "x < @load"])
def test_filters_whose_values_are_not_known(text: str) -> None:
    for check in (check_filter, checked_subscription):
        with pytest.raises(RoutingError, match=r"`x < .* has values that change"):
            check(parse(text), DEFAULT_LIMITS)


@pytest.mark.parametrize("steps", [0, 3])
def test_the_length_of_a_pattern(steps: int) -> None:
    pattern = Pattern(tuple(parse("x = 1") for _ in range(steps)))
    with pytest.raises(RoutingError, match=f"between 1 and 2 steps, not {steps}"):
        check_pattern(pattern, Limits(pattern_steps_max=2))


def test_the_steps_of_a_pattern_count_together() -> None:
    pattern = Pattern((parse("x = 1 or y = 1"), parse("x = 2 or y = 2")))
    check_pattern(pattern, Limits(disjuncts_max=4))
    with pytest.raises(RoutingError, match=r"together: .* more than 3 disjuncts"):
        check_pattern(pattern, Limits(disjuncts_max=3))


LARGE = {
    "x > 5 and y > 5": (Limits(length_chars_max=14), "has 15 characters; at most 14 are taken"),
    "x = 1 or x = 2 or x = 3": (Limits(disjuncts_max=2), "has more than 2 disjuncts"),
    "x in (1, 2, 3)": (Limits(cost_max=3), "costs 4 predicates, values and operations; at most 3"),
}


@pytest.mark.parametrize("text", LARGE)
def test_filters_and_advertisements_over_a_limit(text: str) -> None:
    limits, reason = LARGE[text]
    for item in (parse(text), parse_advertisement(text)):
        assert reason in str(size_problem(item, limits))
        assert size_problem(item, DEFAULT_LIMITS) is None
    for wanted in (parse(text), Pattern((parse("x = 1"), parse(text)))):
        with pytest.raises(RoutingError, match=reason):
            checked_subscription(wanted, limits)
    with pytest.raises(RoutingError, match=reason):
        checked_advertisement(parse_advertisement(text), limits)


def test_the_length_is_that_of_the_text_as_brokers_write_it() -> None:
    """Otherwise the neighbours would refuse what a broker has taken."""
    with pytest.raises(RoutingError, match="has 5 characters; at most 4 are taken"):
        checked_subscription("x<1", Limits(length_chars_max=4))


def test_other_types() -> None:
    with pytest.raises(RoutingError, match="a subscription needs a filter, not int"):
        check_filter(1, DEFAULT_LIMITS)
    with pytest.raises(RoutingError, match="an advertisement is needed, not Filter"):
        checked_advertisement(parse("x = 1"), DEFAULT_LIMITS)
    with pytest.raises(RoutingError, match="must have its time of publication"):
        check_publication_times([Publication(Event.of({"x": 1}), Stamp("b", 0, 1), "ann")])


# -- named subscriptions ------------------------------------------------------------------------


def test_a_named_subscription_may_have_parameters_and_evolve() -> None:
    request = Subscribe("x < :n + t and y = :m", "s", {"n": 1}, Lazy(), version=4)
    subscription, version, _ = checked_named_subscription(request, 7, DEFAULT_LIMITS)
    assert version == 4
    assert subscription == Subscription(
        "s", parse("x < :n + t and y = :m"), {"n": 1}, since=7, origin=7, evolve=Lazy()
    )
    earlier, _, _ = checked_named_subscription(replace(request, origin_us=3), 7, DEFAULT_LIMITS)
    assert (earlier.since, earlier.origin) == (3, 3)


def test_a_static_subscription_is_in_force_for_events_of_any_time() -> None:
    request = Subscribe("x < :n", "s", {"n": None})  # type: ignore[dict-item]
    subscription, _, _ = checked_named_subscription(request, 7, DEFAULT_LIMITS)
    assert (subscription.since, subscription.origin) == (None, 7)
    assert subscription.parameters == {}


def test_a_change_of_the_whole_filter_keeps_the_origin() -> None:
    subscription, _, _ = checked_named_subscription(
        Subscribe("x < :n", "s", {"n": 5}), 7, DEFAULT_LIMITS
    )
    evolving = updated_subscription(
        subscription, Update("s", 2, {"m": 6}, "x < :n + t * :m"), DEFAULT_LIMITS
    )
    assert (evolving.since, evolving.origin, evolving.parameters) == (7, 7, {"n": 5, "m": 6})
    static = updated_subscription(
        evolving, Update("s", 3, {"m": None}, "y = :m and z = 1"), DEFAULT_LIMITS
    )
    assert (static.since, static.origin, static.parameters) == (None, 7, {})
    with pytest.raises(UnresolvedError, match="has no parameter :n; it has :m"):
        updated_subscription(static, Update("s", 4, {"n": 5}), DEFAULT_LIMITS)


def test_limits_count_for_updates_too() -> None:
    subscription, _, _ = checked_named_subscription(Subscribe("x < 1", "s"), 7, DEFAULT_LIMITS)
    with pytest.raises(FilterLimitError, match="at most 5"):
        updated_subscription(
            subscription, Update("s", 2, filter="x < 100"), Limits(length_chars_max=5)
        )


@pytest.mark.parametrize("time_us", [0, -62_135_596_800_000_000, 253_402_300_799_999_999])
def test_times_in_microseconds(time_us: int) -> None:
    assert is_time_us(time_us)
    assert not is_time_us(time_us * 10**9 + 2**62)
    assert not is_time_us(str(time_us))


@pytest.mark.parametrize(
    "wanted", [parse("x < 1"), EvolvingFilter(parse("x < t + now()"), 0, Lazy())]
)
def test_filters_that_a_neighbour_may_ask_for(wanted: WantedFilter) -> None:
    check_wanted_filter(wanted, DEFAULT_LIMITS)
