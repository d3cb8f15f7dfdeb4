"""Finding the matches of a pattern in a stream of events (Siena, 3.3).

Rules. (1) Events count in the order of their publication times, and in the order of arrival where
those are equal. (2) Only the next open step is looked for: an event that matches a step already
satisfied, or no step, is ignored. (3) Once a match is complete, matching starts again after its
last event. (4) With `within`, an attempt that can no longer be completed in time is dropped, and
matching continues from the event after its first one.

Theory of operation. Events may arrive out of order by up to ``lateness_s``. They wait in a heap
until the latest time seen is that far ahead of them (the watermark, in Spark's word): then no
earlier event can be in time any more, and an attempt takes them in order (attempts.py, rules 2 to
4). An event that arrives below the watermark is late: it is counted and handed to ``on_late``,
never used.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from tidegate.errors import BadValueError, EventError, LateEventsError
from tidegate.language.events import Event
from tidegate.language.filters import environment_of
from tidegate.language.patterns.attempts import Attempt
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.semantics import holds
from tidegate.language.values import to_time, to_us

Match = tuple[Event, ...]
"""The events that satisfied the steps of a pattern, in order."""

PENDING_MAX = 1_000_000
LATENESS_S_MAX = 1e12  # longer than timestamps span: as much as no limit


class SequenceMatcher:
    """Finds the matches of one pattern in the events it is fed with.

    `t` in the pattern's filters counts from ``since``; without it, `t` is 0.

    >>> from datetime import UTC
    >>> from tidegate.language.patterns.pattern import parse_pattern
    >>> matcher = SequenceMatcher(parse_pattern("x = 1 then x = 2"))
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> first = matcher.feed(Event.of({"x": 1}, at))
    >>> [event.attributes for event in matcher.feed(Event.of({"x": 2}, at))[0]]
    [{'x': 1}, {'x': 2}]
    """

    def __init__(
        self,
        pattern: Pattern,
        *,
        parameters: Mapping[str, object] | None = None,
        variables: Mapping[str, object] | None = None,
        since: datetime | None = None,
        lateness_s: float = 0.0,
        on_late: Callable[[Event], None] | None = None,
        pending_max: int = PENDING_MAX,
    ) -> None:
        self.late_count = 0
        self._pattern = pattern
        self._environment = environment_of(parameters, variables)
        self._since_us = None if since is None else to_us(to_time(since, "since"))
        if not 0 <= lateness_s <= LATENESS_S_MAX:
            raise BadValueError(f"lateness_s must lie between 0 and {LATENESS_S_MAX:.0f}")
        self._lateness_us = round(lateness_s * 1e6)
        self._on_late = on_late
        self._pending_max = pending_max
        self._pending: list[tuple[int, int, Event]] = []
        """A heap by time, then by arrival, which keeps rule 1 and never compares two events."""
        self._arrivals = 0
        self._latest_us: int | None = None
        self._attempt = Attempt[Event](len(pattern.steps), pattern.within_us, self._matches_step)

    def feed(self, event: Event) -> list[Match]:
        """Take one event; returns the matches that are complete now, in order."""
        if event.time is None:
            raise EventError("an event of a sequence needs its publication time")
        time_us = to_us(event.time)
        latest_us = time_us if self._latest_us is None else max(self._latest_us, time_us)
        watermark_us = latest_us - self._lateness_us
        if time_us < watermark_us:
            self.late_count += 1
            if self._on_late is not None:
                self._on_late(event)
            return []
        # An event that releases pending ones is always taken: it makes room for itself.
        first_us = min(time_us, self._pending[0][0]) if self._pending else time_us
        if len(self._pending) >= self._pending_max and first_us > watermark_us:
            raise LateEventsError(
                f"{self._pending_max} events wait for earlier ones; "
                "allow less lateness or a larger pending_max"
            )
        heapq.heappush(self._pending, (time_us, self._arrivals, event))
        self._arrivals += 1
        self._latest_us = latest_us
        return self._take_until(watermark_us)

    def flush(self) -> list[Match]:
        """Take all pending events, at the end of a stream; returns the matches they complete."""
        return self._take_until(None)

    def _take_until(self, watermark_us: int | None) -> list[Match]:
        """Take the pending events up to the watermark, all of them if it is None."""
        matches: list[Match] = []
        while self._pending and (watermark_us is None or self._pending[0][0] <= watermark_us):
            time_us, _, event = heapq.heappop(self._pending)
            completed = self._attempt.take(time_us, event)
            matches += [tuple(event for _, event in match) for match in completed]
        return matches

    def _matches_step(self, step: int, time_us: int, event: Event) -> bool:
        t = 0.0 if self._since_us is None else (time_us - self._since_us) / 1e6
        node = self._pattern.steps[step].node
        environment = replace(self._environment, t=t, now=event.time)
        return holds(node, event.attributes, environment)
