from __future__ import annotations

import pytest

from tidegate.errors import UnresolvedError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.values import from_us
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS
from tidegate.matching.poset.wanted_filter import EvolvingFilter


def test_a_filter_is_its_conjunctions() -> None:
    found = FILTERS.boxes(parse("a = 1 and b < 2 or c = 3"))
    assert [each.names for each in found] == [("a", "b"), ("c",)]
    never = Filter(parse_filter("a < 1 and a > 2"))
    assert FILTERS.boxes(parse("false")) == FILTERS.boxes(never) == []


def test_an_evolving_filter_has_the_boxes_of_its_over_estimate() -> None:
    (box,) = FILTERS.boxes(EvolvingFilter(parse("a < 3 - t and b = 1"), 0))
    (static,) = FILTERS.boxes(parse("a < 3.0 and b = 1"))
    assert box.bounds == static.bounds
    with pytest.raises(UnresolvedError):
        FILTERS.boxes(parse("b < :p"))


def test_alternatives_of_an_advertisement_within_another_are_left_out() -> None:
    wide = ADVERTISEMENTS.boxes(parse_advertisement("a = 1 or a > 0 and b = 1 or a = 2"))
    assert [each.names for each in wide] == [("a", "b")]


def test_which_filters_evolve() -> None:
    assert FILTERS.evolves(EvolvingFilter(parse("x < t"), 0))
    assert not FILTERS.evolves(parse("x < 1"))


def test_events_match_at_their_publication_time() -> None:
    event = Event.of({"a": 1})
    assert FILTERS.matches(parse("a = 1"), event)
    later = Event(event.attributes, from_us(2_000_000))
    assert not FILTERS.matches(EvolvingFilter(parse("a > t"), 0), later)
    assert FILTERS.matches(EvolvingFilter(parse("a > t"), 1_500_000), later)
    assert not ADVERTISEMENTS.matches(parse_advertisement("b = 1"), event)
