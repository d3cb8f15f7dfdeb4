"""A connection that writes down what subscribers send; time and events are up to the test."""

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
    """Takes one subscriber."""

    seconds: float = 0.0
    requests: Sequence[Request] = ()
    values: Values = field(default_factory=dict)
    updates: list[Values] = field(default_factory=list)
    spans: list[TimeSpan] = field(default_factory=list)
    cancelled: bool = False
    _receivers: list[SubscriberEnd] = field(default_factory=list)

    @property
    def receiver(self) -> SubscriberEnd:
        return self._receivers[0]

    def subscribe(
        self, requests: Sequence[Request], values: Values, receiver: SubscriberEnd
    ) -> RecordedConnection:
        self.requests, self.values = requests, dict(values)
        self._receivers = [receiver]
        return self

    def t(self) -> float:
        return self.seconds

    def update(self, values: Values, span: TimeSpan = ALWAYS) -> None:
        self.updates.append(dict(values))
        self.spans.append(span)

    def cancel(self) -> None:
        self.cancelled = True

    def deliver(self, *matched: int, **attributes: object) -> None:
        """Have an event handled, judged now."""
        self.put(*matched, **attributes)
        self.receiver.mailbox.run()

    def put(self, *matched: int, **attributes: object) -> None:
        """Put an event into the mailbox, judged now."""
        indexes = matched or (0,)
        seen = (Environment(t=self.seconds),) * len(indexes)
        self.receiver.mailbox.put(Delivery(Event.of(attributes), indexes, seen))
