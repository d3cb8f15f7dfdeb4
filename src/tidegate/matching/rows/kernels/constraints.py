"""Whether a value satisfies a constraint.

A constraint `(channel, low, high)` has one of these forms:

    low <= high     the inside: low <= x <= high. An equality has low == high.
    low > high      the outside: x >= low or x <= high. `x != 5` is (after 5, before 5).
    NaN             nothing satisfies it.

An event without a value has NaN, which satisfies none of them. In a channel of sets the event has
the number of a set. `(n, n)` requires that n is a member; the outside, `(n + 1, n - 1)`, that it is
not.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32
from tidegate.matching.rows.kernels.jit import inlined


@inlined
def satisfied(x: float, low: float, high: float) -> bool:
    """Whether a value satisfies a constraint."""
    if low <= high:
        return x >= low and x <= high
    return x >= low or x <= high


@inlined
def as_probe(low: float, high: float) -> tuple[np.float32, np.float32]:
    """Bounds as floats of 32 bits, rounded outwards: what passed still passes.

    If nothing passed, nothing does: the bounds are then +infinity and -infinity.
    """
    if not low <= high:
        return np.float32(np.inf), np.float32(-np.inf)
    # conversion rounds to nearest, so each side may be a step too narrow
    below, above = np.float32(low), np.float32(high)
    if below > low:
        below = np.nextafter(below, np.float32(-np.inf))
    if above < high:
        above = np.nextafter(above, np.float32(np.inf))
    return below, above


@inlined
def in_set(x: float, low: float, high: float, set_first: I32, set_value: F64) -> bool:
    """Whether a set satisfies a constraint, by bisection of its members."""
    if np.isnan(x):
        return False
    # of the outside, `(n + 1, n - 1)`, n itself is wanted
    wanted = low if low <= high else low - 1.0
    # bisection, because a string may satisfy many patterns
    begin, end = np.int64(set_first[np.int64(x)]), np.int64(set_first[np.int64(x) + 1])
    while begin < end:
        middle = (begin + end) >> 1
        if set_value[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    is_member = begin < set_first[np.int64(x) + 1] and set_value[begin] == wanted
    return bool(is_member == (low <= high))
