"""Values of events and bounds of constraints as the floats of range tables.

A range table sees an attribute as one kind of value, and a value as a float: a timestamp in
microseconds since 1970, a boolean as 0 or 1. Integers and times beyond 2**53 are rounded to the
nearest float; rounding is monotone, so a bound that is rounded outward still has the rounded value
of whatever it had before. ``is_exact`` tells where nothing was rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from tidegate.language.values import Value, to_us
from tidegate.matching.arrays import F64
from tidegate.matching.summary.tables import ChannelKind

EXACT_MAX = 2.0**53
"""Up to this, each integer is a float, and no other integer rounds to it."""

DOMAINS: dict[ChannelKind, tuple[float, float]] = {
    ChannelKind.NUMBER: (-math.inf, math.inf),
    ChannelKind.TIMESTAMP: (
        float(to_us(datetime.min.replace(tzinfo=UTC))),
        float(to_us(datetime.max.replace(tzinfo=UTC))),
    ),
    ChannelKind.BOOLEAN: (0.0, 1.0),
}
"""The first and the last value of each kind."""

KIND_OF_TYPE: dict[type, ChannelKind] = {
    bool: ChannelKind.BOOLEAN,
    int: ChannelKind.NUMBER,
    float: ChannelKind.NUMBER,
    str: ChannelKind.STRING,
    datetime: ChannelKind.TIMESTAMP,
}


def as_float(value: Value) -> float:
    """A value that is no string as a float, rounded to the nearest.

    >>> as_float(True), as_float(2**53 + 1), as_float(-0.0)
    (1.0, 9007199254740992.0, 0.0)
    """
    if isinstance(value, datetime):
        return float(to_us(value))
    return float(value) + 0.0


def is_exact(value: float) -> bool:
    """Whether nothing but the value itself becomes this float, whether it was rounded or not."""
    return -EXACT_MAX < value < EXACT_MAX


def rounded_down(value: Value) -> float:
    """The greatest float that is not above a value.

    >>> rounded_down(2**53 + 1), rounded_down(2**53 + 3)
    (9007199254740992.0, 9007199254740994.0)
    """
    return _rounded(value, -math.inf, lambda number, nearest: nearest > number)


def rounded_up(value: Value) -> float:
    """The least float that is not below a value."""
    return _rounded(value, math.inf, lambda number, nearest: nearest < number)


def _rounded(value: Value, towards: float, is_beyond: Callable[[float, float], bool]) -> float:
    number = to_us(value) if isinstance(value, datetime) else value
    nearest = as_float(value)
    beyond = is_beyond(number, nearest)  # type: ignore[arg-type] # Python compares ints exactly
    return math.nextafter(nearest, towards) if beyond else nearest


def before(kind: ChannelKind, values: F64) -> F64:
    """The values of a kind that come just before others.

    Timestamps and booleans are whole numbers, so that ranges which touch are seen to touch.
    """
    return _beside(kind, values, -1.0)


def after(kind: ChannelKind, values: F64) -> F64:
    """The values of a kind that come just after others."""
    return _beside(kind, values, 1.0)


def just_after(kind: ChannelKind, value: float) -> float:
    """As ``after``, of one value.

    >>> just_after(ChannelKind.NUMBER, 1.0), just_after(ChannelKind.TIMESTAMP, 1.0)
    (1.0000000000000002, 2.0)
    """
    if kind is not ChannelKind.NUMBER and abs(value) < EXACT_MAX:
        return value + 1.0
    return math.nextafter(value, math.inf)


def _beside(kind: ChannelKind, values: F64, step: float) -> F64:
    with np.errstate(over="ignore"):  # after the greatest float comes infinity
        following: F64 = np.nextafter(values, step * np.inf)
    if kind is ChannelKind.NUMBER:
        return following
    return np.where(np.abs(values) < EXACT_MAX, values + step, following)
