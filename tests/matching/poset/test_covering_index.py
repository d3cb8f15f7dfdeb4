"""The index leaves out no item that covers or is covered, and is right where it is sure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.evolving_strategies import related_wanted_filters
from support.strategies import conjunctions, filters, typed_predicates
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.filters import Filter, parse
from tidegate.matching.poset.boxes import Box
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS, Coverage
from tidegate.matching.poset.covering_index import CoveringIndex
from tidegate.matching.poset.nodes import T
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter

LOOPS_AND_ARRAYS = pytest.mark.parametrize("loop_max", [1000, 0], ids=["loops", "arrays"])


any_filter = (
    filters | conjunctions(typed_predicates()) | conjunctions(typed_predicates(patterns=False))
)


def _is_single(coverage: Coverage[T], item: T) -> bool:
    return len(coverage.boxes(item)) == 1 and not coverage.evolves(item)


def check(coverage: Coverage[T], items: Sequence[T], removals: int, loop_max: int) -> None:
    """Query for each item, with some of them removed again; items without a box are left out."""
    boxes = [coverage.boxes(item) for item in items]
    index: CoveringIndex[int] = CoveringIndex(
        coverage.more_is_narrower, loop_max=loop_max, sort_min=1
    )
    added = [number for number, each in enumerate(boxes) if each]
    for number in added:
        index.add(number, boxes[number], evolves=coverage.evolves(items[number]))
    for number in added[:removals]:
        index.remove(number)
    kept = added[removals:]
    single = [number for number in kept if _is_single(coverage, items[number])]
    for number, other in pairwise(single):
        index.change(number, boxes[other][0])  # and back again
        index.change(number, boxes[number][0])
    for queried in added:
        item = items[queried]
        if coverage.evolves(item):
            continue  # its boxes are those of its over-estimate, which covers more
        wider = {n for n in kept if coverage.covers(items[n], item)}
        narrower = {n for n in kept if coverage.covers(item, items[n])}
        sure, maybe = index.wider(boxes[queried])
        assert set(sure) <= wider <= {*sure, *maybe}
        assert len({*sure, *maybe}) == len(sure) + len(maybe)
        sure, maybe = index.narrower(boxes[queried])
        assert set(sure) <= narrower <= {*sure, *maybe}
        near, maybe = index.wider(boxes[queried], nearest=True)
        assert set(near) <= wider
        for n in wider - {*near, *maybe}:
            assert any(coverage.covers(items[n], items[other]) for other in near)
        near, maybe = index.narrower(boxes[queried], nearest=True)
        assert set(near) <= narrower
        for n in narrower - {*near, *maybe}:
            assert any(coverage.covers(items[other], items[n]) for other in near)


wanted_filters = any_filter | related_wanted_filters().map(itemgetter(0))


@LOOPS_AND_ARRAYS
@given(items=st.lists(any_filter, max_size=8), removals=st.integers(0, 3))
def test_filters(items: list[Filter], removals: int, loop_max: int) -> None:
    check(FILTERS, items, removals, loop_max)


@LOOPS_AND_ARRAYS
@given(items=st.lists(wanted_filters, max_size=8), removals=st.integers(0, 3))
def test_filters_some_of_which_evolve(
    items: list[WantedFilter], removals: int, loop_max: int
) -> None:
    check(FILTERS, items, removals, loop_max)


def test_evolving_items_are_never_sure_and_can_be_left_out() -> None:
    """Their boxes are those of an over-estimate: what lies within it may not be covered."""
    index: CoveringIndex[str] = CoveringIndex(more_is_narrower=True)
    rising = EvolvingFilter(parse("x < t"), 0)
    for name, item in (("rising", rising), ("static", parse("x < 100"))):
        boxes = FILTERS.boxes(item)
        index.add(name, boxes, evolves=FILTERS.evolves(item))
    narrow = FILTERS.boxes(parse("x < 5"))
    assert index.wider(narrow) == (["static"], ["rising"])
    assert index.wider(narrow, include_evolving=False) == (["static"], [])
    wide = FILTERS.boxes(parse("x >= -infinity"))
    assert index.narrower(wide) == (["static"], ["rising"])
    index.remove("rising")
    assert index.wider(narrow) == (["static"], [])


@LOOPS_AND_ARRAYS
@given(items=st.lists(any_filter, max_size=6), removals=st.integers(0, 2))
def test_advertisements(items: list[Filter], removals: int, loop_max: int) -> None:
    advertisements: list[Advertisement] = [parse_advertisement(str(each)) for each in items]
    check(ADVERTISEMENTS, advertisements, removals, loop_max)


@LOOPS_AND_ARRAYS
def test_many_prices_of_many_airlines(loop_max: int) -> None:
    """Of a long chain only the nearest are returned, one for each airline."""
    index: CoveringIndex[str] = CoveringIndex(more_is_narrower=True, loop_max=loop_max, sort_min=1)
    texts = [f"airline = 'A{a}' and price < {p}" for a in range(5) for p in range(100)]
    for text in texts:
        index.add(text, FILTERS.boxes(parse(text)))

    def boxes(text: str) -> list[Box]:
        return FILTERS.boxes(parse(text))

    assert len(index.narrower(boxes("price < 50"))[0]) == 5 * 51
    if loop_max == 0:
        nearest, _ = index.narrower(boxes("price < 50"), nearest=True)
        assert set(nearest) == {f"airline = 'A{a}' and price < 50" for a in range(5)}
        nearest, _ = index.wider(boxes("airline = 'A3' and price < 50"), nearest=True)
        assert nearest == ["airline = 'A3' and price < 50"]
    for text in texts:
        index.remove(text)
    assert index.narrower(boxes("price < 50")) == ([], [])
