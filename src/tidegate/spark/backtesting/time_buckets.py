"""Time buckets: equal spans of history, for which a backtest counts deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from tidegate.errors import BadValueError
from tidegate.language.durations import format_duration, parse_duration
from tidegate.language.values import from_us

BUCKETS_MAX = 10_000
CHOSEN_MAX = 60
"""About the largest number of buckets if their width is not given: a sparkline of one line."""

_MICROSECOND = timedelta(microseconds=1)
_ROUND_WIDTHS = [
    "1 ms", "5 ms", "10 ms", "50 ms", "100 ms", "500 ms", "1 s", "5 s", "10 s", "30 s", "1 min",
    "5 min", "10 min", "30 min", "1 h", "3 h", "6 h", "12 h", "1 d", "7 d", "30 d", "365 d",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimeBuckets:
    """Consecutive spans of equal width, which begin at whole multiples of it since 1970."""

    width_us: int
    first: int
    """The number of the first bucket, counted from 1970."""
    count: int

    @classmethod
    def over(cls, first_us: int, last_us: int, every: timedelta | None) -> TimeBuckets:
        """The buckets from one time to another, inclusive; ``every`` is their width."""
        if every is None:
            every = _chosen_width(last_us - first_us)
        width = every // _MICROSECOND
        if width < 1:
            raise BadValueError("a bucket must be wider than 0; give `every` as in 5m")
        # Floor division, which is right for times before 1970 too.
        first, last = first_us // width, last_us // width
        count = last - first + 1
        if count > BUCKETS_MAX:
            raise BadValueError(
                f"there would be {count:,} buckets of {format_duration(every)}, "
                f"and at most {BUCKETS_MAX:,} are counted; take wider ones"
            )
        return cls(width, first, count)

    @property
    def width(self) -> timedelta:
        """The width of a bucket."""
        return self.width_us * _MICROSECOND

    def indexes(self, times_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The index of the bucket of each time, from 0."""
        indexes: npt.NDArray[np.int64] = times_us // self.width_us - self.first
        return indexes

    def begin(self, index: int) -> datetime:
        """The time at which a bucket begins; not before the year 1, where timestamps begin."""
        return from_us((self.first + index) * self.width_us) or datetime.min.replace(tzinfo=UTC)


def _chosen_width(span_us: int) -> timedelta:
    widths = [parse_duration(each) for each in _ROUND_WIDTHS]
    wide_enough = (each for each in widths if span_us < each // _MICROSECOND * CHOSEN_MAX)
    return next(wide_enough, span_us * _MICROSECOND / CHOSEN_MAX)
