"""What estimates find: never too little, by each subscriber's choice not much too much."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from support.moving_strategies import events_at, moving_filters, moving_lines, movings
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
    """Two to each side of a point that goes on by 1 in a second."""
    return EvolvingFilter(parse("x between t - 2 and t + 2"), round(second * SECOND), evolve)


def one(moving: EvolvingFilter) -> EvolvingIndex[str]:
    found: EvolvingIndex[str] = EvolvingIndex()
    found.add("w", moving)
    return found


def seen(filters: EvolvingIndex[str], second: float) -> list[float]:
    """At which values, in steps of a half, something is found at a time."""
    return [x / 2 for x in range(-20, 61) if filters.matching(at(second, x=x / 2))]


def around(low: float, high: float) -> list[float]:
    return [x / 2 for x in range(-20, 61) if low <= x / 2 <= high]


# -- the three engines --------------------------------------------------------------------------


@pytest.mark.parametrize("evolve", [None, Lazy()])
def test_lazily_it_is_exact(evolve: Evolve | None) -> None:
    filters = one(window(evolve))
    for second in (0, 0.5, 10, 3, -5):
        middle = max(second, 0)
        assert seen(filters, second) == around(middle - 2, middle + 2)


def test_periodically_the_estimate_holds_for_this_period_and_the_one_before() -> None:
    filters = one(window(Periodic(4.0)))
    assert seen(filters, 0) == seen(filters, 3.9) == around(-2, 6)
    assert seen(filters, 4.5) == seen(filters, 7.5) == around(-2, 10)
    assert seen(filters, 1) == around(-2, 10)  # an event that was on its way
    assert seen(filters, 20.5) == around(14, 26)


def test_an_event_older_than_the_estimate_is_judged_exactly() -> None:
    filters = one(window(Periodic(4.0)))
    filters.matching(at(20.5))
    assert seen(filters, 15.5) == around(13.5, 17.5)
    assert seen(filters, 0) == around(-2, 2)


def test_an_estimate_at_an_event_is_kept_until_it_expires() -> None:
    """The events of the paper's figure 3: after 1, 1.5 and 3 s, with a threshold of 1 s."""
    filters = one(window(Cached(1.0)))
    assert seen(filters, 1) == around(-1, 4)
    assert seen(filters, 1.5) == around(-1, 4)
    assert seen(filters, 3) == around(1, 6)
    assert seen(filters, 2.5) == around(0.5, 4.5)  # from before what is kept: exactly


def test_each_has_its_own_periods() -> None:
    filters: EvolvingIndex[str] = EvolvingIndex()
    filters.add("even", window(Periodic(2.0)))
    filters.add("odd", window(Periodic(2.0), second=1))
    assert filters.matching(at(4.5, x=8)) == ["even"]  # until 6 s, which is 8
    assert filters.matching(at(4.5, x=6)) == ["even", "odd"]  # until 5 s, of which 4 are its own
    assert filters.matching(at(4.5, x=-1)) == ["odd"]
    assert filters.matching(at(4.5, x=-3)) == []


def test_what_never_matches_is_never_found() -> None:
    never = EvolvingFilter(Filter(parse("x > t and x < 0 - t").node), 0, Periodic(1.0))
    filters = one(never)
    assert filters.matching(at(0, x=0)) == filters.matching(at(5, x=0)) == []
    filters.remove("w")
    assert len(filters) == 0


def test_several_disjuncts_are_found_once() -> None:
    for evolve in (None, Periodic(1.0), Cached(1.0)):
        filters = one(EvolvingFilter(parse("x > t or y > t"), 0, evolve))
        assert filters.matching(at(1, x=9, y=9)) == ["w"]
        assert filters.matching(at(1, x=-9, y=9)) == ["w"]
        assert filters.matching(at(1, z=9)) == []


# -- taking out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("evolve", [None, Lazy(), Periodic(1.0), Cached(1.0)])
def test_what_is_taken_out_is_not_found(evolve: Evolve | None) -> None:
    filters = one(window(evolve))
    assert "w" in filters
    assert filters.matching(at(1, x=1)) == ["w"]
    filters.remove("w")
    assert "w" not in filters
    assert filters.matching(at(1, x=1)) == filters.matching(at(5, x=5)) == []
    with pytest.raises(KeyError):
        filters.remove("w")
    filters.add("w", window(evolve, second=100))
    assert seen(filters, 101) == seen(one(window(evolve, second=100)), 101)


def test_what_was_taken_out_does_not_evolve_what_took_its_place() -> None:
    """What is kept of the second one ends when the period of the first one would have ended."""
    filters = one(window(Periodic(1.0)))
    filters.remove("w")
    filters.add("w", window(Cached(0.5)))
    assert filters.matching(at(0.5, x=0.5)) == ["w"]
    assert filters.matching(at(1.2, x=1)) == ["w"]
    assert filters.matching(at(1.2, x=-2)) == []


def test_what_is_changed_often_leaves_nothing_behind() -> None:
    filters = one(window(Periodic(3600.0)))
    for second in range(1000):
        filters.remove("w")
        filters.add("w", window(Periodic(3600.0), second))
    assert len(filters._queue) < 30
    assert filters.matching(at(999 + 3 * 3600, x=3 * 3600)) == ["w"]
    filters.remove("w")
    assert filters.matching(at(999 + 3 * 3600, x=3 * 3600)) == []


# -- any of them, in any order ------------------------------------------------------------------


class Churn(RuleBasedStateMachine):
    """Filters come and go while events of any time are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.filters: EvolvingIndex[str] = EvolvingIndex()
        self.there: dict[str, EvolvingFilter] = {}

    @rule(key=st.sampled_from("abcd"), moving=movings(moving_lines | moving_filters))
    def put(self, key: str, moving: EvolvingFilter) -> None:
        if key in self.there:
            self.filters.remove(key)
        self.filters.add(key, moving)
        self.there[key] = moving

    @rule(key=st.sampled_from("abcd"))
    def take(self, key: str) -> None:
        if self.there.pop(key, None) is not None:
            self.filters.remove(key)

    @rule(
        after_us=st.sampled_from([-SECOND, 0, 1, 300_000, 999_999, 2 * SECOND, 100 * SECOND]),
        data=st.data(),
    )
    def match(self, after_us: int, data: st.DataObject) -> None:
        begun = [each.origin_us for each in self.there.values()]
        time_us = data.draw(st.sampled_from([0, *begun])) + after_us
        event = data.draw(events_at(time_us, *self.there.values()))
        found = self.filters.matching(event)
        assert len(set(found)) == len(found)
        for key, moving in self.there.items():
            if moving.matches(event):
                assert key in found
            elif key in found:
                assert may_be_found(moving, event)
        assert set(found) <= set(self.there)
        assert len(self.filters) == len(self.there)


def may_be_found(moving: EvolvingFilter, event: Event) -> bool:
    """Whether an event that does not match is near enough to be found all the same."""
    match moving.evolve:
        case Periodic(seconds):
            seconds *= 2
        case Cached(seconds):
            pass
        case _:
            return False
    far_us = round(seconds * SECOND)
    return moving.during(event_us(event) - far_us, event_us(event) + far_us).matches(event)


Churn.TestCase.settings = settings(stateful_step_count=20)
TestChurn = Churn.TestCase


@given(movings(), st.lists(st.integers(-5, 400), min_size=1, max_size=5), st.data())
def test_nothing_is_lost_whatever_the_order_of_events(
    moving: EvolvingFilter, tenths: list[int], data: st.DataObject
) -> None:
    filters: EvolvingIndex[int] = EvolvingIndex()
    filters.add(1, moving)
    for tenth in tenths:
        event = data.draw(events_at(moving.origin_us + tenth * 100_000, moving))
        found = filters.matching(event)
        assert found or not moving.matches(event)
        assert not found or moving.matches(event) or may_be_found(moving, event)
