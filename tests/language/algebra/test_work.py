"""The budget of work, and that answers given without work are sound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.evolving_strategies import filters_of_time
from support.strategies import (
    conjunctions,
    events_aimed_at,
    filters,
    nodes,
    typed_predicates,
)
from tidegate import Filter, parse, parse_advertisement, parse_pattern
from tidegate.language.algebra import work
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.algebra.work import Budget, OutOfWorkError, spend
from tidegate.language.syntax import Node


def test_steps_are_taken_until_none_is_left() -> None:
    with Budget(5) as budget:
        spend(3)
        spend()
        assert (budget.left, budget.steps) == (1, 4)
        with pytest.raises(OutOfWorkError):
            spend(2)
        with pytest.raises(OutOfWorkError):
            spend()
        assert (budget.left, budget.steps) == (0, 5)


def test_outside_of_a_budget_nothing_is_counted() -> None:
    spend(1 << 40)
    with Budget(1):
        pass
    spend(1 << 40)


def test_a_budget_inside_of_another_takes_its_steps_from_it() -> None:
    with Budget(10) as outer:
        with Budget(7) as inner:
            spend(6)
        assert (inner.left, outer.left, outer.steps) == (1, 4, 6)
        with Budget(7) as inner, pytest.raises(OutOfWorkError):
            spend(5)
        assert inner.steps == 4
        assert (outer.left, outer.steps) == (0, 10)


def test_a_budget_apart_is_counted_and_takes_nothing() -> None:
    with Budget(10) as outer:
        spend(8)
        with Budget(7, apart=True):
            spend(6)
        assert (outer.left, outer.steps) == (2, 14)


def test_the_budget_before_is_in_force_again_after_an_error() -> None:
    with Budget(10) as outer:
        with pytest.raises(OutOfWorkError), Budget(2):
            spend(5)
        spend(3)
        assert outer.left == 5


def test_the_default_is_read_when_a_budget_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Budget().left == work.STEPS_MAX
    monkeypatch.setattr(work, "STEPS_MAX", 3)
    assert Budget().left == 3


def test_each_thread_has_its_own() -> None:
    left: list[int] = []

    def elsewhere() -> None:
        spend(1 << 40)
        with Budget(9) as budget:
            spend(2)
            left.append(budget.left)

    with Budget(4) as own:
        thread = Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert (left, own.left) == ([7], 4)


# -- careful answers ------------------------------------------------------------------------------

string_filters = nodes(typed_predicates()).map(Filter) | conjunctions()
budgets = st.integers(0, 40)


@contextmanager
def little_work(steps: int) -> Iterator[None]:
    """Budgets of so many steps, those that are apart too."""
    with pytest.MonkeyPatch.context() as patch, Budget(steps):
        patch.setattr(work, "STEPS_MAX", steps)
        yield


@given(filters | string_filters, filters | string_filters, budgets, st.data())
def test_relations_are_sound_with_little_work(
    a: Filter, b: Filter, steps: int, data: st.DataObject
) -> None:
    a, b = Filter(a.at().node), Filter(b.at().node)
    with little_work(steps):
        covers, overlaps, merged = a.covers(b), a.overlaps(b), a.merge(b)
        both = a.intersect(b)
        normal, never = Filter(a.normal_form.to_node()), a.never_matches
    event = data.draw(events_aimed_at(a.node, b.node))
    of_a, of_b = a.matches(event), b.matches(event)
    assert of_a or not (covers and of_b)
    assert overlaps or not (of_a and of_b)
    assert merged.filter.matches(event) or not (of_a or of_b)
    assert of_a or of_b or not (merged.exact and merged.filter.matches(event))
    assert both.matches(event) == (of_a and of_b)
    assert normal.matches(event) == of_a
    assert not (never and of_a)


@given(filters_of_time, filters_of_time, budgets, st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.data())
def test_estimates_are_sound_with_little_work(
    a: Filter, b: Filter, steps: int, t: float, data: st.DataObject
) -> None:
    a, b = (each.bind(**dict.fromkeys(each.parameters, 1)) for each in (a, b))
    with little_work(steps):
        over, under = a.over_estimate(0, 4), a.under_estimate(0, 4)
        covers = a.covers_during(b, 0, 4)
    event = data.draw(events_aimed_at(a.at(t=t).node, b.at(t=t).node))
    matches = a.matches(event, t=t)
    assert over.matches(event) or not matches
    assert matches or not under.matches(event)
    assert matches or not (covers and b.matches(event, t=t))


@given(nodes(), nodes(), filters, budgets, st.data())
def test_advertisements_are_sound_with_little_work(
    wide: Node, narrow: Node, filter: Filter, steps: int, data: st.DataObject
) -> None:
    static = Filter(filter.at().node)
    with little_work(steps):
        a, b = Advertisement.of(wide), Advertisement.of(narrow)
        covers, overlaps = a.covers(b), a.overlaps(static)
    event = data.draw(events_aimed_at(wide, narrow, static.node))
    assert a.allows(event) or not (covers and b.allows(event))
    assert overlaps or not (a.allows(event) and static.matches(event))
    assert a.allows(event) == Advertisement.of(wide).allows(event)


def test_without_work_nothing_is_claimed() -> None:
    wide, narrow = parse("x < 5"), parse("x < 3")
    assert wide.covers(narrow)
    assert not parse("x < 1").overlaps(parse("x > 2"))
    with Budget(0):
        assert not wide.covers(narrow)
        assert not wide.equals(wide)
        assert not wide.covers_during(narrow, 0, 1)
        assert parse("x < 1").overlaps(parse("x > 2"))
        assert str(wide.intersect(narrow)) == "x < 5 and x < 3"
        assert str(parse("x < t").over_estimate(1, 2)) == "x < 2.0"
        advertised = parse_advertisement("x < 5")
        assert not advertised.covers(advertised)
        assert advertised.overlaps(parse("x > 9"))
        assert not parse_pattern("x < 5 then x < 4").covers(parse_pattern("x < 5 then x < 4"))
