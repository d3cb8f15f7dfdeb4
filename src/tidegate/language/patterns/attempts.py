"""An attempt at a match of a pattern: which events satisfy which steps (Siena, 3.3).

Rules 2 to 4 of `sequences.py` live here; rule 1, the order of events, is for the caller. What an
event is, and whether it satisfies a step, is for the caller too: a matcher in one process holds
whole events and evaluates filters, a pipeline holds what is left of an event when the filters have
been evaluated elsewhere.

Theory of operation. Without `within`, an attempt is the events that satisfied its first steps: it
only grows until it is a match. With `within` it may be dropped, and then the events behind its
first one are looked at anew; those that match some step are kept for that (``passed``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")
"""What stands for an event."""


class Attempt(Generic[E]):
    """Takes events in the order of their times, gives the matches that they complete.

    ``steps`` says how many there are, ``within`` how many microseconds a match may take, and
    ``matches_step(step, time_us, event)`` whether an event satisfies a step.

    >>> attempt = Attempt[str](2, None, lambda step, micros, event: event == "ab"[step])
    >>> [attempt.take(micros, event) for micros, event in enumerate("bacb")]
    [[], [], [], [((1, 'a'), (3, 'b'))]]
    """

    def __init__(
        self, steps: int, within: int | None, matches_step: Callable[[int, int, E], bool]
    ) -> None:
        self.satisfied: list[tuple[int, E]] = []
        """The events of the steps satisfied so far, with their times."""
        self.passed: list[tuple[int, E]] = []
        """With `within`: all behind the first of them that match some step."""
        self._steps = range(steps)
        self._within = within
        self._matches_step = matches_step

    def take(self, time_us: int, event: E) -> list[tuple[tuple[int, E], ...]]:
        """The next event in the order of time."""
        todo = [(time_us, event)]
        matches: list[tuple[tuple[int, E], ...]] = []
        while todo:
            time_us, event = todo.pop()
            if self.satisfied and self._within is not None:
                if time_us - self.satisfied[0][0] > self._within:
                    todo.append((time_us, event))
                    todo += reversed(self.passed)
                    self._begin_anew()
                    continue
                if not any(self._matches_step(step, time_us, event) for step in self._steps):
                    continue
                self.passed.append((time_us, event))
            if not self._matches_step(len(self.satisfied), time_us, event):
                continue
            self.satisfied.append((time_us, event))
            if len(self.satisfied) == len(self._steps):
                matches.append(tuple(self.satisfied))
                self._begin_anew()
        return matches

    def held(self) -> list[tuple[int, E]]:
        """The events that bring a fresh attempt to where this one is, if it takes them in order.

        >>> first = Attempt[str](3, 10, lambda step, micros, event: event == "abc"[step])
        >>> _ = [first.take(micros, event) for micros, event in enumerate("abxa")]
        >>> first.held()
        [(0, 'a'), (1, 'b'), (3, 'a')]
        """
        if self._within is None:
            return list(self.satisfied)
        return self.satisfied[:1] + self.passed

    def _begin_anew(self) -> None:
        self.satisfied = []
        self.passed = []
