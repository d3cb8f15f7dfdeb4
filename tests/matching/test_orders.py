from __future__ import annotations

import pytest

from tidegate.adapting.moving import Moving
from tidegate.errors import UnresolvedError
from tidegate.language.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import from_micros
from tidegate.matching.orders import ADVERTISEMENTS, FILTERS


def test_a_filter_is_its_conjunctions() -> None:
    found = FILTERS.alternatives(parse("a = 1 and b < 2 or c = 3"))
    assert [sorted(each) for each in found] == [["a", "b"], ["c"]]
    assert FILTERS.alternatives(parse("false")) == []


def test_what_moves_is_all_that_it_ever_is() -> None:
    (sets,) = FILTERS.alternatives(Moving(parse("a < 3 - t and b = 1"), 0))
    (still,) = FILTERS.alternatives(parse("a < 3.0 and b = 1"))
    assert sets == still
    with pytest.raises(UnresolvedError):
        FILTERS.alternatives(parse("b < :p"))


def test_alternatives_of_an_advertisement_within_another_are_left_out() -> None:
    wide = ADVERTISEMENTS.alternatives(parse_advertisement("a = 1 or a > 0 and b = 1 or a = 2"))
    assert [sorted(each) for each in wide] == [["a", "b"]]


def test_what_moves() -> None:
    assert FILTERS.moves(Moving(parse("x < t"), 0))
    assert not FILTERS.moves(parse("x < 1"))


def test_what_matches() -> None:
    event = Event.of({"a": 1})
    assert FILTERS.matches(parse("a = 1"), event)
    later = Event(event.attributes, from_micros(2_000_000))
    assert not FILTERS.matches(Moving(parse("a > t"), 0), later)
    assert FILTERS.matches(Moving(parse("a > t"), 1_500_000), later)
    assert not ADVERTISEMENTS.matches(parse_advertisement("b = 1"), event)
