"""An attempt at a match of a pattern: which events satisfy which steps (Siena, 3.3).

Rules 2 to 4 of sequence_matcher.py live here; rule 1, the order of events, is up to the caller. So
is what an event is, and whether it satisfies a step: a matcher in one process has whole events and
evaluates filters; a pipeline on Spark has the columns that its result shows, of events whose
filters were evaluated elsewhere.

Theory of operation. Without `within`, an attempt is the list of events that satisfied its first
steps: it only grows until it is a match. With `within` it may time out; then matching restarts from
the event after its first one. For that, events that match some step are kept (``passed``); an event
that matches no step can be forgotten at once, because no restart would use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")
"""The caller's representation of an event."""


class Attempt(Generic[E]):
    """Takes events in the order of their times, returns the matches that they complete.

    ``steps`` is the number of steps, ``within_us`` bounds the duration of a match, and
    ``matches_step(step, time_us, event)`` returns whether an event satisfies a step.

    >>> attempt = Attempt[str](2, None, lambda step, time_us, event: event == "ab"[step])
    >>> [attempt.take(time_us, event) for time_us, event in enumerate("bacb")]
    [[], [], [], [((1, 'a'), (3, 'b'))]]
    """

    def __init__(
        self, steps: int, within_us: int | None, matches_step: Callable[[int, int, E], bool]
    ) -> None:
        self.satisfied: list[tuple[int, E]] = []
        """The events of the steps satisfied so far, with their times."""
        self.passed: list[tuple[int, E]] = []
        """With `within`: the events after the first of them that match some step."""
        self._steps = range(steps)
        self._within_us = within_us
        self._matches_step = matches_step

    def take(self, time_us: int, event: E) -> list[tuple[tuple[int, E], ...]]:
        """Take the next event in the order of time; returns the matches it completes.

        One event can complete several: when it times out an attempt, the events after its first
        one are taken again, and may match by themselves.
        """
        # A stack: the events of a restart go on top of it in reverse, before the new event.
        todo = [(time_us, event)]
        matches: list[tuple[tuple[int, E], ...]] = []
        while todo:
            time_us, event = todo.pop()
            if self.satisfied and self._within_us is not None:
                if time_us - self.satisfied[0][0] > self._within_us:
                    todo.append((time_us, event))
                    todo += reversed(self.passed)
                    self._restart()
                    continue
                if not any(self._matches_step(step, time_us, event) for step in self._steps):
                    continue
                self.passed.append((time_us, event))
            if not self._matches_step(len(self.satisfied), time_us, event):
                continue
            self.satisfied.append((time_us, event))
            if len(self.satisfied) == len(self._steps):
                matches.append(tuple(self.satisfied))
                self._restart()
        return matches

    def events_to_replay(self) -> list[tuple[int, E]]:
        """The events that bring a new attempt to the state of this one, taken in this order.

        They are all the state that has to be stored between the micro-batches of a stream.

        >>> first = Attempt[str](3, 10, lambda step, time_us, event: event == "abc"[step])
        >>> _ = [first.take(time_us, event) for time_us, event in enumerate("abxa")]
        >>> first.events_to_replay()
        [(0, 'a'), (1, 'b'), (3, 'a')]
        """
        if self._within_us is None:
            return list(self.satisfied)
        return self.satisfied[:1] + self.passed

    def _restart(self) -> None:
        self.satisfied = []
        self.passed = []
