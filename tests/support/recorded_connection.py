"""A connection that records what a subscriber sends; the test sets the time and delivers events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.values import Value
from tidegate.subscribers.connection import ALWAYS, Request, SubscriberEnd, TimeSpan
from tidegate.subscribers.mailbox import Delivery

Values = Mapping[str, Value | None]


@dataclass
class RecordedConnection:
    """A connection of one subscriber, and its handle."""

    seconds: float = 0.0
    requests: Sequence[Request] = ()
    values: Values = field(default_factory=dict)
    updates: list[Values] = field(default_factory=list)
    spans: list[TimeSpan] = field(default_factory=list)
    cancelled: bool = False
    _subscriber_ends: list[SubscriberEnd] = field(default_factory=list)

    @property
    def subscriber_end(self) -> SubscriberEnd:
        return self._subscriber_ends[0]

    def subscribe(
        self, requests: Sequence[Request], values: Values, subscriber_end: SubscriberEnd
    ) -> RecordedConnection:
        self.requests, self.values = requests, dict(values)
        self._subscriber_ends = [subscriber_end]
        return self

    def t(self) -> float:
        return self.seconds

    def update(self, values: Values, span: TimeSpan = ALWAYS) -> None:
        self.updates.append(dict(values))
        self.spans.append(span)

    def cancel(self) -> None:
        self.cancelled = True

    def deliver(self, *matched: int, **attributes: object) -> None:
        """Let the subscriber handle an event that matched now."""
        self.put(*matched, **attributes)
        self.subscriber_end.mailbox.run()

    def put(self, *matched: int, **attributes: object) -> None:
        """Put an event that matched now into the mailbox."""
        indexes = matched or (0,)
        environments = (Environment(t=self.seconds),) * len(indexes)
        self.subscriber_end.mailbox.put(Delivery(Event.of(attributes), indexes, environments))
