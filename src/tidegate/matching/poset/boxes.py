"""Boxes: the bounds of a conjunction on each attribute, as floats that are compared in columns.

Rules. (1) The floats keep the order of values: a number is itself, a timestamp its seconds, a
string its first bytes, rounded where it must be. So whatever lies within another set has its bounds
within the bounds of the other. (2) The reverse holds only where the *form* of both bounds is exact:
a float is not every integer, not every string, and not several intervals. Everywhere else two boxes
only say that one item may cover the other, and `Coverage.covers` decides.

A box has just one bound pair for each attribute, so the set of all boxes that lie within another is
a range query over columns of floats (see `box_groups`).
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

_CACHED_CHARS_MAX = 64
"""Bounds of longer strings are not cached, which bounds the memory of the cache."""

ValueSets = Mapping[str, ValueSet]
"""A conjunction: the values that each attribute may have."""


class BoundsForm(IntEnum):
    """How exactly two float bounds describe a set of values, from the most to the least exact.

    The order matters: `Box` compares with VALUE and PATTERN.
    """

    NUMBER = 0
    """One number; the bounds are exact."""
    RANGE = 1
    """One interval of numbers; the bounds are exact."""
    VALUE = 2
    """One string, timestamp or boolean; different values may have equal bounds."""
    HULL = 3
    """Any intervals; the bounds enclose all of them."""
    PATTERN = 4
    """Strings that match a pattern; the bounds enclose them. Only here `covers` is incomplete: with
    a covers b and b covers c it may miss that a covers c."""

    __hash__ = int.__hash__  # Enum's own is slow, and forms are part of most dictionary keys here


SingleValue = tuple[str, object]
"""A value with the name of its kind, so that `1` and `true` differ."""
Bounds = tuple[BoundsForm, float, float, SingleValue | None]
"""Form, low bound, high bound, and the value where there is just one."""


class Box:
    """The bounds of a conjunction on each attribute, in the order of the attributes' names.

    ``names``, ``forms``, ``lows``, ``highs`` and ``values`` are the columns of ``bounds``. Boxes of
    equal conjunctions have equal ``key``s, and others rarely have. ``size`` is at least the number
    of intervals that the conjunction has in all.
    """

    __slots__ = (
        "bounds",
        "forms",
        "highs",
        "is_exact",
        "is_settled",
        "key",
        "lows",
        "names",
        "size",
        "values",
    )

    def __init__(self, bounds: dict[str, Bounds], size: int) -> None:
        self.size = size
        self.bounds = bounds
        self.names = tuple(bounds)
        columns = tuple(zip(*bounds.values(), strict=True)) or ((), (), (), ())
        self.forms: tuple[BoundsForm, ...] = columns[0]
        self.lows: tuple[float, ...] = columns[1]
        self.highs: tuple[float, ...] = columns[2]
        self.values: tuple[SingleValue | None, ...] = columns[3]
        least_exact = max(self.forms, default=BoundsForm.NUMBER)
        # Exact: bounds and single values describe the conjunction completely. Settled: covering
        # among such boxes is seen to be transitive (see PosetNode).
        self.is_exact = least_exact <= BoundsForm.VALUE
        self.is_settled = least_exact < BoundsForm.PATTERN
        self.key = hash((self.names, self.lows, self.highs, self.values))

    def covers(self, other: Box, more_is_narrower: bool) -> bool | None:
        """Whether all values of the other box lie in this one; None if one of both is not exact."""
        if not (self.is_exact and other.is_exact):
            return None
        wide, narrow = self.bounds, other.bounds
        # A filter is narrower if it constrains more attributes; an advertisement allows only the
        # attributes that it names. So only those of the side with fewer attributes are compared.
        for name in wide if more_is_narrower else narrow:
            outer, inner = wide.get(name), narrow.get(name)
            if outer is None or inner is None:
                return False
            if outer[0] is not BoundsForm.RANGE:
                if outer[3] != inner[3]:
                    return False
            elif inner[0] is BoundsForm.VALUE or outer[1] > inner[1] or outer[2] < inner[2]:
                return False
        return True


def box_of(sets: ValueSets) -> Box:
    """The box of a conjunction, none of whose value sets is empty."""
    size = sum(values.size for values in sets.values())
    return Box({name: _bounds_of_set(sets[name]) for name in sorted(sets)}, size)


def box_of_row(shape: Shape, row: Row) -> Box | None:
    """The box of a conjunction of comparisons, from the values of its row.

    None for other filters and for an empty box; these need their normal form.
    """
    values = [cell for cell in row if not isinstance(cell, ParameterRef)]
    if shape.comparisons is None or len(values) < len(row):
        return None
    # The shape lists attributes in the order of their names, as a box does.
    bounds: dict[str, Bounds] = {}
    for name, comparisons in shape.comparisons:
        found = _bounds_of_comparisons([(operator, values[slot]) for operator, slot in comparisons])
        if found is None:
            return None
        bounds[name] = found
    return Box(bounds, len(bounds) + len(row))


def box_of_event(event: Event) -> Box:
    """The box of the narrowest filter that an event matches: `=` on each of its attributes."""
    attributes = sorted(event.attributes.items())
    return Box({name: _bounds_of_value(value) for name, value in attributes}, len(attributes))


def _bounds_of_comparisons(comparisons: list[Comparison]) -> Bounds | None:
    """The bounds of the values that satisfy all comparisons; None if no value does."""
    between = numbers_between(comparisons)
    if between is not None:
        return _bounds_of_numbers((between,)) if between[0] < between[1] else None
    values = values_of(comparisons)
    return None if values.is_empty else _bounds_of_set(values)


def _bounds_of_value(value: Value) -> Bounds:
    """The bounds of one value of an event.

    Those of short values are cached: the same values come again and again, and in a simulation the
    same event at each broker on its way.
    """
    if isinstance(value, str) and len(value) > _CACHED_CHARS_MAX:
        return _bounds_of_set(ValueSet.of(Operator.EQUAL, [value]))
    return _cached_bounds(type(value).__name__, value)


@lru_cache(maxsize=1 << 14)
def _cached_bounds(_type: str, value: Value) -> Bounds:
    """The bounds of one value; its type is part of the cache's key, where 1 equals True."""
    return _bounds_of_set(ValueSet.of(Operator.EQUAL, [value]))


def _bounds_of_set(values: ValueSet) -> Bounds:
    """The bounds of a set that is not empty; infinite if it has values of several kinds."""
    numbers, strings = values.numbers.spans, values.strings
    others = values.times.spans or values.booleans.spans
    if numbers and not strings and not others:
        return _bounds_of_numbers(numbers)
    if len(strings) == 1 and not numbers and not others:
        only = strings[0]
        if not only.is_plain:
            return (BoundsForm.PATTERN, *_hull(only.spans.spans), None)
        return _bounds_of_others("string", only.spans.spans)
    if any(not each.is_plain for each in strings):
        return BoundsForm.PATTERN, -math.inf, math.inf, None
    if strings or numbers or (values.times.spans and values.booleans.spans):
        return BoundsForm.HULL, -math.inf, math.inf, None
    return _bounds_of_others("time" if values.times.spans else "boolean", others)


def _bounds_of_numbers(spans: tuple[Span, ...]) -> Bounds:
    """The bounds of intervals of numbers, each `[low, high)`."""
    low, high = spans[0][0], spans[-1][1]
    low_key, high_key = float(low), math.inf if high is END else float(high)
    # Not exact: integers that no float equals; and `< infinity`, whose high bound as a float is
    # that of an interval without end, though the value infinity lies in the latter only.
    exact = (
        len(spans) == 1
        and low_key == low
        and low_key != math.inf
        and (high is END or (high_key == high and high_key != math.inf))
    )
    if not exact:
        return BoundsForm.HULL, low_key, high_key, None
    # `next_value` is slow, so only short intervals are tested. A single number beyond 2**63, where
    # the next one is further away, becomes a RANGE, which is exact as well.
    if high_key - low_key <= 1.0 and next_value(low) == high:
        return BoundsForm.NUMBER, low_key, high_key, ("number", low_key)
    return BoundsForm.RANGE, low_key, high_key, None


def _bounds_of_others(kind: str, spans: tuple[Span, ...]) -> Bounds:
    """The bounds of intervals of strings, timestamps or booleans."""
    low, high = spans[0]
    if len(spans) == 1 and next_value(low) == high:
        key = _float_key(low)
        return BoundsForm.VALUE, key, key, (kind, low)
    return (BoundsForm.HULL, *_hull(spans), None)


def _hull(spans: tuple[Span, ...]) -> tuple[float, float]:
    return _float_key(spans[0][0]), _float_key(spans[-1][1])


def _float_key(point: Endpoint) -> float:
    """A float for a string, timestamp or boolean that keeps the order of its kind.

    Not strictly: strings with equal first eight bytes, and neighbouring times or long strings after
    rounding, have equal keys. So a comparison of keys must always include equality.
    """
    if point is END:
        return math.inf
    if isinstance(point, str):
        return float(int.from_bytes(point.encode()[:8].ljust(8, b"\0"), "big"))
    if isinstance(point, datetime):
        return point.timestamp()
    return float(point)
