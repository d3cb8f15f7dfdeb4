from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import (
    conjunctions,
    nodes,
    numbers,
    predicates,
    strings,
    times,
    typed_predicates,
    values,
)
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.poset.boxes import BoundsForm, Box, box_of, box_of_event, box_of_row


def boxes(filter: Filter) -> list[Box]:
    return [box_of(each.sets) for each in filter.resolved_form().conjunctions]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a = 1", BoundsForm.NUMBER),
        ("a <= 1 and a > 0.5", BoundsForm.RANGE),
        ("a < infinity", BoundsForm.HULL),  # which is not the same as no bound
        ("a = 9007199254740993", BoundsForm.HULL),  # equals no float
        ("a != 1", BoundsForm.HULL),
        ("a = 'x'", BoundsForm.VALUE),
        ("a = true", BoundsForm.VALUE),
        ("a = timestamp '2026-01-02T03:04:05Z'", BoundsForm.VALUE),
        ("a starts with 'x'", BoundsForm.HULL),
        ("a is not null", BoundsForm.HULL),
        ("a ends with 'x'", BoundsForm.PATTERN),
        ("a = 1 or a contains 'x'", BoundsForm.PATTERN),
    ],
)
def test_how_exact_bounds_are(text: str, form: BoundsForm) -> None:
    (box,) = boxes(parse(text))
    assert box.forms == (form,)


EXACT = {
    "a": ["a = 1", "a = 2", "a < 2", "a >= 1", "a >= 0 and a <= 2"],
    "b": ["b = 'x'", "b = 'y'", "b = true", "b = 1", "b > 0"],
    "c": ["c = timestamp '2026-01-02T03:04:05Z'", "c < 5", "c = 3"],
}
exact_filters = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(texts) for name, texts in EXACT.items()}
).map(lambda parts: parse(" and ".join(parts.values()) or "true"))


@given(exact_filters, exact_filters)
def test_exact_boxes_cover_as_filters_do(wide: Filter, narrow: Filter) -> None:
    (outer,), (inner,) = boxes(wide), boxes(narrow)
    assert outer.covers(inner, more_is_narrower=True) is wide.covers(narrow)


@given(conjunctions(typed_predicates()), conjunctions(typed_predicates()))
def test_other_boxes_do_not_decide(wide: Filter, narrow: Filter) -> None:
    for outer, inner in zip(boxes(wide), boxes(narrow), strict=False):
        known = outer.covers(inner, more_is_narrower=True)
        assert known in (None, wide.covers(narrow))
        assert (known is None) is not (outer.is_exact and inner.is_exact)


@given(conjunctions(typed_predicates()) | nodes(predicates()).map(Filter))
def test_a_row_has_the_box_of_its_filter(filter: Filter) -> None:
    shape, row = filter.shape_and_row
    box, known = box_of_row(shape, row), boxes(filter)
    if box is None:
        assert shape.comparisons is None or not known
    else:
        assert [each.bounds for each in known] == [box.bounds]
        assert known[0].names == box.names  # in the same order, too


@pytest.mark.parametrize(
    "text",
    ["a < 5 and a >= 1 and b = 'x'", "a between 1 and 2", "s like '%x' and s > 'a'", "a in (3)"],
)
def test_comparisons_have_a_box_without_a_normal_form(text: str) -> None:
    assert box_of_row(*parse(text).shape_and_row) is not None


@pytest.mark.parametrize(
    "text", ["a < :p", "a = 1 or b = 1", "a in (1, 2)", "a < 2 + t", "a is not null"]
)
def test_other_filters_need_a_normal_form(text: str) -> None:
    assert box_of_row(*parse(text).shape_and_row) is None


def test_an_advertisement_is_wider_with_more_attributes() -> None:
    more, fewer = boxes(parse("a = 1 and b = 1"))[0], boxes(parse("a = 1"))[0]
    assert fewer.covers(more, more_is_narrower=True)
    assert more.covers(fewer, more_is_narrower=False)
    assert not fewer.covers(more, more_is_narrower=False)


two_of_a_kind = st.sampled_from([numbers, strings, times, st.booleans()]).flatmap(
    lambda kind: st.tuples(kind, kind)
)


@given(two_of_a_kind)
def test_bounds_keep_the_order_of_values(pair: tuple[Value, Value]) -> None:
    low, high = (box_of_event(Event({"x": each})) for each in sorted(pair))
    assert low.lows <= high.lows
    assert low.highs <= high.highs


@given(st.dictionaries(st.sampled_from("abc"), values))
def test_an_event_is_a_box_of_single_values(attributes: dict[str, Value]) -> None:
    box = box_of_event(Event(attributes))
    assert box.names == tuple(sorted(attributes))
    assert box.is_settled
