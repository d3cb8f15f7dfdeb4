"""When values change, a link carries the cells that differ, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.evolving_strategies import evolve_modes, filters_of_time, origins
from support.strategies import events_aimed_at, nodes, predicates, values
from tidegate.errors import RoutingError
from tidegate.language.evolve import Lazy, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter
from tidegate.routing.cell_updates import differing_cells, identity, structure, with_cells


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
def test_filters_that_differ_in_values_have_one_structure(one: str, other: str) -> None:
    assert structure(parse(one)) == structure(parse(other))
    assert with_cells(parse(one), differing_cells(parse(one), parse(other))).equals(parse(other))  # type: ignore[union-attr]


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
def test_filters_that_differ_in_more_than_values_have_another_structure(
    one: str, other: str
) -> None:
    assert structure(parse(one)) != structure(parse(other))


def test_the_structure_of_an_evolving_filter_has_its_origin_and_evolve_mode() -> None:
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


def test_the_identity_is_what_is_the_same_however_it_is_written() -> None:
    assert identity(parse("a = 1 and b < 2")) == identity(parse("b < 2 and a = 1"))
    for other in ("a = 2", "a = 1.0", "a = true", "b = 1", "a >= 1"):
        assert identity(parse("a = 1")) != identity(parse(other))
    evolving = parse("x < t")
    assert identity(EvolvingFilter(evolving, 1)) != identity(EvolvingFilter(evolving, 2))


def test_only_cells_that_differ_are_returned() -> None:
    before, after = parse("a = 1 and b < 2 and c > 3"), parse("a = 1 and b < 5 and c > 3.0")
    assert differing_cells(before, after) == ((1, 5), (2, 3.0))  # 3 and 3.0 are two values
    assert differing_cells(before, before) == ()
    assert differing_cells(parse("x = 1"), parse("x = true")) == ((0, True),)


def test_an_evolving_filter_keeps_its_origin() -> None:
    evolving = EvolvingFilter(parse("x < 3 + t and kind = 'a'"), 5, Periodic(2.0))
    changed = with_cells(evolving, [(1, 9)])
    assert changed == EvolvingFilter(parse("kind = 'a' and x < 9 + t"), 5, Periodic(2.0))
    assert with_cells(evolving, [(0, "b"), (1, 7)]) == with_cells(
        with_cells(evolving, [(0, "b")]), [(1, 7)]
    )


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([(2, 1)], "`a = \\? and b < \\?` has no cell 2; its 2 cells are numbered from 0"),
        ([(-1, 1)], "has no cell -1"),
        ([("0", 1)], "has no cell '0'"),
        ([(0.5, 1)], "has no cell 0.5"),
        ([(0, 1), (5, 1)], "has no cell 5"),
        ([(0, None)], "a cell must hold a value, not "),
        ([(0, math.nan)], "a cell must hold a value, not "),
        ([(0, [1])], "a cell cannot hold this value"),
        ([(0, 2**63)], "a cell cannot hold this value"),
    ],
    ids=str,
)
def test_bad_cells(cells: Any, reason: str) -> None:
    filter = parse("a = 1 and b < 5")
    with pytest.raises(RoutingError, match=reason):
        with_cells(filter, cells)
    assert str(filter) == "a = 1 and b < 5"


any_filter = nodes(predicates()).map(Filter)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[WantedFilter, WantedFilter]:
    """Two wanted filters of one structure."""
    one = draw(any_filter | filters_of_time)
    shape, row = one.shape_and_row
    other = Filter.of_shape(shape, tuple(draw(st.just(each) | values) for each in row))
    if not one.evolves:
        return one, other
    origin_us, evolve = draw(origins), draw(evolve_modes)
    return EvolvingFilter(one, origin_us, evolve), EvolvingFilter(other, origin_us, evolve)


@given(pairs(), st.data())
def test_with_the_cells_that_differ_one_becomes_the_other(
    pair: tuple[WantedFilter, WantedFilter], data: st.DataObject
) -> None:
    old, new = pair
    assert structure(old) == structure(new)
    cells = differing_cells(old, new)
    result = with_cells(old, cells)
    assert structure(result) == structure(new)
    assert underlying_filter(result).shape_and_row == underlying_filter(new).shape_and_row
    assert differing_cells(result, new) == ()
    by_tree = underlying_filter(new).node
    event: dict[str, Value] = data.draw(events_aimed_at(by_tree))
    assert underlying_filter(result).matches(event, t=1.5) == Filter(by_tree).matches(event, t=1.5)
