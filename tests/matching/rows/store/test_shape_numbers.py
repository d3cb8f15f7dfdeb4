"""Shapes by number, and their texts."""

from __future__ import annotations

from hypothesis import given

from support import strategies
from tidegate.language.filters import Filter, parse, shape_of
from tidegate.language.syntax import Node
from tidegate.matching.rows.store.shape_numbers import (
    ShapeNumbers,
    shape_from_text,
    shape_text,
)

TEXTS = ["x < 1", "y = 'a' and x < 2", "x < 3", "true", "x < 4 and y = 5"]


def test_equal_shapes_have_one_number() -> None:
    numbers = ShapeNumbers()
    assert numbers.numbers(parse(text).shape_and_row for text in TEXTS) == [0, 1, 0, 2, 1]
    assert numbers.numbers([parse("x < 9").shape_and_row]) == [0]
    assert [str(shape) for shape in numbers.shapes] == ["x < ?", "x < ? and y = ?", "true"]
    assert numbers.widths == [1, 2, 0]


def test_texts_give_all_numbers_back() -> None:
    numbers = ShapeNumbers()
    numbers.numbers(parse(text).shape_and_row for text in TEXTS)
    again = ShapeNumbers(numbers.texts(), [1, 1, 1])
    assert (again.shapes, again.widths) == (numbers.shapes, numbers.widths)
    assert again.numbers([parse("true").shape_and_row]) == [2]


def test_a_shape_that_is_not_used_makes_room_for_another() -> None:
    numbers = ShapeNumbers(unused_max=1)
    numbers.uses.add(numbers.numbers(parse(text).shape_and_row for text in TEXTS))
    assert numbers.forget() == []
    numbers.uses.remove([1, 1, 2])
    assert numbers.forget() == [1]  # the one that was unused longest
    assert (len(numbers), numbers.widths, numbers.texts()[1]) == (2, [1, 0, 0], "")
    again = ShapeNumbers(numbers.texts(), numbers.uses.counts())
    for each in (numbers, again):
        assert each.numbers([parse("true").shape_and_row, parse("z = 1").shape_and_row]) == [2, 1]
        assert each.widths == [1, 1, 0]


@given(strategies.nodes(strategies.predicates(strategies.expressions())))
def test_the_text_of_a_shape_gives_the_shape_back(node: Node) -> None:
    shape, _ = shape_of(Filter(node))
    assert shape_from_text(shape_text(shape)) == shape
