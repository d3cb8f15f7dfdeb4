from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from tidegate.language.expressions import (
    Constant,
    Elapsed,
    Environment,
    Expression,
    ParameterRef,
    Slot,
)
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.shapes import Row, Shape, row_of, shift_slots, sort_key, split
from tidegate.language.syntax import Node, all_of, any_of, map_leaves
from tidegate.language.values import Value

open_nodes = strategies.nodes(
    strategies.predicates(strategies.expressions() | strategies.constants())
)


def shape_and_row(text: str | Node) -> tuple[Shape, Row]:
    shape, filled = split(parse_filter(text) if isinstance(text, str) else text)
    return shape, row_of(filled)


def typed(row: Row) -> list[tuple[type, Value | ParameterRef]]:
    return [(type(value), value) for value in row]


def test_the_example_of_the_design() -> None:
    shape, row = shape_and_row("symbol = 'IBM' and price < :limit and x >= -3 + t")
    assert str(shape) == "price < ? and symbol = ? and x >= ? + t"
    assert row == (ParameterRef("limit"), "IBM", -3)
    assert shape.width == 3


@pytest.mark.parametrize(
    ("text", "shape", "row"),
    [
        ("true", "true", ()),
        ("false", "false", ()),
        ("a = 1", "a = ?", (1,)),
        ("a = :p", "a = ?", (ParameterRef("p"),)),
        ("a = @load", "a = @load", ()),
        ("a = t + 1", "a = t + ?", (1,)),
        ("a = -t", "a = -t", ()),
        ("a = -(5)", "a = -?", (5,)),
        ("a > now() - 60", "a > now() - ?", (60,)),
        ("a is not null", "a is not null", ()),
        ("a between 1 and 2", "a <= ? and a >= ?", (2, 1)),
        ("a not between 1 and 2", "a < ? or a > ?", (1, 2)),
        ("a in (1)", "a = ?", (1,)),
        ("a in (1, 'x', true)", "a in (?, ?, ?)", (1, "x", True)),
        ("a not in (2)", "a != ?", (2,)),
        ("b = 2 and a = 1", "a = ? and b = ?", (1, 2)),
        ("a < 3 and a < 2", "a < ? and a < ?", (3, 2)),
        ("b = 2 or a = 1", "a = ? or b = ?", (1, 2)),
        ("c = 3 and (b = 2 or a = 1)", "a = ? and c = ? or b = ? and c = ?", (1, 3, 2, 3)),
        ("a like 'x%'", "a like ?", ("x%",)),
        ("a > timestamp '2026-01-02'", "a > ?", (datetime(2026, 1, 2, tzinfo=UTC),)),
        ("a > infinity", "a > ?", (float("inf"),)),
        ("`b c` = 1", "`b c` = ?", (1,)),
        ("a = min(1, :p, t)", "a = min(?, ?, t)", (1, ParameterRef("p"))),
    ],
)
def test_shapes_and_rows(text: str, shape: str, row: Row) -> None:
    found_shape, found_row = shape_and_row(text)
    assert (str(found_shape), typed(found_row)) == (shape, typed(row))
    assert found_shape.width == len(row)


@given(st.data(), strategies.nodes() | open_nodes)
def test_a_filled_shape_means_the_same_and_has_the_same_shape(
    data: st.DataObject, node: Node
) -> None:
    shape, row = shape_and_row(node)
    filled = shape.fill(row)
    again, row_again = shape_and_row(filled)
    assert again == shape
    assert typed(row_again) == typed(row)
    event = data.draw(strategies.events_aimed_at(node))
    environment = Environment({"p": 1, "q": 2}, {"load": 0.5, "mode": 3}, 1.5, None)
    assert holds(filled, event, environment) == holds(node, event, environment)


@given(open_nodes, st.randoms(use_true_random=False))
def test_neither_the_shape_nor_its_order_depends_on_the_values(node: Node, random: Random) -> None:
    pool: list[Value | ParameterRef] = [*strategies.EDGE_NUMBERS, "a", True, ParameterRef("p")]
    others = [random.choice(pool) for _ in range(100)]

    def other(index: int) -> Expression:
        held = others[index]
        return held if isinstance(held, ParameterRef) else Constant(held)

    shape, row = shape_and_row(map_leaves(node, _counting(other)))
    numbered, order = shape_and_row(map_leaves(node, _counting(Constant)))
    assert shape == numbered == shape_and_row(node)[0]
    wanted = tuple(others[index] for index in order if isinstance(index, int))
    assert typed(row) == typed(wanted)


def _counting(make: Callable[[int], Expression]) -> Callable[[Expression], Expression]:
    indexes = count()

    def leaf(old: Expression) -> Expression:
        return make(next(indexes)) if isinstance(old, (Constant, ParameterRef)) else old

    return leaf


@given(st.lists(strategies.predicates(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_predicates_in_another_order_have_the_same_shape(parts: list[Node], random: Random) -> None:
    shuffled = random.sample(parts, len(parts))
    for join in (all_of, any_of):
        shape, row = shape_and_row(join(parts))
        other_shape, other_row = shape_and_row(join(shuffled))
        assert other_shape == shape
        assert sorted(map(repr, other_row)) == sorted(map(repr, row))


def test_a_shape_can_be_filled_with_another_row() -> None:
    shape, _ = shape_and_row("price < 10 and symbol = 'IBM' and x > 1 + t")
    row: Row = (ParameterRef("limit"), True, -2.5)
    assert str(shape.fill(row)) == "price < :limit and symbol = true and x > -2.5 + t"


def test_slots_are_numbered_as_the_row() -> None:
    shape, filled = split(parse_filter("b = 2 and a in (1, :p) and c > t"))
    assert filled == [Constant(1), ParameterRef("p"), Constant(2)]
    assert [predicate.attribute for predicate in shape.disjuncts[0]] == ["a", "b", "c"]
    assert shape.disjuncts[0][2].operands == (Elapsed(),)


def test_slots_further_back() -> None:
    shape, _ = split(parse_filter("a in (1, t + :p, 3)"))
    (predicate,) = shape.disjuncts[0]
    moved = shift_slots(predicate, 2)
    assert [operand for operand in moved.operands if isinstance(operand, Slot)] == [
        Slot(2),
        Slot(4),
    ]
    assert str(moved) == str(predicate)
    assert shift_slots(moved, -2) == predicate


def test_predicates_are_ordered_by_all_but_their_values() -> None:
    texts = ["a < 9 + t", "a < 9", "a < :p", "a = 9", "b < 1"]
    keys = {text: sort_key(split(parse_filter(text))[0].disjuncts[0][0]) for text in texts}
    assert keys["a < 9"] == keys["a < :p"]
    assert sorted(texts, key=keys.__getitem__) == ["a < 9", "a < :p", "a < 9 + t", "a = 9", "b < 1"]
