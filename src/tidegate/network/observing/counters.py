"""What a broker has counted since its start.

Nothing here is done for each event: a turn of the broker adds to a counter how many events it had,
and whoever wants to see the counters reads them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the buckets of a duration."""
EVENTS = (1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0)
"""Upper bounds of the buckets of a number of events."""


class Histogram:
    """How often a number was at most as large as each of some bounds.

    >>> histogram = Histogram((1.0, 10.0))
    >>> for number in (0.5, 3, 4, 200):
    ...     histogram.observe(number)
    >>> histogram.cumulative()
    [('1.0', 1), ('10.0', 3), ('+Inf', 4)]
    >>> histogram.sum, histogram.quantile(0.5)
    (207.5, 10.0)
    """

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, number: float) -> None:
        """Count a number."""
        self._counts[bisect_left(self._bounds, number)] += 1
        self.sum += number

    @property
    def count(self) -> int:
        """How many numbers were counted."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """Each bound, as Prometheus writes it, with how many numbers were not above it."""
        found, below = [], 0
        for bound, count in zip([*map(str, self._bounds), "+Inf"], self._counts, strict=True):
            below += count
            found.append((bound, below))
        return found

    def quantile(self, share: float) -> float | None:
        """The bound that so large a share of the numbers does not exceed; None without numbers.

        Infinite if that is above the last bound.
        """
        wanted, below = share * self.count, 0
        for bound, count in zip([*self._bounds, float("inf")], self._counts, strict=True):
            below += count
            if count and below >= wanted:
                return bound
        return None


@dataclass(slots=True)
class Counters:
    """What the broker has counted since its start."""

    connections: int = 0
    refused_connections: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    """By type."""
    refused_requests: int = 0
    published: int = 0
    """Events of clients."""
    notified: int = 0
    """Events of neighbours."""
    confirmed: int = 0
    """Events of clients that are on disk, and were confirmed."""
    refused: int = 0
    """Events of clients that were refused."""
    delivered: int = 0
    """Deliveries to clients: one for each event and client."""
    passed_on: Counter[str] = field(default_factory=Counter)
    """Events that were passed on, by neighbour."""
    missed: Counter[str] = field(default_factory=Counter)
    """Deliveries that were dropped, by the policy that dropped them."""
    dropped: int = 0
    """Events that were not confirmed, for neighbours that were not connected."""
    held_back: int = 0
    """How often publishers were held back because a subscriber blocks."""
    turns: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """The durations of turns that had something to do, in seconds."""
    turn_events: Histogram = field(default_factory=lambda: Histogram(EVENTS))
    """The events of turns that had some."""
    commits: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """How long turns waited for the store, in seconds."""
    stood_still_s: float = 0.0
    """How much later than planned the last round of housekeeping was."""
