"""Time windows: the spans of event time for which moving bounds are enclosed, and their length.

A moving bound (a function of time or of the broker's variables) is enclosed for a window: an
envelope that holds for every time and every value of a variable inside of it (see
kernels/envelopes.py). An event outside of the window needs another one first.

All times are microseconds since 1970. Windows are closed: begin and end belong to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tidegate.matching.arrays import F64, I64, NO_TIME

FIRST_US = 1_000_000
LEAST_US, MOST_US = 1_000, 86_400_000_000
"""Length of the first window, of the shortest and of the longest."""

RATIO_MIN, RATIO_MAX = 0.5, 2.0
"""Enclosing should take between half and twice the time of evaluating."""


class EventTimes(NamedTuple):
    """The first and the last time of some events, and whether some events have no time.

    If none has a time, ``begin`` is greater than ``end``.
    """

    begin: int
    end: int
    timeless: bool

    @classmethod
    def of(cls, times_us: I64) -> EventTimes:
        """The times of events, NO_TIME for those that have none."""
        known = times_us[times_us != NO_TIME]
        if not len(known):
            return NO_TIMES
        return cls(int(known.min()), int(known.max()), len(known) < len(times_us))

    @classmethod
    def at(cls, time_us: int | None) -> EventTimes:
        """The time of one event."""
        return NO_TIMES if time_us is None else cls(time_us, time_us, False)


NO_TIMES = EventTimes(0, -1, True)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A closed interval of event time, and the range of each variable of the broker during it.

    A ``timeless`` window also covers events without a time, for which `t` is 0; if it covers no
    others, ``begin`` is greater than ``end``. ``variables`` are two rows, the least and the
    greatest value of each variable; for one without a value the least is the greater one.
    """

    begin: int
    end: int
    timeless: bool
    variables: F64

    @classmethod
    def of(cls, times: EventTimes, variables: F64) -> TimeWindow:
        """The smallest window for some events; ``variables`` are rows of values, NaN if unset."""
        unset = np.isnan(variables)
        least = np.where(unset, np.inf, variables).min(axis=0)
        most = np.where(unset, -np.inf, variables).max(axis=0)
        return cls(*times, np.array([least, most]))

    def as_json(self) -> list[Any]:
        """The window as values that JSON can hold."""
        return [self.begin, self.end, self.timeless, self.variables.tolist()]

    @classmethod
    def of_json(cls, values: list[Any]) -> TimeWindow:
        """The window that ``as_json`` returned."""
        begin, end, timeless, variables = values
        return cls(begin, end, timeless, np.array(variables, np.float64))

    @property
    def times(self) -> I64:
        """Begin, end and timeless, as the kernels take them."""
        return np.array([self.begin, self.end, self.timeless], np.int64)

    def includes(self, other: TimeWindow) -> bool:
        """Whether all times and all values of variables of another window lie in this one."""
        if other.timeless and not self.timeless:
            return False
        if other.begin <= other.end and not (self.begin <= other.begin and other.end <= self.end):
            return False
        count = other.variables.shape[1]
        if count > self.variables.shape[1]:
            return False  # even if the new ones are unset: the kernels need a column for each
        low, high = other.variables
        within = (low >= self.variables[0, :count]) & (high <= self.variables[1, :count])
        # A variable without a value needs no range: what is computed from it is undefined.
        return bool(np.all(within | (low > high)))

    def extended(self, time_us: int) -> TimeWindow:
        """The window made longer: ``time_us`` into the future and an eighth of it into the past.

        Events come roughly in order of time, so most of the extension lies ahead.
        """
        if self.begin > self.end:
            return self
        return replace(self, begin=self.begin - time_us // 8, end=self.end + time_us)

    def recalling(self, before: TimeWindow) -> TimeWindow:
        """The same times, with variables that range over their values here and before.

        Where a variable has left its range, the range is extended by its whole length on that side:
        a variable that rises with every event must not need another window each time.
        """
        count = max(self.variables.shape[1], before.variables.shape[1])
        (low, high), (old_low, old_high) = _padded(self, count), _padded(before, count)
        least, most = np.minimum(low, old_low), np.maximum(high, old_high)
        known = (low <= high) & (old_low <= old_high)
        with np.errstate(invalid="ignore", over="ignore"):
            length = np.where(known, most - least, 0.0)
            length[~np.isfinite(length)] = 0.0  # inf - inf, or a range that overflows
            least = np.where(low < old_low, least - length, least)
            most = np.where(high > old_high, most + length, most)
        return replace(self, variables=np.array([least, most]))

    def with_columns_for(self, variables: int) -> TimeWindow:
        """The same window with columns for at least this many variables; new ones are unset."""
        count = max(variables, self.variables.shape[1])
        return replace(self, variables=_padded(self, count))

    def hull(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that includes both."""
        if self.begin > self.end:
            begin, end = other.begin, other.end
        elif other.begin > other.end:
            begin, end = self.begin, self.end
        else:
            begin, end = min(self.begin, other.begin), max(self.end, other.end)
        count = max(self.variables.shape[1], other.variables.shape[1])
        (low, high), (other_low, other_high) = _padded(self, count), _padded(other, count)
        variables = np.array([np.minimum(low, other_low), np.maximum(high, other_high)])
        return TimeWindow(begin, end, self.timeless or other.timeless, variables)

    def common(self, other: TimeWindow) -> TimeWindow:
        """What both windows have; it includes no time if they have none in common."""
        count = max(self.variables.shape[1], other.variables.shape[1])
        (low, high), (other_low, other_high) = _padded(self, count), _padded(other, count)
        variables = np.array([np.maximum(low, other_low), np.minimum(high, other_high)])
        begin, end = max(self.begin, other.begin), min(self.end, other.end)
        return TimeWindow(begin, end, self.timeless and other.timeless, variables)

    def joined(self, other: TimeWindow) -> TimeWindow:
        """As ``hull``, with variables as in ``recalling``."""
        return replace(self.hull(other), variables=self.recalling(other).variables)


def _padded(window: TimeWindow, count: int) -> F64:
    """The variables of a window and, up to ``count``, some without a value."""
    more = count - window.variables.shape[1]
    return np.hstack([window.variables, np.repeat([[np.inf], [-np.inf]], more, axis=1)])


class WindowLength:
    """How far ahead of the events a time window should reach.

    Enclosing costs the same for any window: a long one is needed less often, but its wide envelopes
    leave more pairs unsure, whose functions have to be evaluated. The sum of both costs is least
    where they are equal. So the length is doubled or halved until enclosing takes between half
    and twice as long as the evaluating since the last time.

    Matches report their times while other threads do, without a lock: a lost update only means a
    length that is a little off, never a wrong answer.
    """

    def __init__(self) -> None:
        self._length_us = FIRST_US
        self._evaluating_s = 0.0

    @property
    def length_us(self) -> int:
        """The length for the next window."""
        return self._length_us

    def has_evaluated(self, seconds: float) -> None:
        """Add time that was spent on evaluating functions."""
        self._evaluating_s += seconds

    def has_enclosed(self, seconds: float) -> None:
        """Adapt the length to the time that enclosing took."""
        if seconds > RATIO_MAX * self._evaluating_s:
            self._length_us = min(2 * self._length_us, MOST_US)
        elif seconds < RATIO_MIN * self._evaluating_s:
            self._length_us = max(self._length_us // 2, LEAST_US)
        self._evaluating_s = 0.0
