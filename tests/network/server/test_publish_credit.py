"""Credit for publishing is granted again as events are taken."""

from __future__ import annotations

from typing import Any

from tidegate.language.events import Event
from tidegate.network.server.publish_credit import PublishCredit
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Credit


class Recorder:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)


def publish(count: int) -> Publish:
    return Publish(1, EventBlock.of([Event({"n": n}) for n in range(count)]))


def test_window_moves_on_when_half_of_it_is_used() -> None:
    credit, connection = PublishCredit(100, 10_000), Recorder()
    credit.connected(connection)  # type: ignore[arg-type]
    size = int(publish(1).events.sizes.sum())
    credit.took(connection, publish(49))  # type: ignore[arg-type]
    assert connection.sent == []
    credit.took(connection, publish(1))  # type: ignore[arg-type]
    assert connection.sent == [Credit(150, 10_000 + 50 * size)]
    credit.took(connection, publish(60))  # type: ignore[arg-type]
    assert connection.sent[1:] == [Credit(210, 10_000 + 110 * size)]
    credit.ended(connection)  # type: ignore[arg-type]
    credit.took(connection, publish(60))  # type: ignore[arg-type]
    assert len(connection.sent) == 2
