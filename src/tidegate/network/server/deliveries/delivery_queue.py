"""Deliveries on their way to one client: those that its credit allows go out, the others wait.

A client that does not take its deliveries gets its slow policy once too many wait: the oldest or
the newest are dropped, or all but the last of each key, or the connection ends; with `block` its
publishers wait for a while (see `blocking`). What was dropped is counted, and the client is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from tidegate.matching.arrays import I64
from tidegate.network.wire.deliveries import Deliver, DeliverSequence
from tidegate.network.wire.handshake import Hello, SlowPolicy

Batch = Deliver | DeliverSequence
Send = Callable[[Batch], None]


class DeliveryQueue:
    """The deliveries that wait in memory for one client."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.overrun_max = 0
        """With `block`: how many more may wait, because they came before publishers could stop."""
        self.is_patient = True
        """With `block`: whether publishers may be made to wait."""
        self.policy: SlowPolicy = "drop-oldest"
        self.key: str | None = None
        self.missed = 0
        """How many deliveries were dropped of which the client was not told yet."""
        self.missed_total = 0
        """How many deliveries were dropped since the session began."""
        self.must_disconnect = False
        """Whether the policy ends the connection."""
        self.is_held = False
        """Whether what waits has to wait longer, because a replay comes first."""
        self._waiting: deque[Batch] = deque()
        self._events = 0
        self._credit_events = self._credit_bytes = 0

    def __len__(self) -> int:
        """The number of events that wait."""
        return self._events

    def connected(self, hello: Hello) -> None:
        """Begin with the credit and the policy of a new connection."""
        self._credit_events, self._credit_bytes = hello.credit_events, hello.credit_bytes
        self._given = (hello.credit_events, hello.credit_bytes)
        self.policy, self.key = hello.slow_policy, hello.slow_key
        if hello.queue_max:
            self.events_max = min(self.events_max, hello.queue_max)
        self.must_disconnect = False

    def disconnected(self) -> None:
        """Send nothing until there is a new connection."""
        self._credit_events = self._credit_bytes = 0

    def grant(self, events: int, bytes: int) -> None:
        """Take new totals of credit; they never fall."""
        self._credit_events += max(0, events - self._given[0])
        self._credit_bytes += max(0, bytes - self._given[1])
        self._given = (max(events, self._given[0]), max(bytes, self._given[1]))

    @property
    def has_credit(self) -> bool:
        """Whether another event that waits may be sent now."""
        return self.has_credit_at_all and not self.is_held

    @property
    def has_credit_at_all(self) -> bool:
        """Whether another event may be sent now, also one of a replay."""
        return self._credit_events > 0 and self._credit_bytes > 0

    @property
    def credit_events(self) -> int:
        """How many events may be sent now, if their bytes allow it."""
        return self._credit_events if self.has_credit else 0

    def takes_at_once(self, events: int, bytes: int) -> bool:
        """Whether so many events can be sent now, ahead of none that wait."""
        if self._waiting or self.is_held:
            return False
        return events <= self._credit_events and bytes <= self._credit_bytes

    def sent_at_once(self, events: int, bytes: int) -> None:
        """Take the credit for events that were sent without waiting here."""
        self._credit_events -= events
        self._credit_bytes -= bytes

    def add(self, batch: Batch) -> None:
        """Append deliveries; some are dropped if too many wait then."""
        self._waiting.append(batch)
        self._events += len(batch)

    def take_all(self) -> list[Batch]:
        """Remove all that waits, and return it."""
        waiting = list(self._waiting)
        self.clear()
        return waiting

    def clear(self) -> None:
        """Remove all that waits."""
        self._waiting.clear()
        self._events = 0

    def send(self, send: Send) -> None:
        """Send what credit allows."""
        while self._waiting and self.has_credit:
            batch = self._waiting.popleft()
            if isinstance(batch, Deliver):
                allowed = self._allowed(batch.publications.events.sizes)
                if allowed < len(batch):
                    self._waiting.appendleft(batch.part(allowed, len(batch)))
                    batch = batch.part(0, allowed)
            sizes = batch.publications.events.sizes
            self._credit_events -= len(batch)
            self._credit_bytes -= int(sizes.sum())
            self._events -= len(batch)
            send(batch)

    def split_for_credit(self, batch: Deliver) -> tuple[Deliver | None, Deliver | None]:
        """What may be sent now of deliveries that come before those that wait, and the rest."""
        sizes = batch.publications.events.sizes
        allowed = self._allowed(sizes) if self.has_credit_at_all else 0
        self._credit_events -= allowed
        self._credit_bytes -= int(sizes[:allowed].sum())
        now = batch.part(0, allowed) if allowed else None
        return now, batch.part(allowed, len(batch)) if allowed < len(batch) else None

    def _allowed(self, sizes: I64) -> int:
        """How many events of these sizes may be sent; the last one may overshoot the bytes."""
        events = min(len(sizes), self._credit_events)
        before = np.cumsum(sizes[:events]) - sizes[:events]
        return int(np.searchsorted(before, self._credit_bytes))

    def shorten(self) -> int:
        """Apply the policy if too many events wait; returns how many were dropped."""
        excess = self._events - self.events_max
        if self.policy == "block" and self.is_patient:
            excess -= self.overrun_max
        if excess <= 0:
            return 0
        if self.policy == "disconnect":
            # What waits is as good as lost: the client may not come back, and memory has an end.
            self.must_disconnect = True
            self._drop(excess, newest=True)
            self.missed += excess
            self.missed_total += excess
            return excess
        before = self._events
        if self.policy == "latest" and self.key is not None:
            self._keep_latest(self.key)
            excess = self._events - self.events_max
        if excess > 0:
            self._drop(excess, newest=self.policy == "drop-newest")
        dropped = before - self._events
        self.missed += dropped
        self.missed_total += dropped
        return dropped

    def _drop(self, excess: int, *, newest: bool) -> None:
        while excess > 0:
            batch = self._waiting.pop() if newest else self._waiting.popleft()
            self._events -= len(batch)
            if len(batch) <= excess or not isinstance(batch, Deliver):
                excess -= len(batch)
                continue
            if newest:
                kept = batch.part(0, len(batch) - excess)
                self._waiting.append(kept)
            else:
                kept = batch.part(excess, len(batch))
                self._waiting.appendleft(kept)
            self._events += len(kept)
            excess = 0

    def _keep_latest(self, key: str) -> None:
        """Keep only the last delivery of each value of the key, and those without it."""
        seen: set[object] = set()
        kept: deque[Batch] = deque()
        for batch in reversed(self._waiting):
            if not isinstance(batch, Deliver):
                kept.appendleft(batch)
                continue
            events = batch.publications.events
            last: list[int] = []
            for index in range(len(batch) - 1, -1, -1):
                names = events.shapes[events.shape_of[index]].names
                value = events.rows[index][names.index(key)] if key in names else None
                if value is None or (type(value), value) not in seen:
                    last.append(index)
                    seen.add((type(value), value))
            if last:
                kept.appendleft(_selected(batch, np.array(last[::-1], np.int64)))
        self._waiting = kept
        self._events = sum(map(len, kept))


def _selected(batch: Deliver, indices: I64) -> Deliver:
    """Some of the deliveries of a batch."""
    if len(indices) == len(batch):
        return batch
    keep = np.zeros(len(batch), np.bool_)
    keep[indices] = True
    matches = np.repeat(keep, batch.match_counts)
    return Deliver(
        batch.publications.select(indices),
        batch.positions[indices],
        batch.match_counts[indices],
        batch.handles[matches],
        batch.versions[matches],
    )
