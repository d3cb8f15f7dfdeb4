"""The index leaves out nothing that covers or is covered, and is right where it is sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.moving_strategies import related_standings
from support.strategies import conjunctions, filters, typed_predicates
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.filters import Filter, parse
from tidegate.matching.poset import box_groups
from tidegate.matching.poset.boxes import Box
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS, Coverage
from tidegate.matching.poset.covering_index import CoveringIndex
from tidegate.matching.poset.nodes import T
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter


@pytest.fixture(params=[0, 1000], ids=["arrays", "loops"], autouse=True, scope="module")
def size_from_which_arrays_are_used(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_groups, "_LOOPED_MAX", request.param)
        patch.setattr(box_groups, "_SORTED_MIN", 1)
        yield


any_filter = (
    filters | conjunctions(typed_predicates()) | conjunctions(typed_predicates(patterns=False))
)


def _is_single(order: Coverage[T], item: T) -> bool:
    return len(order.boxes(item)) == 1 and not order.moves(item)


def check(order: Coverage[T], items: Sequence[T], gone: int) -> None:
    """With some items removed again, ask about each; those without alternatives are left out."""
    boxes = [order.boxes(item) for item in items]
    index: CoveringIndex[int] = CoveringIndex(order.more_is_narrower)
    there = [number for number, each in enumerate(boxes) if each]
    for number in there:
        index.add(number, boxes[number], moves=order.moves(items[number]))
    for number in there[:gone]:
        index.remove(number)
    single = [number for number in there[gone:] if _is_single(order, items[number])]
    for number, other in pairwise(single):
        index.change(number, boxes[other][0])  # and back again
        index.change(number, boxes[number][0])
    for asked in there:
        item = items[asked]
        if order.moves(item):
            continue  # its boxes are all that it ever is, which is not what it covers
        wider = {n for n in there[gone:] if order.covers(items[n], item)}
        narrower = {n for n in there[gone:] if order.covers(item, items[n])}
        sure, maybe = index.wider(boxes[asked])
        assert set(sure) <= wider <= {*sure, *maybe}
        assert len({*sure, *maybe}) == len(sure) + len(maybe)
        sure, maybe = index.narrower(boxes[asked])
        assert set(sure) <= narrower <= {*sure, *maybe}
        near, maybe = index.wider(boxes[asked], nearest=True)
        assert set(near) <= wider
        for n in wider - {*near, *maybe}:
            assert any(order.covers(items[n], items[other]) for other in near)
        near, maybe = index.narrower(boxes[asked], nearest=True)
        assert set(near) <= narrower
        for n in narrower - {*near, *maybe}:
            assert any(order.covers(items[other], items[n]) for other in near)


@given(st.lists(any_filter, max_size=8), st.integers(0, 3))
def test_filters(items: list[Filter], gone: int) -> None:
    check(FILTERS, items, gone)


@given(st.lists(any_filter | related_standings().map(itemgetter(0)), max_size=8), st.integers(0, 3))
def test_filters_some_of_which_move(items: list[WantedFilter], gone: int) -> None:
    check(FILTERS, items, gone)


def test_what_moves_is_never_sure_and_can_be_left_out() -> None:
    """Its box is around all that it ever is: what lies within need not be covered."""
    index: CoveringIndex[str] = CoveringIndex(more_is_narrower=True)
    rising = EvolvingFilter(parse("x < t"), 0)
    for name, item in (("rising", rising), ("still", parse("x < 100"))):
        boxes = FILTERS.boxes(item)
        index.add(name, boxes, moves=FILTERS.moves(item))
    narrow = FILTERS.boxes(parse("x < 5"))
    assert index.wider(narrow) == (["still"], ["rising"])
    assert index.wider(narrow, moving=False) == (["still"], [])
    wide = FILTERS.boxes(parse("x >= -infinity"))
    assert index.narrower(wide) == (["still"], ["rising"])
    index.remove("rising")
    assert index.wider(narrow) == (["still"], [])


@given(st.lists(any_filter, max_size=6), st.integers(0, 2))
def test_advertisements(items: list[Filter], gone: int) -> None:
    found: list[Advertisement] = [parse_advertisement(str(each)) for each in items]
    check(ADVERTISEMENTS, found, gone)


def test_many_prices_of_many_airlines() -> None:
    """Only the nearest of a long chain are given, for each airline one."""
    index: CoveringIndex[str] = CoveringIndex(more_is_narrower=True)
    texts = [f"airline = 'A{a}' and price < {p}" for a in range(5) for p in range(100)]
    for text in texts:
        index.add(text, FILTERS.boxes(parse(text)))

    def boxes(text: str) -> list[Box]:
        return FILTERS.boxes(parse(text))

    assert len(index.narrower(boxes("price < 50"))[0]) == 5 * 51
    if box_groups._LOOPED_MAX == 0:
        nearest, _ = index.narrower(boxes("price < 50"), nearest=True)
        assert set(nearest) == {f"airline = 'A{a}' and price < 50" for a in range(5)}
        nearest, _ = index.wider(boxes("airline = 'A3' and price < 50"), nearest=True)
        assert nearest == ["airline = 'A3' and price < 50"]
    for text in texts:
        index.remove(text)
    assert index.narrower(boxes("price < 50")) == ([], [])
