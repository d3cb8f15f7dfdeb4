"""Bounds of comparisons: which values of a channel satisfy `x < 5`, for many rows at once.

A constraint with `low <= high` holds if `low <= x <= high`. One with `low > high` holds for the
outside of its bounds, `x >= low or x <= high`, which is how `!=` is written. So a constraint that
never holds cannot be written as an empty interval; it is flagged instead. Strict bounds step to the
next value of the channel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.language.syntax import Operator
from tidegate.matching.arrays import F64, I64, Bools
from tidegate.matching.rows.entries.channels import CHANNEL_KIND, POSITIVE, Channels
from tidegate.matching.rows.entries.orders import ORDERED
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, STRING
from tidegate.matching.rows.store.cells import Cells, StringPool


def as_floats(kind: int, cells: Cells) -> F64:
    """Cells of one kind as the floats of a channel; -0.0 becomes 0.0, because keys are hashed."""
    if kind == FLOAT:
        return cells.view(np.float64) + 0.0
    return cells.astype(np.float64)


def bounds(operator: Operator, values: F64, *, whole: bool) -> tuple[F64, F64, Bools]:
    """The bounds of a comparison, low and high, and for which values it never holds.

    If the values of the channel are ``whole`` numbers, the next one is one more, else it is the
    next float.
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
            # x != inf is all that is below it, and no outside: nothing lies after inf
            top, bottom = values == np.inf, values == -np.inf
            low = np.where(top, -np.inf, after)
            high = np.where(bottom, np.inf, before)
            return low, high, never


def pattern_bounds(
    attribute: str, operator: Operator, cells: I64, channels: Channels, pool: StringPool
) -> tuple[F64, F64, Bools]:
    """The bounds of patterns, given as cells of strings, and which of the patterns are malformed.

    A malformed pattern is satisfied by no string, and neither is its complement.
    """
    distinct, which = np.unique(cells, return_inverse=True)
    numbers = [channels.pattern(attribute, operator, pool.text(cell)) for cell in distinct.tolist()]
    values = np.array([np.nan if each is None else each for each in numbers])[which]
    as_comparison = Operator.EQUAL if operator in POSITIVE else Operator.NOT_EQUAL
    bad = np.isnan(values)
    low, high, _ = bounds(as_comparison, np.where(bad, 0.0, values), whole=True)
    return low, high, bad


class OrderBounds(NamedTuple):
    """Constraints of comparisons on an ordered channel (see orders.py).

    ``crowded`` are those without a label, which let all pass: their entries have to be verified.
    """

    channel: int
    low: F64
    high: F64
    crowded: Bools


def order_bounds(
    attribute: str, operator: Operator, kind: int, cells: I64, channels: Channels, pool: StringPool
) -> OrderBounds:
    """The bounds of comparisons with strings or long numbers, given as cells of a kind."""
    distinct, which = np.unique(cells, return_inverse=True)
    values: list[str | int | float]
    if kind == STRING:
        values = [pool.text(cell) for cell in distinct.tolist()]
    elif kind == FLOAT:
        values = distinct.view(np.float64).tolist()
    else:
        values = distinct.tolist()
    labels = channels.orders.label(attribute, CHANNEL_KIND[kind], values)
    numbers = np.array([np.nan if each is None else each for each in labels])[which]
    crowded = np.isnan(numbers)
    low, high, _ = bounds(operator, np.where(crowded, 0.0, numbers), whole=True)
    channel = channels.channel(attribute, ORDERED + CHANNEL_KIND[kind])
    low, high = np.where(crowded, -np.inf, low), np.where(crowded, np.inf, high)
    return OrderBounds(channel, low, high, crowded)


def widened(operator: Operator, values: F64) -> tuple[F64, F64]:
    """Bounds that hold whenever the comparison does, for values of 2**53 or more.

    There a float stands for several integers, and two that differ may be the same float. So every
    bound includes the value and a neighbour, and `!=` lets all pass. What decides is the order
    label of the value (``order_bounds``); if it has none, the entry has to be verified.
    """
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
