"""The yardstick: matching by brute force in NumPy, which every machine runs the same way.

The bounds of all subscriptions stand in columns, one pair for each attribute. An event is compared
with the first pair of columns whole, with the next for those that are left, and so on. A figure
from a noisy machine can be read as a ratio to this one, measured in the same run; and what it finds
is what an engine must find.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.experiments.workloads import (
    EVENT_TIME,
    F64,
    I64,
    SINCE,
    AttributeRange,
    EventColumn,
    Motion,
)

SPARSE_SHARE = 0.1
"""A condition that fewer of the subscriptions have is compared for just those."""


@dataclass(frozen=True, slots=True)
class BaselineEvent:
    """An event as the yardstick takes it: numbers, and the seconds since the subscriptions."""

    values: Mapping[str, float]
    t: float = 0.0


class NumpyBaseline:
    """Subscriptions as columns of bounds."""

    def __init__(self, count: int, conditions: Sequence[AttributeRange]) -> None:
        few = SPARSE_SHARE * count
        self._count = count
        self._full = [_spread(each, count) for each in conditions if len(each.rows) >= few]
        self._sparse = [each for each in conditions if len(each.rows) < few]
        self._names = {each.attribute: each.names for each in conditions if each.names}

    def points(self, events: pa.Table) -> Iterator[BaselineEvent]:
        """The events of a table, one by one."""
        columns: dict[str, list[float]] = {}
        for name in events.column_names:
            column: EventColumn = events.column(name)
            if name in self._names:
                column = pc.index_in(column, value_set=pa.array(self._names[name]))
            if name == EVENT_TIME:
                time_us = column.cast(pa.int64()).to_numpy() - int(SINCE.timestamp()) * 1_000_000
                columns[name] = (time_us / 1e6).tolist()
            elif not pa.types.is_string(column.type):
                columns[name] = column.to_pylist()
        times = columns.pop(EVENT_TIME, [0.0] * events.num_rows)
        for index, t in enumerate(times):
            yield BaselineEvent({name: values[index] for name, values in columns.items()}, t)

    def match(self, point: BaselineEvent) -> I64:
        """The rows of the subscriptions that match, in order."""
        rows = np.arange(self._count) if not self._full else None
        for condition in self._full:
            inside = _inside(condition, rows, point)
            rows = np.flatnonzero(inside) if rows is None else rows[inside]
        assert rows is not None
        if not self._sparse:
            return rows
        left = np.ones(self._count, np.bool_)
        for condition in self._sparse:
            left[condition.rows] &= _inside(condition, None, point)
        return rows[left[rows]]

    def update(self, rows: I64, least: I64) -> None:
        """Change the parameter of some subscriptions, one after the other."""
        for condition in self._full:
            if condition.parameter is not None:
                condition.low[rows] = least + 1


def _spread(condition: AttributeRange, count: int) -> AttributeRange:
    """The condition for all subscriptions: those that do not have it take any value."""

    def filled(values: F64, other: float) -> F64:
        column = np.full(count, other, np.float64)
        column[condition.rows] = values
        return column

    motion = condition.motion
    if motion is not None:
        motion = Motion(
            filled(motion.rate, 0), filled(motion.amplitude, 0), filled(motion.period_s, 1)
        )
    return replace(
        condition,
        rows=np.arange(count),
        low=filled(condition.low, -np.inf),
        high=filled(condition.high, np.inf),
        motion=motion,
    )


def _inside(
    condition: AttributeRange, rows: I64 | None, point: BaselineEvent
) -> npt.NDArray[np.bool_]:
    """Whether the event meets the condition, for some of its rows or for all."""
    low, high, motion = condition.low, condition.high, condition.motion
    if rows is not None:
        low, high = low[rows], high[rows]
    if motion is not None:
        if rows is not None:
            motion = Motion(motion.rate[rows], motion.amplitude[rows], motion.period_s[rows])
        shift = motion.shift(point.t)
        low, high = low + shift, high + shift
    value = point.values[condition.attribute]
    return (low <= value) & (value <= high)
