"""Boxes: what a conjunction asks of each attribute, as numbers that can be compared in columns.

A box has a low and a high bound for each attribute. They are floats that keep the order of values:
a number as itself, a timestamp in seconds, a string by its first bytes. So whatever lies within
another has its bounds between those of the other; the reverse is sure only where the *state* of
both says that nothing was lost on the way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from functools import lru_cache

from tidegate.language.algebra.intervals import END, Endpoint, Span, next_value
from tidegate.language.algebra.normal_form import Comparison, numbers_between, values_of
from tidegate.language.algebra.value_sets import ValueSet
from tidegate.language.events import Event
from tidegate.language.expressions import ParameterRef
from tidegate.language.shapes import Row, Shape
from tidegate.language.syntax import Operator
from tidegate.language.values import Value

_KEPT_CHARS_MAX = 64

ValueSets = Mapping[str, ValueSet]
"""A conjunction: the values that each attribute may have."""


class State(IntEnum):
    """How much of a value set its two bounds say."""

    NUMBER = 0
    """One number, said by its bounds."""
    RANGE = 1
    """Neighbouring numbers, said by their bounds."""
    VALUE = 2
    """One string, timestamp or boolean; its bounds say a little less."""
    PLAIN = 3
    """Intervals; the bounds are around all of them."""
    PATTERN = 4
    """Strings that read in a certain way; some of the bounded space may be known to be empty."""

    __hash__ = int.__hash__  # that of enumerations is slow, and states are hashed all the time


SingleValue = tuple[str, object]
"""A value and its kind."""
Bounds = tuple[State, float, float, SingleValue | None]


class Box:
    """The bounds of a conjunction, attribute by attribute, in the order of their names.

    ``values`` has the value, with its kind, where there is just one, else None. ``key`` is what
    equal conjunctions have in common; others rarely.
    """

    __slots__ = (
        "bounds",
        "highs",
        "is_said",
        "is_settled",
        "key",
        "lows",
        "names",
        "states",
        "values",
    )

    def __init__(self, bounds: dict[str, Bounds]) -> None:
        self.bounds = bounds
        self.names = tuple(bounds)
        columns = tuple(zip(*bounds.values(), strict=True)) or ((), (), (), ())
        self.states: tuple[State, ...] = columns[0]
        self.lows: tuple[float, ...] = columns[1]
        self.highs: tuple[float, ...] = columns[2]
        self.values: tuple[SingleValue | None, ...] = columns[3]
        widest = max(self.states, default=State.NUMBER)
        self.is_said = widest <= State.VALUE  # whether the bounds and values say all of it
        self.is_settled = widest < State.PATTERN  # whether covering is transitive among such
        self.key = hash((self.names, self.lows, self.highs, self.values))

    def covers(self, other: Box, more_is_narrower: bool) -> bool | None:
        """Whether whatever lies in the other box lies in this one; None where boxes do not say."""
        if not (self.is_said and other.is_said):
            return None
        wide, narrow = self.bounds, other.bounds
        for name in wide if more_is_narrower else narrow:
            outer, inner = wide.get(name), narrow.get(name)
            if outer is None or inner is None:
                return False
            if outer[0] is not State.RANGE:
                if outer[3] != inner[3]:
                    return False
            elif inner[0] is State.VALUE or outer[1] > inner[1] or outer[2] < inner[2]:
                return False
        return True


def box_of(sets: ValueSets) -> Box:
    """The box of a conjunction, none of whose sets is empty."""
    return Box({name: _described(sets[name]) for name in sorted(sets)})


def box_of_row(shape: Shape, row: Row) -> Box | None:
    """The box of a filter that only compares with the values of its row.

    None for other filters, and where nothing lies in the box: they need their normal form.
    """
    values = [each for each in row if not isinstance(each, ParameterRef)]
    if shape.comparisons is None or len(values) < len(row):
        return None
    bounds: dict[str, Bounds] = {}
    for name, asked in shape.comparisons:
        described = _compared([(operator, values[slot]) for operator, slot in asked])
        if described is None:
            return None
        bounds[name] = described
    return Box(bounds)


def _compared(comparisons: list[Comparison]) -> Bounds | None:
    """The bounds of the values for which all comparisons hold; None if there are none."""
    between = numbers_between(comparisons)
    if between is not None:
        return _numbers((between,)) if between[0] < between[1] else None
    values = values_of(comparisons)
    return None if values.is_empty else _described(values)


def box_of_event(event: Event) -> Box:
    """The box that only events with these values lie in, whatever else they have."""
    values = sorted(event.attributes.items())
    return Box({name: _described_value(each) for name, each in values})


def _described_value(value: Value) -> Bounds:
    """The bounds of one value; short ones are kept, because the same values come again and again:
    at every broker of a simulation that an event passes."""
    if isinstance(value, str) and len(value) > _KEPT_CHARS_MAX:
        return _described(ValueSet.of(Operator.EQUAL, [value]))
    return _kept_description(type(value).__name__, value)


@lru_cache(maxsize=1 << 14)
def _kept_description(_kind: str, value: Value) -> Bounds:
    return _described(ValueSet.of(Operator.EQUAL, [value]))


def _described(values: ValueSet) -> Bounds:
    numbers, strings = values.numbers.spans, values.strings
    others = values.times.spans or values.booleans.spans
    if numbers and not strings and not others:
        return _numbers(numbers)
    if len(strings) == 1 and not numbers and not others:
        only = strings[0]
        if not only.is_plain:
            return (State.PATTERN, *_hull(only.spans.spans), None)
        return _ordered("string", only.spans.spans)
    if any(not each.is_plain for each in strings):
        return State.PATTERN, -math.inf, math.inf, None
    if strings or numbers or (values.times.spans and values.booleans.spans):
        return State.PLAIN, -math.inf, math.inf, None
    return _ordered("time" if values.times.spans else "boolean", others)


def _numbers(spans: tuple[Span, ...]) -> Bounds:
    low, high = spans[0][0], spans[-1][1]
    low_key, high_key = float(low), math.inf if high is END else float(high)
    exact = (
        len(spans) == 1
        and low_key == low
        and low_key != math.inf
        and (high is END or (high_key == high and high_key != math.inf))
    )
    if not exact:
        return State.PLAIN, low_key, high_key, None
    if high_key - low_key <= 1.0 and next_value(low) == high:
        return State.NUMBER, low_key, high_key, ("number", low_key)
    return State.RANGE, low_key, high_key, None


def _ordered(kind: str, spans: tuple[Span, ...]) -> Bounds:
    low, high = spans[0]
    if len(spans) == 1 and next_value(low) == high:
        key = _key(low)
        return State.VALUE, key, key, (kind, low)
    return (State.PLAIN, *_hull(spans), None)


def _hull(spans: tuple[Span, ...]) -> tuple[float, float]:
    return _key(spans[0][0]), _key(spans[-1][1])


def _key(point: Endpoint) -> float:
    """A float for a value that is no number, in the order of values of its kind."""
    if point is END:
        return math.inf
    if isinstance(point, str):
        return float(int.from_bytes(point.encode()[:8].ljust(8, b"\0"), "big"))
    if isinstance(point, datetime):
        return point.timestamp()
    return float(point)
