"""Dead reckoning: brokers hold where a value will be, and hear of it only when that is wrong.

Rules. (1) Whenever an event is judged, the value that the subscriber last assigned lies within the
band that was sent, as floats compute its bounds. (2) A band is sent only where rule 1 asks for it.

Theory of operation. A band is two lines, `low + rate * t` and `high + rate * t`, a tolerance below
and above the predicted value: first-order prediction, as in Pantel and Wolf, "On the suitability of
dead reckoning schemes for games". Its rate is that of the line through the newest report which
comes closest to the earlier ones for the longest time back; so noise evens out, and what was before
a turn does not count. Between reports the value stands still while the band moves on, and may come
to lie outside: ``stretch`` says until when it does not, and ``renew`` makes a band that rests.
So moving bands pay off only for values that are reported often; for the others the rate is 0.

Damping is dead reckoning of values that rest: the band never moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidegate.subscribers.connection import ALWAYS, TimeSpan

REPORTS_MAX = 32
_T_MAX = 1e12  # seconds


@dataclass(frozen=True, slots=True)
class Band:
    """Where a value is said to be: from `low + rate * t` to `high + rate * t`."""

    low: float
    high: float
    rate: float = 0.0

    @classmethod
    def resting(cls, value: float, tolerance: float) -> Band:
        """The band around a value that does not move."""
        low, high = float(value) - tolerance, float(value) + tolerance
        if low > value:  # a long integer is not always a float
            low = math.nextafter(low, -math.inf)
        if high < value:
            high = math.nextafter(high, math.inf)
        return cls(low, high)

    def holds(self, value: float, t: float) -> bool:
        """Whether a value lies within the band at a time."""
        moved = self.rate * t
        return self.low + moved <= value <= self.high + moved

    def stretch(self, value: float, t: float) -> TimeSpan:
        """A stretch of time around ``t`` in which the band holds a value that it holds then.

        Rounding keeps order, so what is true at both ends is true in between.
        """
        if not self.rate:
            return ALWAYS
        ends = sorted([(value - self.high) / self.rate, (value - self.low) / self.rate])
        low, high = (self._near(t, end, value) for end in ends)
        return min(low, t), max(high, t)

    def _near(self, t: float, end: float, value: float) -> float:
        """An end of the stretch, brought closer where rounding put it too far."""
        distance = min(max(end, -_T_MAX), _T_MAX) - t
        while not self.holds(value, t + distance):
            distance /= 2  # at last it is 0
        return t + distance


class Track:
    """What is known of one value: its newest reports, and the band that was sent for it."""

    def __init__(self, tolerance: float, *, moves: bool) -> None:
        self.band: Band | None = None
        self._tolerance = tolerance
        self._moves = moves
        self._reports: list[tuple[float, float]] = []
        self._value: float | None = None
        self._span = ALWAYS

    @property
    def span(self) -> TimeSpan:
        """From when to when the band holds the value, if no other is reported."""
        return self._span

    def report(self, value: float | None, t: float) -> bool:
        """Take in a value, or that there is none; says whether there is a new band to send."""
        before, self._value = self.band, value
        if value is None:
            self._reports.clear()
            self.band, self._span = None, ALWAYS
            return before is not None
        if self._moves:
            self._note(value, t)
        if before is None or not before.holds(value, t):
            self.band = self._band(value, t)
        return self._settled(before, t)

    def renew(self, t: float) -> bool:
        """Make the band hold the value at a time; says whether there is a new one to send."""
        before = self.band
        if before is not None and self._value is not None and not before.holds(self._value, t):
            self.band = Band.resting(self._value, self._tolerance)
        return self._settled(before, t)

    def _settled(self, before: Band | None, t: float) -> bool:
        if self.band is not None and self._value is not None:
            self._span = self.band.stretch(self._value, t)
        return self.band is not before

    def _note(self, value: float, t: float) -> None:
        """Remember a report, and of the older half of them every other one."""
        if self._reports and t <= self._reports[-1][0]:
            again = t == self._reports[-1][0]
            self._reports = self._reports[:-1] if again else []  # or the clock was set back
        self._reports.append((t, float(value)))
        if len(self._reports) > REPORTS_MAX:
            half = REPORTS_MAX // 2
            self._reports = self._reports[:half:2] + self._reports[half:]

    def _band(self, value: float, t: float) -> Band:
        rate = self._rate()
        moved = rate * t
        low, high = value - self._tolerance - moved, value + self._tolerance - moved
        moving = Band(low, high, rate)
        if rate and moving.holds(value, t):
            return moving
        return Band.resting(value, self._tolerance)

    def _rate(self) -> float:
        """The slope that goes best with the newest reports; 0 if the value is better held still.

        A value that moves more than the tolerance from one report to the next would be outside of
        a moving band before the next one comes.
        """
        if len(self._reports) < 2:
            return 0.0
        (now, value), earlier = self._reports[-1], self._reports[:-1]
        gap = now - earlier[-1][0]
        slopes = [0.0, *((value - other) / (now - then) for then, other in earlier)]
        slow = [slope for slope in slopes if abs(slope) * gap <= self._tolerance]
        return max(slow, key=self._reaches_back)

    def _reaches_back(self, slope: float) -> float:
        """For how long the reports were near the line with this slope through the newest one."""
        now, value = self._reports[-1]
        since = now
        for then, other in reversed(self._reports):
            if not abs(value + slope * (then - now) - other) <= self._tolerance / 2:
                break
            since = then
        return now - since
