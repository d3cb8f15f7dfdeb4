from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import conjunctions, typed_predicates, values
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value, kind_of
from tidegate.matching.boxes import Box, State, box_of, box_of_event
from tidegate.matching.orders import FILTERS


def boxes(filter: Filter) -> list[Box]:
    return [box_of(each) for each in FILTERS.alternatives(filter) or []]


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
