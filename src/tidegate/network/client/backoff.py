"""How long to wait before the next attempt to connect."""

from __future__ import annotations

from random import Random

FIRST_S = 0.05
LONGEST_S = 10.0


class Backoff:
    """Delays that double, each with up to half of it taken off at random.

    So clients that have lost a broker together do not all come back at the same moment.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._next_s = FIRST_S

    def reset(self) -> None:
        """Begin with short delays again, after a success."""
        self._next_s = FIRST_S

    def delay_s(self, least_s: float = 0.0) -> float:
        """The next delay; at least what the broker has asked for."""
        delay_s = self._next_s * (1 - self._random.random() / 2)
        self._next_s = min(LONGEST_S, 2 * self._next_s)
        return max(delay_s, least_s)
