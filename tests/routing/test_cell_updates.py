"""What a link carries when values change: the cells that differ, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.moving_strategies import moving_filters, origins, policies
from support.strategies import events_aimed_at, nodes, predicates, values
from tidegate.errors import RoutingError
from tidegate.language.evolve import Lazy, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, filter_of
from tidegate.routing.cell_updates import altered, differing_cells, structure


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("price < 10", "price < 5"),
        ("price < 10", "price < 7.5"),
        ("price < 10", "price < 'ten'"),
        ("a = 1 and b < 2", "b < 9 and a = 4"),
        ("x between 1 and 2", "x >= 3 and x <= 5"),
        ("x in (1, 2)", "x in (7, 8)"),
        ("a = 1 or b = 2", "b = 3 or a = 4"),
        ("s like 'a%'", "s like '%b'"),
    ],
)
def test_what_differs_in_values_has_one_structure(one: str, other: str) -> None:
    assert structure(parse(one)) == structure(parse(other))
    assert altered(parse(one), differing_cells(parse(one), parse(other))).equals(parse(other))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("price < 10", "price <= 10"),
        ("price < 10", "cost < 10"),
        ("price < 10", "price < 10 and symbol = 'IBM'"),
        ("x in (1, 2)", "x in (1, 2, 3)"),
        ("a = 1 and b = 2", "a = 1 or b = 2"),
    ],
)
def test_what_asks_something_else_has_another_structure(one: str, other: str) -> None:
    assert structure(parse(one)) != structure(parse(other))


def test_the_structure_of_what_moves_has_its_origin_and_how_it_evolves() -> None:
    filter = parse("x < 3 + t")
    same = [EvolvingFilter(filter, 5, Lazy()), EvolvingFilter(parse("x < 8 + t"), 5, Lazy())]
    others: list[WantedFilter] = [
        EvolvingFilter(filter, 6, Lazy()),
        EvolvingFilter(filter, 5, Periodic(1.0)),
        EvolvingFilter(filter, 5),
        EvolvingFilter(parse("x < 3 - t"), 5, Lazy()),
        parse("x < 3"),
    ]
    assert structure(same[0]) == structure(same[1])
    assert all(structure(each) != structure(same[0]) for each in others)


def test_only_what_differs_is_given() -> None:
    before, after = parse("a = 1 and b < 2 and c > 3"), parse("a = 1 and b < 5 and c > 3.0")
    assert differing_cells(before, after) == ((1, 5), (2, 3.0))  # 3 and 3.0 are two values
    assert differing_cells(before, before) == ()
    assert differing_cells(parse("x = 1"), parse("x = true")) == ((0, True),)


def test_what_moves_keeps_its_origin() -> None:
    moving = EvolvingFilter(parse("x < 3 + t and kind = 'a'"), 5, Periodic(2.0))
    changed = altered(moving, [(1, 9)])
    assert changed == EvolvingFilter(parse("kind = 'a' and x < 9 + t"), 5, Periodic(2.0))
    assert altered(moving, [(0, "b"), (1, 7)]) == altered(altered(moving, [(0, "b")]), [(1, 7)])


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([(2, 1)], "`a = \\? and b < \\?` has 2 cells, so there is none of number 2"),
        ([(-1, 1)], "so there is none of number -1"),
        ([("0", 1)], "so there is none of number 0"),
        ([(0.5, 1)], "so there is none of number 0.5"),
        ([(0, 1), (5, 1)], "so there is none of number 5"),
        ([(0, None)], "a cell holds a value"),
        ([(0, math.nan)], "a cell holds a value"),
        ([(0, [1])], "a cell cannot hold that"),
        ([(0, 2**63)], "a cell cannot hold that"),
    ],
    ids=str,
)
def test_cells_that_cannot_be(cells: Any, reason: str) -> None:
    filter = parse("a = 1 and b < 5")
    with pytest.raises(RoutingError, match=reason):
        altered(filter, cells)
    assert str(filter) == "a = 1 and b < 5"


any_filter = nodes(predicates()).map(Filter)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[WantedFilter, WantedFilter]:
    """Two of one structure."""
    one = draw(any_filter | moving_filters)
    shape, row = one.shape_and_row
    other = Filter.of_shape(shape, tuple(draw(st.just(each) | values) for each in row))
    if not one.evolves:
        return one, other
    origin_us, evolve = draw(origins), draw(policies)
    return EvolvingFilter(one, origin_us, evolve), EvolvingFilter(other, origin_us, evolve)


@given(pairs(), st.data())
def test_with_the_cells_that_differ_one_becomes_the_other(
    pair: tuple[WantedFilter, WantedFilter], data: st.DataObject
) -> None:
    old, new = pair
    assert structure(old) == structure(new)
    cells = differing_cells(old, new)
    found = altered(old, cells)
    assert structure(found) == structure(new)
    assert filter_of(found).shape_and_row == filter_of(new).shape_and_row
    assert differing_cells(found, new) == ()
    by_tree = filter_of(new).node
    event: dict[str, Value] = data.draw(events_aimed_at(by_tree))
    assert filter_of(found).matches(event, t=1.5) == Filter(by_tree).matches(event, t=1.5)
