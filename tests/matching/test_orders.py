from __future__ import annotations

import pytest

from tidegate.errors import UnresolvedError
from tidegate.language.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.orders import ADVERTISEMENTS, FILTERS, FILTERS_SINCE, FilterSince


def test_a_filter_is_its_conjunctions() -> None:
    found = FILTERS.alternatives(parse("a = 1 and b < 2 or c = 3"))
    assert found is not None
    assert [sorted(each) for each in found] == [["a", "b"], ["c"]]
    assert FILTERS.alternatives(parse("false")) == []


def test_what_moves_has_no_conjunctions_of_values() -> None:
    assert FILTERS.alternatives(parse("a < t")) is None
    assert FILTERS.alternatives(parse("a < @load and b = 1")) is None
    with pytest.raises(UnresolvedError):
        FILTERS.alternatives(parse("a < t and b < :p"))


def test_alternatives_of_an_advertisement_within_another_are_left_out() -> None:
    wide = ADVERTISEMENTS.alternatives(parse_advertisement("a = 1 or a > 0 and b = 1 or a = 2"))
    assert wide is not None
    assert [sorted(each) for each in wide] == [["a", "b"]]


def test_a_clock_that_started_earlier_is_ahead() -> None:
    early, late = (FilterSince(parse("x < t"), since) for since in (0.0, 10.0))
    assert FILTERS_SINCE.covers(early, late)
    assert not FILTERS_SINCE.covers(late, early)
    assert FILTERS_SINCE.covers(FilterSince(parse("x < 5"), 9.0), FilterSince(parse("x < 4"), 1.0))


def test_what_matches() -> None:
    event = Event.of({"a": 1})
    assert FILTERS.matches(parse("a = 1"), event)
    assert FILTERS_SINCE.matches(FilterSince(parse("a > t")), event)
    assert not ADVERTISEMENTS.matches(parse_advertisement("b = 1"), event)
