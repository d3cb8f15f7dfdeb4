from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import conjunctions, nodes, predicates, typed_predicates, values
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value, kind_of
from tidegate.matching.poset.boxes import Box, State, box_of, box_of_event, box_of_row


def boxes(filter: Filter) -> list[Box]:
    return [box_of(each.sets) for each in filter.resolved_form().conjunctions]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("a = 1", State.NUMBER),
        ("a <= 1 and a > 0.5", State.RANGE),
        ("a < infinity", State.PLAIN),  # which is not the same as no bound
        ("a = 9007199254740993", State.PLAIN),  # no float says it
        ("a != 1", State.PLAIN),
        ("a = 'x'", State.VALUE),
        ("a = true", State.VALUE),
        ("a = timestamp '2026-01-02T03:04:05Z'", State.VALUE),
        ("a starts with 'x'", State.PLAIN),
        ("a is not null", State.PLAIN),
        ("a ends with 'x'", State.PATTERN),
        ("a = 1 or a contains 'x'", State.PATTERN),
    ],
)
def test_what_bounds_say(text: str, state: State) -> None:
    (box,) = boxes(parse(text))
    assert box.states == (state,)


@given(conjunctions(typed_predicates()), conjunctions(typed_predicates()))
def test_boxes_cover_as_filters_do_where_they_can_tell(wide: Filter, narrow: Filter) -> None:
    outer, inner = boxes(wide), boxes(narrow)
    if len(outer) == 1 == len(inner):
        known = outer[0].covers(inner[0], more_is_narrower=True)
        assert known in (None, wide.covers(narrow))


@given(conjunctions(typed_predicates()) | nodes(predicates()).map(Filter))
def test_a_row_has_the_box_of_its_filter(filter: Filter) -> None:
    shape, row = filter.shape_and_row
    box, known = box_of_row(shape, row), boxes(filter)
    if box is None:
        assert shape.comparisons is None or not known
    else:
        assert [each.bounds for each in known] == [box.bounds]


@pytest.mark.parametrize(
    "text",
    ["a < 5 and a >= 1 and b = 'x'", "a between 1 and 2", "s like '%x' and s > 'a'", "a in (3)"],
)
def test_comparisons_have_a_box_without_a_normal_form(text: str) -> None:
    assert box_of_row(*parse(text).shape_and_row) is not None


@pytest.mark.parametrize(
    "text", ["a < :p", "a = 1 or b = 1", "a in (1, 2)", "a < 2 + t", "a is not null"]
)
def test_others_have_none(text: str) -> None:
    assert box_of_row(*parse(text).shape_and_row) is None


def test_an_advertisement_is_wider_with_more_attributes() -> None:
    more, fewer = boxes(parse("a = 1 and b = 1"))[0], boxes(parse("a = 1"))[0]
    assert fewer.covers(more, more_is_narrower=True)
    assert more.covers(fewer, more_is_narrower=False)
    assert not fewer.covers(more, more_is_narrower=False)


@given(values, values)
def test_bounds_keep_the_order_of_values(a: Value, b: Value) -> None:
    if kind_of(a) is kind_of(b) and a <= b:  # type: ignore[operator]
        low, high = (box_of_event(Event({"x": each})) for each in (a, b))
        assert low.lows <= high.lows
        assert low.highs <= high.highs


@given(st.dictionaries(st.sampled_from("abc"), values))
def test_an_event_is_a_box_of_single_values(attributes: dict[str, Value]) -> None:
    box = box_of_event(Event(attributes))
    assert box.names == tuple(sorted(attributes))
    assert box.is_settled
