"""Buckets of time: history cut into equal stretches, in which things are counted."""

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
"""At most about so many buckets there are where nobody says how wide they are: they fit a line."""

_MICROSECOND = timedelta(microseconds=1)
_ROUND_WIDTHS = [
    "1 ms", "5 ms", "10 ms", "50 ms", "100 ms", "500 ms", "1 s", "5 s", "10 s", "30 s", "1 min",
    "5 min", "10 min", "30 min", "1 h", "3 h", "6 h", "12 h", "1 d", "7 d", "30 d", "365 d",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Buckets:
    """Stretches of equal width, one after the other; they begin at whole multiples since 1970."""

    width_us: int
    first: int
    """The number of the first one, counted from 1970."""
    count: int

    @classmethod
    def over(cls, first_us: int, last_us: int, every: timedelta | None) -> Buckets:
        """Those that reach from one time to another, inclusive."""
        if every is None:
            every = _chosen_width(last_us - first_us)
        width = every // _MICROSECOND
        if width < 1:
            raise BadValueError("a bucket must be wider than nothing; write `every` as 5m")
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
        """How long each is."""
        return self.width_us * _MICROSECOND

    def places(self, times_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The bucket that each time falls into, from 0."""
        found: npt.NDArray[np.int64] = times_us // self.width_us - self.first
        return found

    def begin(self, place: int) -> datetime:
        """When a bucket begins; the first of all may begin before timestamps do."""
        return from_us((self.first + place) * self.width_us) or datetime.min.replace(tzinfo=UTC)


def _chosen_width(span_us: int) -> timedelta:
    widths = [parse_duration(each) for each in _ROUND_WIDTHS]
    wide_enough = (each for each in widths if span_us < each // _MICROSECOND * CHOSEN_MAX)
    return next(wide_enough, span_us * _MICROSECOND / CHOSEN_MAX)
