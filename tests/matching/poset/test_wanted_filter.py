"""Wanted filters: what evolving ones match when, their over-estimates, and covering for good."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolving_strategies import (
    events_at,
    evolving_filters,
    filters_of_time,
    linear_filters,
    nudged,
    origins,
    related_wanted_filters,
    values_near,
    wanted_filter,
)
from support.strategies import (
    PARAMETERS,
    VARIABLES,
    conjunctions,
    expressions,
    filters,
    nodes,
    predicates,
    values,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Lazy, Periodic
from tidegate.language.expressions import Constant, ParameterRef
from tidegate.language.filters import Filter, parse
from tidegate.language.semantics import holds
from tidegate.language.syntax import all_of
from tidegate.language.values import Value, from_us
from tidegate.matching.poset.wanted_filter import (
    LATENESS_US,
    EvolvingFilter,
    WantedFilter,
    covers,
    event_us,
    over_estimate_ever,
    underlying_filter,
    wanted_form,
)
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


# -- matching ------------------------------------------------------------------------------------


def test_t_counts_from_the_origin() -> None:
    window = EvolvingFilter(parse("x between t and t + 1"), 10 * SECOND)
    assert window.matches(at(10, x=0.5))
    assert not window.matches(at(12, x=0.5))
    assert window.matches(at(12, x=2.5))
    assert window.matches(at(12.0000005, x=2))  # times are whole microseconds


def test_events_from_before_the_origin_are_evaluated_at_t_0() -> None:
    growing = EvolvingFilter(parse("x < t"), 10 * SECOND)
    assert growing.matches(at(5, x=-1))
    assert not growing.matches(at(5, x=0))


def test_now_is_the_publication_time_of_the_event() -> None:
    fresh = EvolvingFilter(parse("sent >= now() - 5"), 0)
    assert fresh.matches(at(100, sent=from_us(95 * SECOND)))
    assert not fresh.matches(at(100.1, sent=from_us(95 * SECOND)))


def test_properties_of_an_evolving_filter() -> None:
    evolving = EvolvingFilter(parse("x < t and kind = 'a'"), 7)
    assert str(evolving) == "x < t and kind = 'a' since 7 us"
    assert evolving.attributes == ("x", "kind")
    assert underlying_filter(evolving) is evolving.filter
    assert underlying_filter(evolving.filter) is evolving.filter
    assert over_estimate_ever(evolving.filter) is evolving.filter
    assert event_us(at(1.5)) == 1_500_000


def test_estimates_are_as_narrow_as_a_line_allows() -> None:
    window = EvolvingFilter(parse("x between t - 2 and t + 2"), 10 * SECOND)
    assert window.over_estimate_ever.covers(parse("x between -2 and 1e300"))
    assert not window.over_estimate_ever.matches({"x": -2.5})
    assert window.over_estimate_during(12 * SECOND, 15 * SECOND).equals(parse("x between 0 and 7"))
    assert window.over_estimate_during(0, 10 * SECOND).equals(parse("x between -2 and 2"))


@given(evolving_filters(), st.data())
def test_estimates_match_every_event_that_the_filter_matches(
    evolving: EvolvingFilter, data: st.DataObject
) -> None:
    begin_us = evolving.origin_us + data.draw(
        st.sampled_from([-SECOND, 0, 1, 500_000, 70 * SECOND])
    )
    length_us = data.draw(st.sampled_from([0, 1, 300_000, SECOND, 3600 * SECOND]))
    estimate = evolving.over_estimate_during(begin_us, begin_us + length_us)
    assert not estimate.evolves
    assert not evolving.over_estimate_ever.evolves
    for part in range(4):
        time_us = begin_us + length_us * part // 3
        event = data.draw(events_at(time_us, evolving, estimate))
        if evolving.matches(event):
            note("matched")
            assert estimate.matches(event)
            assert evolving.over_estimate_ever.matches(event)


# -- covering -----------------------------------------------------------------------------------


def wanted(text: str, second: float = 0) -> WantedFilter:
    return wanted_filter(parse(text), round(second * SECOND))


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (("x < 10", 0), ("x < 5", 0)),
        (("x < t", 0), ("x < t", 10)),
        (("x > t", 10), ("x > t", 0)),
        (("x < t", 10), ("x < 0", 0)),
        (("x >= 0", 0), ("x >= t", 3)),
        (("x < 9 + t", 30), ("x < 5 + t", 30)),
        (("x < 70", 0), ("x < 60 - t", 5)),
        (("x between -9 + t and 9 + t", 1), ("x between -3 + t and 3 + t", 1)),
        (("x < t or y < t", 0), ("y < t and z = 1", 4)),
        (("x < 5 + sin(t)", 3), ("x < 3.5", 0)),
        (("x > 10 - t", 500), ("x > 10 + t", 0)),
        (("x < t", 0), ("x < 5 - t", 10)),  # though not before the narrow one began
    ],
)
def test_one_surely_covers_the_other(wide: tuple[str, float], narrow: tuple[str, float]) -> None:
    assert covers(wanted(*wide), wanted(*narrow))


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (("x < 5", 0), ("x < 10", 0)),
        (("x < t", 10), ("x < t", 0)),
        (("x > t", 0), ("x > t", 10)),
        (("x < 5 + t", 0), ("x < 2 * t", 0)),  # which overtakes it
        (("x < 5 - t", 0), ("x < 0", 0)),
        (("x < 100", 0), ("x < t", 0)),
        (("x < t", 0), ("x < 5", 0)),
        (("x < 5 + t", 2), ("x < 5 + t", 0)),
        (("x < max(5 - t, t - 5)", 10), ("x < 2 - t / 100", 0)),  # at first, and later, it does
        # it does cover, but `covers` does not see it: rising bounds with different origins
        (("x < 9 + t", 2), ("x < 5 + t", 0)),
    ],
)
def test_one_does_not_cover_the_other(wide: tuple[str, float], narrow: tuple[str, float]) -> None:
    assert not covers(wanted(*wide), wanted(*narrow))


def test_late_events_from_before_the_origin_of_the_wide_filter_count() -> None:
    """At 10 s, its origin, the wide filter has caught up; for an event of 5 s it had not."""
    narrow = wanted("x < 9 - t", 0)
    assert not covers(wanted("x < t", 10), narrow)  # at 0 s: x < 0 against x < 9
    assert covers(wanted("x < 9 + t", 10), narrow)
    assert covers(wanted("x < t", 9 + LATENESS_US / SECOND), narrow)  # no event is so late


def test_when_a_filter_evolves_does_not_matter_for_what_it_covers() -> None:
    filter = parse("x < t")
    assert covers(EvolvingFilter(filter, 0, Lazy()), EvolvingFilter(filter, 0, Periodic(1.0)))


def narrower_ones(wide: Filter) -> st.SearchStrategy[Filter]:
    """Filters, many of which the wide one covers."""
    within = st.builds(
        lambda one, more: Filter(all_of([one.node, more.node])), nudged(wide), linear_filters
    )
    return nudged(wide) | within | filters_of_time


def times_that_count(wide: WantedFilter, narrow: WantedFilter) -> list[int]:
    """Publication times of events that can still arrive and may match the narrow filter."""
    origins_us = [each.origin_us for each in (wide, narrow) if isinstance(each, EvolvingFilter)]
    found = [max(origins_us, default=0) + after_us for after_us in AFTER_US]
    if isinstance(wide, EvolvingFilter) and isinstance(narrow, EvolvingFilter):
        earliest = max(narrow.origin_us, wide.origin_us - LATENESS_US)
        before = wide.origin_us - earliest
        found += [earliest + before * part // 4 for part in range(5) if before > 0]
    return found


AFTER_US = [0, 1, 333_333, 1_000_000, 3_141_593, 60_000_000, 86_400_000_000]


def check_covering(wide: WantedFilter, narrow: WantedFilter, data: st.DataObject) -> None:
    """If one filter covers another, it matches all events aimed at both that match the other."""
    if not covers(wide, narrow):
        return
    for time_us in data.draw(st.permutations(times_that_count(wide, narrow)))[:4]:
        event = data.draw(events_at(time_us, wide, narrow))
        note(f"matched {narrow.matches(event)}")
        assert wide.matches(event) or not narrow.matches(event)


@given(filters_of_time, origins, origins, st.data())
def test_covering_is_never_refuted(
    filter: Filter, wide_us: int, narrow_us: int, data: st.DataObject
) -> None:
    other = data.draw(narrower_ones(filter))
    check_covering(EvolvingFilter(filter, wide_us), EvolvingFilter(other, narrow_us), data)


@settings(max_examples=settings().max_examples * 4)
@given(related_wanted_filters())
def test_covering_of_lines_is_never_refuted(pair: tuple[WantedFilter, WantedFilter]) -> None:
    """Few bounds, and every event that could tell the filters apart."""
    for wide, narrow in permutations(pair):
        assert covers(wide, wide)
        if covers(wide, narrow):
            for event in all_events(times_that_count(wide, narrow), wide, narrow):
                assert wide.matches(event) or not narrow.matches(event)


def all_events(times_us: list[int], *wanted_filters: WantedFilter) -> Iterator[Event]:
    for time_us in times_us:
        near = values_near(time_us, *wanted_filters)
        a_values, b_values = ([*dict.fromkeys(near[name]), -1e9] for name in ("a", "b"))
        for a, b in product(a_values, b_values):
            yield Event({"a": a, "b": b}, from_us(time_us))


@given(filters_of_time, filters, origins, st.data())
def test_covering_of_static_filters_is_never_refuted(
    filter: Filter, static: Filter, origin_us: int, data: st.DataObject
) -> None:
    one = EvolvingFilter(filter, origin_us)
    other = data.draw(
        st.sampled_from([static, one.over_estimate_ever, filter.under_estimate(0, 1e9)])
    )
    check_covering(one, other, data)
    check_covering(other, one, data)


# -- the form sent to other brokers -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parameters", "form"),
    [
        ("x < :n and kind = :word", {"n": 5, "word": "a"}, "kind = 'a' and x < 5"),
        ("x < :n and kind = 'a'", {}, "false"),
        ("x < :n or y = 1", {}, "y = 1"),
        ("x < @v", {}, "x is not null"),
        ("x between :n and @v", {"n": 2}, "x >= 2 and x is not null"),
        ("x not between 2 and @v and y = :n", {"n": 1}, "(x < 2 or x is not null) and y = 1"),
        ("x in (1, @v)", {}, "x is not null"),
        ("s starts with @v", {}, "s is not null"),
    ],
)
def test_the_form_of_static_subscriptions(
    text: str, parameters: dict[str, Value], form: str
) -> None:
    found = wanted_form(Subscription("s", parse(text), parameters, since=3, origin=3))
    assert isinstance(found, Filter)
    assert str(found) == form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("x < :n + t and y < @v", "x < 5 + t and y is not null"),
        ("x between :n - t and :n + @v", "x >= 5 - t and x is not null"),
        ("sent > now() - :n", "sent > now() - 5"),
        ("x < :missing + t and y > t", "x is not null and y > t"),
    ],
)
def test_the_form_of_evolving_subscriptions(text: str, form: str) -> None:
    filter = parse(text)
    known = {"n": 5} if "n" in filter.parameters else {}
    subscription = Subscription("s", filter, known, since=9, origin=3, evolve=Periodic(2.0))
    assert wanted_form(subscription) == EvolvingFilter(parse(form), 3, Periodic(2.0))


def test_t_counts_from_since_where_there_is_no_origin() -> None:
    forms = [wanted_form(Subscription("s", parse("x < t"), since=since)) for since in (9, None)]
    assert forms == [EvolvingFilter(parse("x < t"), 9), EvolvingFilter(parse("x < t"), 0)]


some_values = st.dictionaries(st.sampled_from(PARAMETERS), values)
parameter_refs = st.sampled_from(PARAMETERS).map(ParameterRef)
comparing = conjunctions(predicates(parameter_refs | values.map(Constant)))


@given(comparing, some_values, some_values)
def test_the_form_after_an_update_is_that_of_a_new_subscription(
    filter: Filter, first: dict[str, Value], later: dict[str, Value]
) -> None:
    before: WantedFilter | None = None
    for given_ in (first, later, {**first, **later}):
        parameters = {name: given_[name] for name in filter.parameters if name in given_}
        form = wanted_form(Subscription("s", filter, parameters), before)
        expected = filter.at(parameters)
        assert isinstance(form, Filter)
        assert form.equals(expected)
        assert form.shape_and_row == expected.shape_and_row
        assert [*map(type, form.shape_and_row[1])] == [*map(type, expected.shape_and_row[1])]
        before = form


any_filter = nodes(predicates(expressions() | values.map(Constant))).map(Filter)


@given(any_filter, some_values, st.dictionaries(st.sampled_from(VARIABLES), values), st.data())
def test_the_form_matches_every_event_that_the_subscription_matches(
    filter: Filter, given_: dict[str, Value], variables: dict[str, Value], data: st.DataObject
) -> None:
    parameters = {name: given_[name] for name in filter.parameters if name in given_}
    subscription = Subscription("s", filter, parameters, since=SECOND, origin=SECOND)
    form = wanted_form(subscription)
    assert not underlying_filter(form).parameters
    assert not underlying_filter(form).variables
    for time_us in (SECOND, 3 * SECOND):
        moment = Moment(time_us, variables)
        now = filter.at(
            parameters, variables=variables, t=(time_us - SECOND) / 1e6, now=from_us(time_us)
        )
        event = data.draw(events_at(time_us, form, now))
        if holds(filter.node, event.attributes, subscription.environment(moment)):
            note("matched")
            assert form.matches(event)
