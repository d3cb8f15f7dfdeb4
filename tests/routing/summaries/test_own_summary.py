"""The own summary of a broker: changes, windows, and what does not fit."""

from __future__ import annotations

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.matching.summary.ids import IdLayout
from tidegate.matching.summary.index import SummaryIndex
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import SummaryTables
from tidegate.routing.messages import Key, Validity
from tidegate.routing.outbox import NeighbourDelta
from tidegate.routing.summaries.own_summary import GatewaySummary, OwnSummary

SECOND_US = 1_000_000
WINDOW_US = 10 * SECOND_US


def delta(
    added: dict[int, WantedFilter] | None = None,
    updated: dict[int, WantedFilter] | None = None,
    removed: tuple[int, ...] = (),
) -> NeighbourDelta[WantedFilter]:
    found = NeighbourDelta[WantedFilter]()
    found.added = [(Key(number, None), item) for number, item in (added or {}).items()]
    found.updated = [(Key(number, None), item, item) for number, item in (updated or {}).items()]
    found.removed = [Key(number, None) for number in removed]
    return found


def finds(tables: SummaryTables, **attributes: int) -> bool:
    return SummaryIndex(tables).owners_matching(Event.of(attributes)) == {"home"}


def test_filters_are_added_updated_and_removed() -> None:
    own = OwnSummary("home", WINDOW_US)
    assert own.change(delta({1: parse("x = 1"), 2: parse("x = 2")}), 0) == 2
    assert own.change(delta(updated={1: parse("x = 3")}, removed=(2,)), 0) == 2
    assert own.numbers == {1}
    assert finds(own.tables(0), x=3)
    assert not finds(own.tables(0), x=1)
    assert not finds(own.tables(0), x=2)
    own.change(delta({1: parse("y = 1 or z = 1")}), 0)  # another structure under the same key
    assert finds(own.present, z=1)
    assert not finds(own.present, x=3)


def test_what_covers_leaves_as_what_it_covers_comes() -> None:
    own = OwnSummary("home", WINDOW_US)
    own.change(delta({1: parse("x > 1")}), 0)
    own.change(delta({2: parse("x > 5")}, removed=(1,)), 0)
    assert finds(own.present, x=6)
    assert not finds(own.present, x=3)


def test_an_evolving_filter_enters_by_its_estimate_during_the_window() -> None:
    own = OwnSummary("home", WINDOW_US)
    assert list(own.validity()) == []
    own.change(delta({1: EvolvingFilter(parse("x between t and t + 1"), 0)}), 20 * SECOND_US)
    assert list(own.validity()) == [Validity("home", 19 * SECOND_US, 30 * SECOND_US)]
    assert finds(own.present, x=19)
    assert finds(own.present, x=31)
    assert not finds(own.present, x=33)
    own.change(delta(updated={1: parse("x = 1")}), 20 * SECOND_US)
    assert list(own.validity()) == []


def test_the_window_is_moved_by_an_event_from_after_it() -> None:
    own = OwnSummary("home", WINDOW_US)
    assert not own.event_came(1_000 * SECOND_US)  # nothing evolves
    own.change(delta({1: EvolvingFilter(parse("x = t"), 0)}), 0)
    assert not own.event_came(10 * SECOND_US)
    assert not own.event_came(-5 * SECOND_US)  # late ones do not move it
    assert own.event_came(40 * SECOND_US)
    assert not own.event_came(41 * SECOND_US)  # it will be moved anyway
    assert finds(own.tables(43 * SECOND_US), x=45)
    assert list(own.validity()) == [Validity("home", 40 * SECOND_US, 53 * SECOND_US)]


@pytest.mark.parametrize("now_us", [0, 1_000 * SECOND_US])
def test_the_clocks_of_publishers_count_where_they_are_far_from_the_own_one(now_us: int) -> None:
    own = OwnSummary("home", WINDOW_US)
    own.change(delta({1: EvolvingFilter(parse("x = t"), 0)}), 0)
    assert own.event_came(41 * SECOND_US)
    own.tables(now_us)
    assert list(own.validity()) == [Validity("home", 40 * SECOND_US, 51 * SECOND_US)]


def test_a_window_that_is_over_is_moved_when_something_is_sent() -> None:
    own = OwnSummary("home", WINDOW_US)
    own.change(delta({1: EvolvingFilter(parse("x = t"), 0)}), 0)
    own.tables(10 * SECOND_US)
    assert list(own.validity()) == [Validity("home", -SECOND_US, 10 * SECOND_US)]
    own.tables(10 * SECOND_US + 1)
    assert list(own.validity()) == [Validity("home", 9 * SECOND_US + 1, 20 * SECOND_US + 1)]


def test_an_event_within_the_window_that_matches_is_found() -> None:
    own = OwnSummary("home", WINDOW_US)
    evolving = EvolvingFilter(parse("x between 3 * t and 3 * t + 1"), 5 * SECOND_US)
    own.change(delta({1: evolving}), 7 * SECOND_US)
    (window,) = own.validity()
    tables = own.present
    for time_us in range(window.begin_us, window.end_us + 1, 500_000):
        for x in range(40):
            event = Event({"x": x}, from_us(time_us))
            assert not evolving.matches(event) or finds(tables, x=x)


def test_a_filter_without_room_matches_everything() -> None:
    own = OwnSummary("home", WINDOW_US)
    own._summary = Summary(layout=IdLayout(attributes_max=1))
    own.change(delta({1: parse("x = 1"), 2: parse("y = 1")}), 0)
    assert finds(own.present, z=1)
    own.change(delta(removed=(2,)), 0)
    assert not finds(own.present, z=1)


def test_a_budget_makes_it_smaller_and_less_precise() -> None:
    exact = OwnSummary("home", WINDOW_US)
    narrow = OwnSummary("home", WINDOW_US, SummaryBudget(rows_max=2))
    for own in (exact, narrow):
        own.change(delta({n: parse(f"x = {10 * n}") for n in range(9)}), 0)
    exact_rows, rows = (len(own.present.ranges[0].lows) for own in (exact, narrow))
    assert exact_rows == 9
    assert rows <= 2
    between = range(5, 80, 10)  # what nobody wants
    assert not any(finds(exact.present, x=x) for x in between)
    assert any(finds(narrow.present, x=x) for x in between)


def test_a_gateway_matches_everything_at_any_time() -> None:
    own = GatewaySummary("home")
    assert finds(own.tables(0), x=1)
    assert own.present == own.tables(5)
    assert list(own.validity()) == []
