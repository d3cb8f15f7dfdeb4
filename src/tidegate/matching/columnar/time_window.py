"""Stretches of time for which bounds that move are enclosed, and how long they should be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tidegate.matching.arrays import F64, I64, NO_TIME

FIRST_US = 1_000_000
LEAST_US, MOST_US = 1_000, 86_400_000_000
RATIO_MIN, RATIO_MAX = 0.5, 2.0


class EventTimes(NamedTuple):
    """The first and the last time of some events, in microseconds; and whether some have none.

    If none has one, the first is greater than the last.
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
    """From one time to another, both included, in microseconds; and what variables can be then.

    A ``timeless`` one also has events that come at no time, for which `t` is 0; if it has no
    others, ``begin`` is greater than ``end``. ``variables`` are two rows, the least and the most
    that each can be; the least is the greater one for a variable that has no value.
    """

    begin: int
    end: int
    timeless: bool
    variables: F64

    @classmethod
    def of(cls, times: EventTimes, variables: F64) -> TimeWindow:
        """The times of some events, and rows of values of variables, NaN for those unset."""
        unset = np.isnan(variables)
        least = np.where(unset, np.inf, variables).min(axis=0)
        most = np.where(unset, -np.inf, variables).max(axis=0)
        return cls(*times, np.array([least, most]))

    def as_json(self) -> list[Any]:
        """The stretch as JSON can hold it."""
        return [self.begin, self.end, self.timeless, self.variables.tolist()]

    @classmethod
    def of_json(cls, noted: list[Any]) -> TimeWindow:
        """A stretch that was written as JSON."""
        begin, end, timeless, variables = noted
        return cls(begin, end, timeless, np.array(variables, np.float64))

    @property
    def times(self) -> I64:
        """The stretch as the kernels take it."""
        return np.array([self.begin, self.end, self.timeless], np.int64)

    def includes(self, other: TimeWindow) -> bool:
        """Whether all times and all values of variables in another stretch are in this one."""
        if other.timeless and not self.timeless:
            return False
        if other.begin <= other.end and not (self.begin <= other.begin and other.end <= self.end):
            return False
        count = other.variables.shape[1]
        if count > self.variables.shape[1]:
            return False
        low, high = other.variables
        within = (low >= self.variables[0, :count]) & (high <= self.variables[1, :count])
        return bool(np.all(within | (low > high)))

    def extended(self, time_us: int) -> TimeWindow:
        """A longer stretch: onward by so many microseconds, and back by a part of them."""
        if self.begin > self.end:
            return self
        return replace(self, begin=self.begin - time_us // 8, end=self.end + time_us)

    def recalling(self, before: TimeWindow) -> TimeWindow:
        """The same times; variables may be as here, or as before, or between.

        Where a variable has left the room that it had, it gets twice as much: one that goes up all
        the time must not need another stretch each time.
        """
        count = max(self.variables.shape[1], before.variables.shape[1])
        (low, high), (old_low, old_high) = _widened(self, count), _widened(before, count)
        least, most = np.minimum(low, old_low), np.maximum(high, old_high)
        known = (low <= high) & (old_low <= old_high)
        with np.errstate(invalid="ignore", over="ignore"):
            room = np.where(known, most - least, 0.0)
            room[~np.isfinite(room)] = 0.0
            least = np.where(low < old_low, least - room, least)
            most = np.where(high > old_high, most + room, most)
        return replace(self, variables=np.array([least, most]))

    def with_room_for(self, variables: int) -> TimeWindow:
        """The same stretch for so many variables or more; those that are new have no value."""
        count = max(variables, self.variables.shape[1])
        return replace(self, variables=_widened(self, count))

    def joined(self, other: TimeWindow) -> TimeWindow:
        """Both stretches and all between them."""
        if self.begin > self.end:
            begin, end = other.begin, other.end
        elif other.begin > other.end:
            begin, end = self.begin, self.end
        else:
            begin, end = min(self.begin, other.begin), max(self.end, other.end)
        timeless = self.timeless or other.timeless
        return replace(self.recalling(other), begin=begin, end=end, timeless=timeless)


def _widened(stretch: TimeWindow, count: int) -> F64:
    """The variables of a stretch, and some more that have no value."""
    more = count - stretch.variables.shape[1]
    return np.hstack([stretch.variables, np.repeat([[np.inf], [-np.inf]], more, axis=1)])


class WindowLength:
    """How far ahead of the events a stretch reaches.

    Enclosing costs the same for any stretch: a long one needs it less often, but leaves more pairs
    unsure, whose functions have to be evaluated. The two together cost the least where they cost
    the same. So the length is doubled or halved until enclosing takes neither half as long as
    evaluating nor twice as long.
    """

    def __init__(self) -> None:
        self._length_us = FIRST_US
        self._evaluating_s = 0.0

    @property
    def length_us(self) -> int:
        """How far ahead, in microseconds."""
        return self._length_us

    def has_evaluated(self, seconds: float) -> None:
        """Take note of time that went into evaluating functions."""
        self._evaluating_s += seconds

    def has_enclosed(self, seconds: float) -> None:
        """Take note of time that went into enclosing, and see whether that is too much."""
        if seconds > RATIO_MAX * self._evaluating_s:
            self._length_us = min(2 * self._length_us, MOST_US)
        elif seconds < RATIO_MIN * self._evaluating_s:
            self._length_us = max(self._length_us // 2, LEAST_US)
        self._evaluating_s = 0.0
