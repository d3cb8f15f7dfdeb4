"""Digests and orders are the same at both ends, whatever the keys, and differ if anything does."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import conjunctions
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.evolve import Lazy, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.routing.durability.digests import digest_of, in_fixed_order, text_of
from tidegate.routing.messages import Key

GROWS = parse("x < t")

DIFFERENT: list[dict[Key, WantedFilter]] = [
    {},
    {Key(1, None): parse("x = 1")},
    {Key(1, "tree"): parse("x = 1")},
    {Key(1, "other"): parse("x = 1")},
    {Key(1, None): parse("x = 1.0")},
    {Key(1, None): parse("x = '1'")},
    {Key(1, None): parse("x = true")},
    {Key(1, None): parse("x = 1"), Key(2, None): parse("x = 1")},
    {Key(1, None): EvolvingFilter(GROWS, 0)},
    {Key(1, None): EvolvingFilter(GROWS, 1)},
    {Key(1, None): EvolvingFilter(GROWS, 0, Lazy())},
    {Key(1, None): EvolvingFilter(GROWS, 0, Periodic(1.0))},
]


def test_whatever_differs_has_another_digest() -> None:
    assert len({digest_of(each) for each in DIFFERENT}) == len(DIFFERENT)
    offered = {Key(1, None): parse_advertisement("x > 1")}
    assert digest_of({}, offered) != digest_of(offered, {}) != digest_of({}, {})


@given(st.lists(conjunctions(), max_size=6), st.integers(0, 9))
def test_keys_and_order_do_not_matter(filters: list[Filter], seed: int) -> None:
    one = {Key(number, None): each for number, each in enumerate(filters)}
    shuffled = list(enumerate(filters))
    Random(seed).shuffle(shuffled)
    other = {Key(number + 50, None): each for number, each in shuffled}
    assert digest_of(one) == digest_of(other)
    ordered = [in_fixed_order(each) for each in (one, other)]
    texts = [{key: text_of(item) for key, item in each.items()} for each in ordered]
    assert texts[0] == texts[1]
    assert list(ordered[0]) == [Key(number + 1, None) for number in range(len(filters))]


@pytest.mark.parametrize("text", ["b = 2 and a = 1", "a = 1 and b = 2"])
def test_the_text_of_a_client_does_not_matter(text: str) -> None:
    shape, row = parse("a = 1 and b = 2").shape_and_row
    assert text_of(parse(text)) == text_of(Filter.of_shape(shape, row))
