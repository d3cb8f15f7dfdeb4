"""Lists of the names of parameters, by number."""

from __future__ import annotations

from tidegate.language.filters import parse
from tidegate.matching.rows.store.parameter_names import ParameterNames


def test_equal_lists_have_one_number() -> None:
    names = ParameterNames()
    rows = [parse(text).shape_and_row[1] for text in ("x < :a", "y > :a", "x < :b", "x < 1")]
    assert [names.number_of(row) for row in rows] == [0, 0, 1, 2]
    assert names.lists() == [("a",), ("b",), (None,)]


def test_a_parameter_may_stand_in_several_slots() -> None:
    names = ParameterNames()
    number = names.number(("a", None, "b", "a"))
    assert names.slots(number) == {"a": (0, 3), "b": (2,)}
    assert names.names(number) == ("a", None, "b", "a")


def test_lists_come_back_with_their_numbers() -> None:
    names = ParameterNames([["a", None], ["b"]])
    assert names.number(("b",)) == 1
    assert ParameterNames(names.lists()).lists() == names.lists()
