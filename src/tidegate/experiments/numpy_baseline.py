"""The baseline: matching by brute force in NumPy.

The bounds of all subscriptions are columns, a pair for each attribute. An event is compared with
the whole first pair of columns, then with the next pair for the rows that are left, and so on. It
serves twice: speeds from a noisy machine are reported as a ratio to the baseline of the same run,
and the answers of an engine are checked against its answers.
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
"""Ranges that a smaller share of the subscriptions has are compared for those rows only."""


@dataclass(frozen=True, slots=True)
class BaselineEvent:
    """An event as numbers, strings as codes; ``t`` is in seconds since the subscriptions began."""

    values: Mapping[str, float]
    t: float = 0.0


class NumpyBaseline:
    """Finds matches by comparing an event with columns of bounds."""

    def __init__(self, count: int, conditions: Sequence[AttributeRange]) -> None:
        rows_min = SPARSE_SHARE * count
        self._count = count
        self._full = [_spread(each, count) for each in conditions if len(each.rows) >= rows_min]
        self._sparse = [each for each in conditions if len(each.rows) < rows_min]
        self._names = {each.attribute: each.names for each in conditions if each.names}

    def baseline_events(self, events: pa.Table) -> Iterator[BaselineEvent]:
        """The events of a table, in the form that `match` takes."""
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

    def match(self, event: BaselineEvent) -> I64:
        """The row numbers of the subscriptions that match, ascending."""
        rows = np.arange(self._count) if not self._full else None
        for condition in self._full:
            inside = _inside(condition, rows, event)
            rows = np.flatnonzero(inside) if rows is None else rows[inside]
        assert rows is not None
        if not self._sparse:
            return rows
        matches = np.ones(self._count, np.bool_)
        for condition in self._sparse:
            matches[condition.rows] &= _inside(condition, None, event)
        return rows[matches[rows]]

    def update(self, rows: I64, least: I64) -> None:
        """Set the parameter of some subscriptions; the last value of a row wins."""
        for condition in self._full:
            if condition.parameter is not None:
                condition.low[rows] = least + 1  # `> least` over integers, as a closed range


def _spread(condition: AttributeRange, count: int) -> AttributeRange:
    """The range as columns over all subscriptions; rows without it accept any value."""

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
    condition: AttributeRange, rows: I64 | None, event: BaselineEvent
) -> npt.NDArray[np.bool_]:
    """Whether each of the given rows of the condition, or each row of all, accepts the event."""
    low, high, motion = condition.low, condition.high, condition.motion
    if rows is not None:
        low, high = low[rows], high[rows]
    if motion is not None:
        if rows is not None:
            motion = Motion(motion.rate[rows], motion.amplitude[rows], motion.period_s[rows])
        shift = motion.shift(event.t)
        low, high = low + shift, high + shift
    value = event.values[condition.attribute]
    return (low <= value) & (value <= high)
