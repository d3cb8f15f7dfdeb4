"""What the session of a client calls: each message of the broker goes to the part it is for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError
from tidegate.network.client.subscription import Subscription
from tidegate.network.wire import requests as wire
from tidegate.network.wire.connection import Message
from tidegate.network.wire.deliveries import Deliver, DeliverSequence
from tidegate.network.wire.flow import Confirmed, Credit, NotPublished
from tidegate.network.wire.handshake import Hello, Welcome

if TYPE_CHECKING:
    from tidegate.network.client.client import Client

_log = logging.getLogger("tidegate")


class SessionListener:
    """Greets the broker for a client, and takes what the broker sends."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def hello(self, session: int) -> Hello:
        """The first message of each connection."""
        settings = self._client.settings
        events, size = self._client.receiving.first_credit()
        return Hello(
            settings.identity,
            session,
            token=settings.token,
            is_durable=settings.durable,
            epoch=session if settings.epoch is None else settings.epoch,
            answered=self._client.requests.answered,
            received=self._client.receiving.received,
            slow_policy=settings.slow,
            slow_key=settings.slow_key,
            queue_max=settings.queue_max,
            credit_events=events,
            credit_bytes=size,
            heartbeat_ms=round(settings.heartbeat_s * 1_000),
            software="tidegate for Python",
        )

    def welcomed(self, welcome: Welcome) -> None:
        """Go on with the session, or begin a new one."""
        self._client.requests.window = max(1, welcome.requests_max)
        if self._client.settings.epoch is not None:
            self._client.publishing.begin_after(welcome.published)
        self._client.publishing.connected(Credit(welcome.credit_events, welcome.credit_bytes))
        self._client.registry.welcomed(welcome)

    def message_came(self, message: Message) -> None:
        """Take a message of the broker."""
        match message:
            case Deliver():
                self._client.receiving.deliver(message, self._client.registry)
            case wire.Done() | wire.Refused():
                self._client.requests.answer(message)
            case wire.InForce(handle, version):
                subscription = self._client.registry.by_handle.get(handle)
                if isinstance(subscription, Subscription):
                    subscription.came_into_force(version)
            case Confirmed():
                self._client.publishing.confirmed(message)
            case NotPublished(number, problem):
                if not self._client.publishing.refused(message):
                    _log.warning("publication %d was refused: %s", number, problem.reason)
            case Credit():
                self._client.publishing.grant(message)
            case DeliverSequence():
                self._client.receiving.deliver_sequence(message, self._client.registry)
            case wire.Missed(count):
                self._client.receiving.missed += count
                _log.warning(
                    "the broker dropped %d deliveries for %s", count, self._client.identity
                )
            case wire.Held():
                self._client.registry.take_held(message)

    def before_write(self) -> None:
        """Send what waits for the end of the turn."""
        if self._client.may_publish:
            self._client.publishing.flush()
        self._client.receiving.flush()

    def ended(self, error: TidegateError) -> None:
        """Let all who wait fail."""
        self._client.ended(error)
