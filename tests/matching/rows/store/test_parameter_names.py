"""Lists of the names of parameters, by number."""

from __future__ import annotations

from tidegate.language.filters import parse
from tidegate.matching.rows.store.parameter_names import ParameterNames
from tidegate.matching.rows.store.uses import FORGOTTEN


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
    names = ParameterNames([["a", None], [], ["b"]], [1, FORGOTTEN, 2])
    assert names.number(("b",)) == 2
    assert names.number(("c", "c")) == 1
    assert names.slots(1) == {"c": (0, 1)}
    assert ParameterNames(names.lists(), [1, 1, 1]).lists() == names.lists()


def test_a_list_that_is_not_used_makes_room_for_another() -> None:
    names = ParameterNames(unused_max=0)
    numbers = [names.number((name,)) for name in "abc"]
    names.uses.add(numbers)
    names.uses.remove([1])
    names.forget()
    assert (len(names), names.lists()) == (2, [("a",), (), ("c",)])
    assert [names.number(("d",)), names.number(("a",)), names.number(("b",))] == [1, 0, 3]
