"""Credit and acknowledgements of a client, without a broker."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import numpy as np

from tidegate.language.events import Event
from tidegate.network.client.address import BrokerAddress
from tidegate.network.client.receiving import Receiving
from tidegate.network.client.registry import Registry
from tidegate.network.client.session import Session
from tidegate.network.client.settings import ClientSettings
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.flow import Ack, Credit
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing import messages as m


class Sent:
    """What would go to the broker."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def send(self, message: object) -> None:
        self.messages.append(message)

    def write_soon(self) -> None:
        """Of a session."""


class Owner:
    """What a registry needs of a client, as far as these tests go."""

    is_durable = True

    def __init__(self, receiving: Receiving) -> None:
        self.receiving = receiving
        self.registry = Registry(cast(Any, self))

    def has(self, subscription: Any) -> bool:
        return self.registry.is_current(subscription)


def made(**options: Any) -> tuple[Sent, Receiving, Registry]:
    settings = ClientSettings([BrokerAddress.parse("tidegate://a")], "desk", **options)
    sent = Sent()
    receiving = Receiving(settings, cast(Session, sent))
    return sent, receiving, Owner(receiving).registry


def deliver(*positions: int, handle: int = 1) -> Deliver:
    published = [m.Publication(Event({"x": n}), m.Stamp("a", 1, n), "p") for n in positions]
    ones = np.ones(len(positions), np.int64)
    return Deliver(
        PublicationBlock.of(published), np.array(positions, np.int64), ones, ones * handle, ones
    )


def test_credit_follows_what_is_taken() -> None:
    async def main() -> None:
        sent, receiving, registry = made(credit_events=4)
        registry.state.subscribe("n", "x > 0", now_us=0)
        subscription = registry.add("n", None)
        registry.bind(subscription, 1)
        assert receiving.first_credit() == (4, 1 << 26)
        receiving.deliver(deliver(1, 2, 3, 4), registry)
        receiving.flush()
        assert sent.messages == []
        await subscription.next()
        receiving.flush()
        await subscription.next()
        receiving.flush()
        size = (1 << 26) + 2 * 2
        assert sent.messages[0] == Credit(5, (1 << 26) + 2)
        assert sent.messages[1:] == [Ack(1), Credit(6, size)]
        assert receiving.first_credit()[0] == 2  # of a new connection: two are still here
        receiving.stop()
        await subscription.next()
        receiving.flush()
        assert sent.messages[3:] == [Ack(2)]

    asyncio.run(main())


def test_what_came_before_is_not_delivered_again() -> None:
    async def main() -> None:
        _, receiving, registry = made()
        registry.state.subscribe("n", "x > 0", now_us=0)
        subscription = registry.add("n", None)
        registry.bind(subscription, 1)
        receiving.deliver(deliver(1, 2), registry)
        receiving.deliver(deliver(2, 3), registry)
        events = [await subscription.next() for _ in range(3)]
        assert [event.position for event in events if event] == [1, 2, 3]
        assert (receiving.received, receiving.waiting) == (3, 0)

    asyncio.run(main())


def test_events_of_no_subscription_are_done_with() -> None:
    sent, receiving, registry = made()
    receiving.first_credit()
    receiving.deliver(deliver(1, 2, handle=9), registry)
    receiving.flush()
    assert sent.messages == [Ack(2)]
    assert receiving.owes_acknowledgement
    receiving.first_credit()
    receiving.flush()
    assert sent.messages == [Ack(2), Ack(2)]  # again on a new connection
