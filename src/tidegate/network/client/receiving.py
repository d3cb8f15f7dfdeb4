"""What comes to a client: deliveries to inboxes, credit for more, acknowledgements.

Credit. The broker may send as many deliveries as the client's window has room for. A delivery
leaves the window when the last of the inboxes that it waits in has handed it out. Credits are
counted from the beginning of a connection; a new one begins with what has room then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.network.client.events import Acknowledgements, Delivery, ReceivedEvent
from tidegate.network.client.inbox import Inbox
from tidegate.network.client.session import Session
from tidegate.network.client.settings import ClientSettings
from tidegate.network.client.subscription import PatternSubscription, Subscription
from tidegate.network.wire.deliveries import Deliver, DeliverSequence
from tidegate.network.wire.flow import Ack, Credit
from tidegate.network.wire.publications import IS_CONFIRMED

if TYPE_CHECKING:
    from tidegate.network.client.registry import Registry


class Receiving:
    """The deliveries of one client."""

    def __init__(self, settings: ClientSettings, session: Session) -> None:
        self._settings = settings
        self._session = session
        self._acks = Acknowledgements()
        self._acknowledged = 0
        self._to_acknowledge: int | None = None
        self.waiting = 0
        """Deliveries that wait in inboxes."""
        self._waiting_bytes = 0
        self._came = Credit(0, 0)
        """What came on this connection."""
        self._granted = Credit(0, 0)
        self._is_stopped = False
        self.missed = 0
        """Deliveries that the broker dropped."""

    @property
    def received(self) -> int:
        """The position of the last delivery that came."""
        return self._acks.received

    def new_inbox(self) -> Inbox:
        """An inbox without subscriptions."""
        return Inbox(
            acks_on_next=self._settings.ack == "next",
            taken=self._taken,
            acknowledge=self._acknowledge,
        )

    @property
    def owes_acknowledgement(self) -> bool:
        """Whether there is something that the broker may not have been told yet."""
        return self._acknowledged > 0

    def stop(self) -> None:
        """Give no further credit."""
        self._is_stopped = True

    # -- credit -------------------------------------------------------------------------------

    def first_credit(self) -> tuple[int, int]:
        """The credit of a new connection, in events and bytes."""
        self._came = Credit(0, 0)
        self._granted = self._room()
        if self._acknowledged:
            self._to_acknowledge = self._acknowledged  # it may have been lost with the connection
        return self._granted.events, self._granted.bytes

    def _room(self) -> Credit:
        """How much has room in the window now, beside what came on this connection."""
        events = max(0, self._settings.credit_events - self.waiting)
        size = max(0, self._settings.credit_bytes - self._waiting_bytes)
        return Credit(self._came.events + events, self._came.bytes + size)

    def flush(self) -> None:
        """Send acknowledgements, and credit if it is worth a message."""
        if self._to_acknowledge is not None:
            self._session.send(Ack(self._to_acknowledge))
            self._to_acknowledge = None
        if self._is_stopped:
            return
        room, granted, came = self._room(), self._granted, self._came
        quarter = self._settings.credit_events / 4, self._settings.credit_bytes / 4
        is_used_up = granted.events <= came.events or granted.bytes <= came.bytes
        is_much = room.events - granted.events >= quarter[0]
        is_much |= room.bytes - granted.bytes >= quarter[1]
        has_more = room.events > came.events and room.bytes > came.bytes
        if is_much or (is_used_up and has_more):
            self._granted = room
            self._session.send(room)

    # -- deliveries ---------------------------------------------------------------------------

    def deliver(self, message: Deliver, registry: Registry) -> None:
        """Put the events of a message into the inboxes of their subscriptions."""
        publications = message.publications
        self._count(len(message), int(publications.events.starts[-1]))
        handles, versions = message.handles.tolist(), message.versions.tolist()
        sizes, at = publications.events.sizes.tolist(), 0
        flags = publications.flags.tolist()
        rows = zip(message.positions.tolist(), message.match_counts.tolist(), sizes, strict=True)
        for index, (position, count, size) in enumerate(rows):
            matches = list(zip(handles[at : at + count], versions[at : at + count], strict=True))
            at += count
            if position and not self._acks.is_new(position):
                continue  # it came before, on a connection that broke
            event = publications.events.event(index)
            publisher = publications.publishers[publications.publisher_of[index]]
            delivery = Delivery(
                event,
                publications.stamp(index),
                publisher,
                position,
                size,
                is_confirmed=bool(flags[index] & IS_CONFIRMED),
            )
            if position:
                self._acks.came(delivery)
            self._put(delivery, matches, registry)

    def _put(self, delivery: Delivery, matches: list[tuple[int, int]], registry: Registry) -> None:
        by_inbox: dict[Inbox, list[tuple[Subscription, int]]] = {}
        for handle, version in matches:
            subscription = registry.by_handle.get(handle)
            if isinstance(subscription, Subscription):
                by_inbox.setdefault(subscription.inbox, []).append((subscription, version))
        if not by_inbox:
            # for a subscription that was cancelled meanwhile
            delivery.unfinished = 1
            self._acknowledge(delivery)
            return
        self.waiting += 1
        self._waiting_bytes += delivery.size
        for inbox, matched in by_inbox.items():
            inbox.add(delivery, matched)

    def deliver_sequence(self, message: DeliverSequence, registry: Registry) -> None:
        """Put a sequence into the mailbox of its pattern."""
        publications = message.publications
        self._count(len(message), int(publications.events.starts[-1]))
        subscription = registry.by_handle.get(message.handle)
        if not isinstance(subscription, PatternSubscription):
            return
        sequence = tuple(
            ReceivedEvent(
                Delivery(each.event, each.stamp, each.publisher, 0, 0), (), self._acknowledge
            )
            for each in publications.publications()
        )
        subscription.mailbox.put(sequence)

    def _count(self, events: int, size: int) -> None:
        self._came = Credit(self._came.events + events, self._came.bytes + size)

    def _taken(self, delivery: Delivery) -> None:
        """Note that an inbox has handed a delivery out."""
        delivery.inboxes -= 1
        if not delivery.inboxes:
            self.waiting -= 1
            self._waiting_bytes -= delivery.size
            self._session.write_soon()

    def _acknowledge(self, delivery: Delivery) -> None:
        """Note that the reader of an inbox has done with a delivery."""
        delivery.unfinished -= 1
        if delivery.position and not delivery.unfinished:
            position = self._acks.done(delivery)
            if position is not None:
                self._to_acknowledge = self._acknowledged = position
                self._session.write_soon()
