"""Estimates lose no event, and find too many only as far as the evolve mode allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from support.evolving_strategies import events_at, evolving_filters, filters_of_time, linear_filters
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.values import from_us
from tidegate.matching.poset.evolving_index import EvolvingIndex
from tidegate.matching.poset.wanted_filter import EvolvingFilter, event_us

SECOND = 1_000_000


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


def window(evolve: Evolve | None, second: float = 0) -> EvolvingFilter:
    """Within 2 of a point that moves by 1 in a second."""
    return EvolvingFilter(parse("x between t - 2 and t + 2"), round(second * SECOND), evolve)


def index_of(evolving: EvolvingFilter) -> EvolvingIndex[str]:
    """An index with one filter."""
    index: EvolvingIndex[str] = EvolvingIndex()
    index.add("w", evolving)
    return index


def matched(index: EvolvingIndex[str], second: float) -> list[float]:
    """The values of `x`, in steps of a half, for which an event of a time finds a filter."""
    return [x / 2 for x in range(-20, 61) if index.matching(at(second, x=x / 2))]


def halves(low: float, high: float) -> list[float]:
    return [x / 2 for x in range(-20, 61) if low <= x / 2 <= high]


# -- the three engines --------------------------------------------------------------------------


@pytest.mark.parametrize("evolve", [None, Lazy()])
def test_lazy_filters_are_exact(evolve: Evolve | None) -> None:
    index = index_of(window(evolve))
    for second in (0, 0.5, 10, 3, -5):
        middle = max(second, 0)
        assert matched(index, second) == halves(middle - 2, middle + 2)


def test_a_periodic_estimate_holds_for_its_period_and_the_one_before() -> None:
    index = index_of(window(Periodic(4.0)))
    assert matched(index, 0) == matched(index, 3.9) == halves(-2, 6)
    assert matched(index, 4.5) == matched(index, 7.5) == halves(-2, 10)
    assert matched(index, 1) == halves(-2, 10)  # a late event
    assert matched(index, 20.5) == halves(14, 26)


def test_an_event_older_than_the_estimate_is_matched_exactly() -> None:
    index = index_of(window(Periodic(4.0)))
    index.matching(at(20.5))
    assert matched(index, 15.5) == halves(13.5, 17.5)
    assert matched(index, 0) == halves(-2, 2)


def test_a_cached_estimate_is_kept_until_it_expires() -> None:
    """The events of the paper's figure 3: after 1, 1.5 and 3 s, with a threshold of 1 s."""
    index = index_of(window(Cached(1.0)))
    assert matched(index, 1) == halves(-1, 4)
    assert matched(index, 1.5) == halves(-1, 4)
    assert matched(index, 3) == halves(1, 6)
    assert matched(index, 2.5) == halves(0.5, 4.5)  # older than the estimate: exactly


def test_each_filter_has_its_own_periods() -> None:
    index: EvolvingIndex[str] = EvolvingIndex()
    index.add("even", window(Periodic(2.0)))
    index.add("odd", window(Periodic(2.0), second=1))
    assert index.matching(at(4.5, x=8)) == ["even"]  # until 6 s, which is 8
    assert index.matching(at(4.5, x=6)) == ["even", "odd"]  # until 5 s, of which 4 are its own
    assert index.matching(at(4.5, x=-1)) == ["odd"]
    assert index.matching(at(4.5, x=-3)) == []


def test_a_filter_that_never_matches_is_never_found() -> None:
    never = EvolvingFilter(Filter(parse("x > t and x < 0 - t").node), 0, Periodic(1.0))
    index = index_of(never)
    assert index.matching(at(0, x=0)) == index.matching(at(5, x=0)) == []
    index.remove("w")
    assert len(index) == 0


def test_several_disjuncts_are_found_once() -> None:
    for evolve in (None, Periodic(1.0), Cached(1.0)):
        index = index_of(EvolvingFilter(parse("x > t or y > t"), 0, evolve))
        assert index.matching(at(1, x=9, y=9)) == ["w"]
        assert index.matching(at(1, x=-9, y=9)) == ["w"]
        assert index.matching(at(1, z=9)) == []


# -- removing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("evolve", [None, Lazy(), Periodic(1.0), Cached(1.0)])
def test_a_removed_filter_is_not_found(evolve: Evolve | None) -> None:
    index = index_of(window(evolve))
    assert "w" in index
    assert index.matching(at(1, x=1)) == ["w"]
    index.remove("w")
    assert "w" not in index
    assert index.matching(at(1, x=1)) == index.matching(at(5, x=5)) == []
    with pytest.raises(KeyError):
        index.remove("w")
    index.add("w", window(evolve, second=100))
    assert matched(index, 101) == matched(index_of(window(evolve, second=100)), 101)


def test_the_queued_period_of_a_removed_filter_is_ignored() -> None:
    """The period of the removed filter ends when its successor already has an estimate."""
    index = index_of(window(Periodic(1.0)))
    index.remove("w")
    index.add("w", window(Cached(0.5)))
    assert index.matching(at(0.5, x=0.5)) == ["w"]
    assert index.matching(at(1.2, x=1)) == ["w"]
    assert index.matching(at(1.2, x=-2)) == []


def test_a_filter_that_is_replaced_often_leaves_nothing_behind() -> None:
    index = index_of(window(Periodic(3600.0)))
    for second in range(1000):
        index.remove("w")
        index.add("w", window(Periodic(3600.0), second))
    assert len(index._queue) < 30  # private on purpose: no answer shows its length
    assert index.matching(at(999 + 3 * 3600, x=3 * 3600)) == ["w"]
    index.remove("w")
    assert index.matching(at(999 + 3 * 3600, x=3 * 3600)) == []


# -- random filters and events ------------------------------------------------------------------


class Churn(RuleBasedStateMachine):
    """Filters are added and removed between events of any time."""

    def __init__(self) -> None:
        super().__init__()
        self.index: EvolvingIndex[str] = EvolvingIndex()
        self.filters: dict[str, EvolvingFilter] = {}

    @rule(key=st.sampled_from("abcd"), evolving=evolving_filters(linear_filters | filters_of_time))
    def put(self, key: str, evolving: EvolvingFilter) -> None:
        if key in self.filters:
            self.index.remove(key)
        self.index.add(key, evolving)
        self.filters[key] = evolving

    @rule(key=st.sampled_from("abcd"))
    def remove(self, key: str) -> None:
        if self.filters.pop(key, None) is not None:
            self.index.remove(key)

    @rule(
        after_us=st.sampled_from([-SECOND, 0, 1, 300_000, 999_999, 2 * SECOND, 100 * SECOND]),
        data=st.data(),
    )
    def match(self, after_us: int, data: st.DataObject) -> None:
        origins_us = [each.origin_us for each in self.filters.values()]
        time_us = data.draw(st.sampled_from([0, *origins_us])) + after_us
        event = data.draw(events_at(time_us, *self.filters.values()))
        found = self.index.matching(event)
        assert len(set(found)) == len(found)
        for key, evolving in self.filters.items():
            if evolving.matches(event):
                assert key in found
            elif key in found:
                assert may_be_found(evolving, event)
        assert set(found) <= set(self.filters)
        assert len(self.index) == len(self.filters)


def may_be_found(evolving: EvolvingFilter, event: Event) -> bool:
    """Whether an estimate may find an event that the filter itself does not match."""
    match evolving.evolve:
        case Periodic(seconds):
            seconds *= 2
        case Cached(seconds):
            pass
        case _:
            return False
    near_us, time_us = round(seconds * SECOND), event_us(event)
    return evolving.over_estimate_during(time_us - near_us, time_us + near_us).matches(event)


Churn.TestCase.settings = settings(stateful_step_count=20)
TestChurn = Churn.TestCase


@given(evolving_filters(), st.lists(st.integers(-5, 400), min_size=1, max_size=5), st.data())
def test_nothing_is_lost_whatever_the_order_of_events(
    evolving: EvolvingFilter, tenths: list[int], data: st.DataObject
) -> None:
    index: EvolvingIndex[int] = EvolvingIndex()
    index.add(1, evolving)
    for tenth in tenths:
        event = data.draw(events_at(evolving.origin_us + tenth * 100_000, evolving))
        found = index.matching(event)
        assert found or not evolving.matches(event)
        assert not found or evolving.matches(event) or may_be_found(evolving, event)
