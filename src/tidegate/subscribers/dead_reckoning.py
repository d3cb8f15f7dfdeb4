"""Dead reckoning: the band in which a value is predicted to be, renewed when the value leaves it.

Rules. (1) Whenever an event is matched, the value that the subscriber last assigned lies within the
band that was sent, by the same float arithmetic with which filters compute its bounds. (2) A new
band is sent only where rule 1 requires it.

Theory of operation. A band is bounded by two parallel lines, `low + rate * t` and
`high + rate * t`, one tolerance below and above the predicted value: first-order prediction, as in
Pantel and Wolf, "On the suitability of dead reckoning schemes for games". The rate is the slope of
the line through the newest report that stays close to earlier reports for the longest time back. So
noise evens out, and reports from before a turn do not count.

Between two reports the value is constant while the band moves on, so it may leave the value behind.
``Band.span_containing`` computes until when it does not, and ``Track.renew`` then replaces it by a
band that does not move. So moving bands pay off only for values that are reported often; for the
others the rate is 0.

Damping is dead reckoning with a rate that is always 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidegate.subscribers.connection import ALWAYS, TimeSpan

REPORTS_MAX = 32
_T_MAX = 1e12  # seconds; keeps the ends of a span finite where the rate is tiny


@dataclass(frozen=True, slots=True)
class Band:
    """The values from `low + rate * t` to `high + rate * t`."""

    low: float
    high: float
    rate: float = 0.0

    @classmethod
    def static(cls, value: float, tolerance: float) -> Band:
        """The band around a value that does not move."""
        low, high = float(value) - tolerance, float(value) + tolerance
        # float() of an integer beyond 2**53 may round past it by more than the tolerance.
        if low > value:
            low = math.nextafter(low, -math.inf)
        if high < value:
            high = math.nextafter(high, math.inf)
        return cls(low, high)

    def contains(self, value: float, t: float) -> bool:
        """Whether a value lies within the band at ``t``."""
        # The very expression that a widened filter evaluates, `:low + :rate * t`, so that both
        # round alike (rule 1).
        moved = self.rate * t
        return self.low + moved <= value <= self.high + moved

    def span_containing(self, value: float, t: float) -> TimeSpan:
        """A span of time around ``t`` in which the band contains a value that it contains at ``t``.

        Rounding is monotonic, so if the value is contained at both ends, it is in between.
        """
        if not self.rate:
            return ALWAYS
        ends = sorted([(value - self.high) / self.rate, (value - self.low) / self.rate])
        start, end = (self._containing_end(t, each, value) for each in ends)
        return min(start, t), max(end, t)

    def _containing_end(self, t: float, end: float, value: float) -> float:
        """An end of the span, moved towards ``t`` if rounding put it outside."""
        # Halving the distance from `t`, and not the number itself, ends: at last it is 0, and the
        # band contains the value at `t`.
        distance = min(max(end, -_T_MAX), _T_MAX) - t
        while not self.contains(value, t + distance):
            distance /= 2
        return t + distance


class ReportHistory:
    """The newest reports of a value, thinned out the older they are."""

    def __init__(self) -> None:
        self._reports: list[tuple[float, float]] = []  # (t, value), oldest first

    def __len__(self) -> int:
        return len(self._reports)

    def clear(self) -> None:
        """Forget all reports."""
        self._reports.clear()

    def add(self, value: float, t: float) -> None:
        """Add a report; of two at one time the later counts."""
        if self._reports and t <= self._reports[-1][0]:
            is_same_time = t == self._reports[-1][0]
            # Otherwise the clock was set back, and the times of older reports mean nothing.
            self._reports = self._reports[:-1] if is_same_time else []
        self._reports.append((t, float(value)))
        if len(self) > REPORTS_MAX:
            # Dropping every other report of the older half keeps the list short and lets it reach
            # back to the last turn, however long ago that was.
            half = REPORTS_MAX // 2
            self._reports = self._reports[:half:2] + self._reports[half:]

    def rate(self, tolerance: float) -> float:
        """The slope of the prediction, per second; 0 if a band that does not move is better.

        A value that changes by more than the tolerance from one report to the next would leave a
        moving band before the next report comes.
        """
        if len(self) < 2:
            return 0.0
        (now, value), earlier = self._reports[-1], self._reports[:-1]
        gap = now - earlier[-1][0]
        slopes = [0.0, *((value - other) / (now - then) for then, other in earlier)]
        slow = [slope for slope in slopes if abs(slope) * gap <= tolerance]
        return max(slow, key=lambda slope: self._fits_for(slope, tolerance))

    def _fits_for(self, slope: float, tolerance: float) -> float:
        """How long back all reports are near the line with this slope through the newest one."""
        now, value = self._reports[-1]
        since = now
        for then, other in reversed(self._reports):
            # `not <=` rather than `>`: a difference that overflows to NaN does not fit.
            if not abs(value + slope * (then - now) - other) <= tolerance / 2:
                break
            since = then
        return now - since


class Track:
    """One value with the band that was last sent for it; ``predicts`` if the band may move."""

    def __init__(self, tolerance: float, *, predicts: bool) -> None:
        self.band: Band | None = None
        """None while there is no value."""
        self.span = ALWAYS
        """The span of time in which the band contains the value, if no other is reported."""
        self._tolerance = tolerance
        self._predicts = predicts
        self._history = ReportHistory()
        self._value: float | None = None

    def report(self, value: float | None, t: float) -> bool:
        """Take a value, or None if it was removed; returns whether a new band is to be sent."""
        before, self._value = self.band, value
        if value is None:
            self._history.clear()
            self.band, self.span = None, ALWAYS
            return before is not None
        if self._predicts:
            self._history.add(value, t)
        if before is None or not before.contains(value, t):
            self.band = self._new_band(value, t)
        return self._has_new_band(before, t)

    def renew(self, t: float) -> bool:
        """Make the band contain the value at ``t``; returns whether a new band is to be sent."""
        before = self.band
        if before is not None and self._value is not None and not before.contains(self._value, t):
            self.band = Band.static(self._value, self._tolerance)
        return self._has_new_band(before, t)

    def _has_new_band(self, before: Band | None, t: float) -> bool:
        """Bring the span up to date; returns whether the band is another than before."""
        if self.band is not None and self._value is not None:
            self.span = self.band.span_containing(self._value, t)
        return self.band is not before

    def _new_band(self, value: float, t: float) -> Band:
        rate = self._history.rate(self._tolerance)
        moved = rate * t
        low, high = value - self._tolerance - moved, value + self._tolerance - moved
        moving = Band(low, high, rate)
        # For a large `t`, rounding may leave the value outside of its own moving band.
        if rate and moving.contains(value, t):
            return moving
        return Band.static(value, self._tolerance)
