"""Bounds of comparisons: which values of a channel satisfy `x < 5`, for many at once.

A constraint holds if `low <= x <= high`, and where low is greater than high for the outside of
them. Strict bounds step to the next value.
"""

from __future__ import annotations

import numpy as np

from tidegate.language.syntax import Operator
from tidegate.matching.arrays import F64, I64, Bools
from tidegate.matching.columnar.entries.channels import POSITIVE, Channels
from tidegate.matching.columnar.store.cells import StringPool


def bounds(operator: Operator, values: F64, *, whole: bool) -> tuple[F64, F64, Bools]:
    """The bounds of a comparison, and where it never holds.

    ``whole`` values are integers, and the next one is one more; others step to the next float.
    """
    infinite = np.full(len(values), np.inf)
    with np.errstate(over="ignore", under="ignore"):
        after = values + 1 if whole else np.nextafter(values, np.inf)
        before = values - 1 if whole else np.nextafter(values, -np.inf)
    never = np.zeros(len(values), np.bool_)
    match operator:
        case Operator.EQUAL:
            return values, values, never
        case Operator.LESS:
            return -infinite, before, values == -np.inf
        case Operator.LESS_EQUAL:
            return -infinite, values, never
        case Operator.GREATER:
            return after, infinite, values == np.inf
        case Operator.GREATER_EQUAL:
            return values, infinite, never
        case _:
            top, bottom = values == np.inf, values == -np.inf
            low = np.where(top, -np.inf, after)
            high = np.where(bottom, np.inf, before)
            return low, high, never


def pattern_bounds(
    attribute: str, operator: Operator, cells: I64, channels: Channels, pool: StringPool
) -> tuple[F64, F64, Bools]:
    """The bounds of patterns, given as cells of strings, and which of them never hold."""
    different, which = np.unique(cells, return_inverse=True)
    numbers = [
        channels.pattern(attribute, operator, pool.text(cell)) for cell in different.tolist()
    ]
    values = np.array([np.nan if each is None else each for each in numbers])[which]
    as_comparison = Operator.EQUAL if operator in POSITIVE else Operator.NOT_EQUAL
    bad = np.isnan(values)
    low, high, _ = bounds(as_comparison, np.where(bad, 0.0, values), whole=True)
    return low, high, bad


def widened(operator: Operator, values: F64) -> tuple[F64, F64]:
    """Bounds that hold whenever the comparison does, where floats stand for several integers."""
    infinite = np.full(len(values), np.inf)
    with np.errstate(over="ignore"):
        after, before = np.nextafter(values, np.inf), np.nextafter(values, -np.inf)
    match operator:
        case Operator.EQUAL:
            return values, values
        case Operator.LESS | Operator.LESS_EQUAL:
            return -infinite, after
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return before, infinite
        case _:
            return -infinite, infinite
