"""Bounds of rows as numbers that take few bytes.

Theory of operation. The rows of a table are ascending and disjoint, so their bounds are one
ascending sequence: the low and the high of the first row, of the second, and so on. Two things are
left out of it (`RowForm`): the high of an equality, and a low that is the very next float after the
high before it, as everywhere where a row was cut in two. Of the others most are what people write,
a decimal with few digits, or the float next to one, where `<` was written (`ValueForm`). Decimals
become integers of one scale, ``bound = integer / 10 ** scale``, and of these only the differences
are written. The division is that of float64, which rounds correctly, so ``830 / 10 ** 2`` is the
float that is read from `8.30`. All other bounds are written as floats; infinity is one.

The scale is the least of those with which the fewest bounds are floats. A bound that could be
written in several ways is written in the first of them, and minus zero as zero.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I64, Bools
from tidegate.matching.summary.merging import key_bounds, row_keys
from tidegate.matching.summary.tables import ChannelKind
from tidegate.matching.summary.wire.columns import Reader
from tidegate.matching.summary.wire.layout import RangeRows, RowForm, ValueForm

SCALE_MAX = 9
DECIMAL_MAX = 2**53 - 1
"""The largest decimal as an integer: all up to it are float64."""

_STEPS = {ValueForm.DECIMAL: 0, ValueForm.AFTER: 1, ValueForm.BEFORE: -1}
"""How many floats a bound is after its decimal."""


def range_rows(rows_removed: I64, lows: F64, highs: F64) -> RangeRows:
    """The record of the removed rows and of these added ones."""
    lows, highs = lows + 0.0, highs + 0.0  # minus zero becomes zero
    adjoins = np.zeros(len(lows), np.bool_)
    adjoins[1:] = lows[1:] == _stepped(highs[:-1], 1)
    is_point = lows == highs
    values = np.column_stack((lows, highs))[np.column_stack((~adjoins, ~is_point))]
    scale, forms, decimals = _scaled(values)
    return RangeRows(
        rows_removed,
        RowForm.POINT * is_point.astype(np.int64) + RowForm.ADJOINS * adjoins.astype(np.int64),
        scale,
        forms,
        decimals,
        values[forms == ValueForm.FLOAT],
    )


def added_bounds(record: RangeRows, reader: Reader) -> tuple[F64, F64]:
    """The lows and highs of the added rows, ascending only if the message is well-formed."""
    if np.any(record.row_forms > RowForm.POINT | RowForm.ADJOINS):
        raise reader.malformed("a row has no such form")
    is_written = np.column_stack(
        ((record.row_forms & RowForm.ADJOINS) == 0, (record.row_forms & RowForm.POINT) == 0)
    )
    values = _values(record, int(is_written.sum()), reader)
    if len(is_written) and not is_written[0, 0]:
        raise reader.malformed("the first row adjoins none")
    keys = _chained(row_keys(values, ChannelKind.NUMBER), is_written)
    bounds = key_bounds(keys, ChannelKind.NUMBER).reshape(-1, 2)
    return bounds[:, 0].copy(), bounds[:, 1].copy()


def _stepped(bounds: F64, steps: int) -> F64:
    """The floats after or before some bounds; unlike ``nextafter``, without a warning at the last.

    What is beyond infinity is NaN, which no table may have.
    """
    return key_bounds(row_keys(bounds, ChannelKind.NUMBER) + steps, ChannelKind.NUMBER)


def _chained(written: I64, is_written: Bools) -> I64:
    """The keys of all bounds in their order; what is not written follows from the one before.

    A low that is not written is one more than the high before it, a high the same as its low.
    """
    flat = is_written.ravel()
    steps = np.cumsum(~is_written * np.array([1, 0])).astype(np.int64)
    last = np.cumsum(flat) - 1
    chained: I64 = written[last] + steps - steps[flat][last]
    return chained


def _values(record: RangeRows, count: int, reader: Reader) -> F64:
    """The written bounds."""
    forms, decimals = record.value_forms, record.decimals
    is_float = forms == ValueForm.FLOAT
    float_count = int(is_float.sum())
    if len(forms) != count or np.any(forms > ValueForm.FLOAT):
        raise reader.malformed("a bound has no form, or no such form")
    if (len(decimals), len(record.floats)) != (count - float_count, float_count):
        raise reader.malformed("a bound is missing")
    if record.scale > SCALE_MAX or np.any(np.abs(decimals) > DECIMAL_MAX):
        raise reader.malformed("a decimal has too many digits")
    values = np.empty(count)
    values[is_float] = record.floats
    values[~is_float] = decimals / 10.0**record.scale
    for form, step in _STEPS.items():
        values[forms == form] = _stepped(values[forms == form], step)
    return values


def _scaled(values: F64) -> tuple[int, I64, I64]:
    """The scale, the forms, and the decimals as integers."""
    scale, forms, decimals = 0, *_decimals(values, 0)
    for wider in range(1, SCALE_MAX + 1):
        if len(decimals) == len(values):
            break
        wider_forms, wider_decimals = _decimals(values, wider)
        if len(wider_decimals) > len(decimals):
            scale, forms, decimals = wider, wider_forms, wider_decimals
    return scale, forms, decimals


def _decimals(values: F64, scale: int) -> tuple[I64, I64]:
    """The forms of the values with this scale, and the integers of those that are decimals."""
    power = 10.0**scale
    forms = np.full(len(values), int(ValueForm.FLOAT), np.int64)
    integers = np.zeros(len(values), np.int64)
    for form, step in _STEPS.items():
        near = _stepped(values, -step)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.rint(near * power)
            fits = (np.abs(rounded) <= DECIMAL_MAX) & (rounded / power == near)
        chosen = np.flatnonzero(fits & (forms == ValueForm.FLOAT))
        forms[chosen] = form
        integers[chosen] = rounded[chosen].astype(np.int64)
    return forms, integers[forms != ValueForm.FLOAT]
