"""The queue of a durable client, as a stream of Spark reads it.

Rules.

(1) The broker keeps what is not acknowledged, and delivers it again, in the same order, to the next
    process of the client. So a range of positions is the same events each time, and positions are
    the offsets of the stream.
(2) Events are acknowledged when Spark has noted the micro-batch that has them as done: when it says
    so, or when it asks for what comes after them.
(3) What was published without a confirmation is on no disk and would not come again. It is left out
    and counted.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from typing import TYPE_CHECKING

from tidegate.errors import ConnectorError
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.subscription_name import SUBSCRIPTION

if TYPE_CHECKING:
    from tidegate.network.client.events import ReceivedEvent

_log = logging.getLogger("tidegate")

BATCH_BYTES_MAX = 64 * 2**20
"""The bytes of events after which a micro-batch ends."""
_TAKEN_MAX = 5_000
_WAIT_S = 0.1
"""How long to wait for a first event before Spark is told that there is none."""


class BrokerQueue:
    """The confirmed events that wait for a durable client."""

    def __init__(self, options: BrokerOptions) -> None:
        if options.identity is None:
            raise ConnectorError(
                "option 'identity' is missing; by it the broker keeps the place of the stream"
            )
        self.identity = options.identity
        self._options = options
        self._client = options.connect(
            options.identity,
            durable=True,
            ack="manual",
            credit_events=max(1, min(options.events_per_batch_max, 10_000)),
        )
        self.queued = self._client.queued
        """The position of the last event that was there at the beginning; 0 without any."""
        try:
            self._subscription = self._client.subscribe(
                options.filter,
                name=SUBSCRIPTION,
                space=options.space,
                parameters=options.parameters,
            )
        except BaseException:
            self._client.close()
            raise
        self._events: list[ReceivedEvent] = []
        """Confirmed events that are not acknowledged, in the order of their positions."""
        self._missed = 0
        self._unconfirmed = 0

    def close(self) -> None:
        """Leave the broker, which keeps the queue."""
        self._client.close()

    # -- reading ------------------------------------------------------------------------------

    def end_after(self, start: int, most: int | None, final: int | None = None) -> int:
        """The position up to which the next micro-batch reads: that of an event, or ``start``.

        It has at most so many events. With a ``final`` position it waits until all up to there have
        come, and ends there.
        """
        self.acknowledge(start)
        most = self._options.events_per_batch_max if most is None else most
        size = sum(each.size for each in self._events)
        deadline = time.monotonic() + self._options.timeout_s
        while len(self._events) < most and size < BATCH_BYTES_MAX:
            has_all = final is not None and self._client.received >= final
            came = self._take(0.0 if self._events or has_all else _WAIT_S)
            size += sum(each.size for each in came)
            if came:
                deadline = time.monotonic() + self._options.timeout_s
            elif final is None or has_all or self._is_too_late(deadline, final):
                break
        chosen, size = 0, 0
        for each in self._events[:most]:
            if (final is not None and each.position > final) or size >= BATCH_BYTES_MAX:
                break
            chosen, size = chosen + 1, size + each.size
        return self._events[chosen - 1].position if chosen else start

    def events(self, start: int, end: int) -> list[ReceivedEvent]:
        """The events after one position, up to another; after a restart they come again."""
        self._check_kept(start, end)
        deadline = time.monotonic() + self._options.timeout_s
        while self._client.received < end and self._has_more(end):
            if self._take(_WAIT_S):
                deadline = time.monotonic() + self._options.timeout_s
            elif self._is_too_late(deadline, end):
                break
        while self._take(0.0):
            pass
        return self._events[self._place(start) : self._place(end)]

    def acknowledge(self, position: int) -> None:
        """Tell the broker that all events up to a position are done with."""
        place = self._place(position)
        if place:
            self._subscription.ack_many(self._events[:place])
            del self._events[:place]

    def _place(self, position: int) -> int:
        """How many of the events are not after a position."""
        return bisect_right(self._events, position, key=lambda each: each.position)

    def _take(self, wait_s: float) -> list[ReceivedEvent]:
        """Take what has come; returns those that are confirmed."""
        try:
            came = self._subscription.next_many(_TAKEN_MAX, wait_s)
        except TimeoutError:
            came = []
        confirmed = [each for each in came if each.is_confirmed]
        if len(confirmed) < len(came):
            self._leave_out([each for each in came if not each.is_confirmed])
        self._events += confirmed
        self._check_missed()
        return confirmed

    def _leave_out(self, events: list[ReceivedEvent]) -> None:
        self._subscription.ack_many(events)
        if not self._unconfirmed:
            _log.warning(
                "%s: events that were published without a confirmation are left out: they cannot "
                "be read exactly once",
                self.identity,
            )
        self._unconfirmed += len(events)

    # -- loss ---------------------------------------------------------------------------------

    def _check_missed(self) -> None:
        missed = self._client.missed
        if missed > self._missed:
            count, self._missed = missed - self._missed, missed
            self._lost(f"the broker has lost {count} events of {self.identity!r}; its log says why")

    def _check_kept(self, start: int, end: int) -> None:
        if end > start and self._client.received < end and not self._has_more(end):
            self._lost(
                f"the broker does not have the events of {self.identity!r} up to position {end} "
                "any more, which the checkpoint names; they were acknowledged, or the broker has "
                "another store"
            )

    def _has_more(self, end: int) -> bool:
        """Whether the broker had the event at a position when it was connected."""
        return self._client.queued >= end

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise ConnectorError(
                f"{what}. Set the option failOnDataLoss to false to go on without them"
            )
        _log.error("%s", what)

    def _is_too_late(self, deadline: float, position: int) -> bool:
        """Whether to wait no longer for a position, whose event may be damaged."""
        if time.monotonic() <= deadline:
            return False
        self._lost(
            f"the broker has not delivered the events of {self.identity!r} up to position "
            f"{position} within {self._options.timeout_s:g} s"
        )
        return True
