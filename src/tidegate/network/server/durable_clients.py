"""What the store keeps of durable clients: who they are and what they have asked for.

    kind            key                  value
    client          empty                empty: the client exists
    subscription    its name             `HeldSubscription`, its present version
    unnamed         [space, text]        empty; a filter or pattern without a name
    advertisement   [space, text]        empty

The owner is the identity of the client. After a start the same requests are made again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tidegate.errors import TidegateError
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.evolve import parse_evolve
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.requests import Held, HeldSubscription
from tidegate.network.wire.values import values_of, wire_value
from tidegate.routing import messages as m

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.sessions import ClientSession

_log = logging.getLogger(__name__)

CLIENT, SUBSCRIPTION, UNNAMED, ADVERTISEMENT = (
    "client", "subscription", "unnamed", "advertisement",
)  # fmt: skip
_KINDS = (CLIENT, SUBSCRIPTION, UNNAMED, ADVERTISEMENT)
HELD_MAX = 1_000
"""Subscriptions in one frame."""

_encode = msgspec.msgpack.Encoder().encode
_held = msgspec.msgpack.Decoder(HeldSubscription)
_text = msgspec.msgpack.Decoder(tuple[str | None, str])


class DurableClients:
    """Saves and restores the requests of durable clients."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._texts: dict[tuple[str, str], dict[bytes, Filter | Pattern | Advertisement]] = {}
        """By kind and identity: what has no name, by key."""
        self._saved_names: dict[str, set[str]] = {}
        """By identity: the names of the subscriptions that are in the store."""

    # -- saving -------------------------------------------------------------------------------

    def begin(self, session: ClientSession, transaction: Transaction) -> None:
        """Save that a client exists."""
        transaction.put_state(CLIENT, session.client.identity, b"", b"")

    def save(
        self, session: ClientSession, messages: Iterable[m.Message], transaction: Transaction
    ) -> None:
        """Save what requests have changed; one that was refused has changed nothing."""
        client = session.client
        for message in messages:
            match message:
                case m.Subscribe(_, name=str(name)) | m.Update(name) | m.Cancel(name):
                    self._save_named(client, name, transaction)
                case m.Subscribe(wanted, space=space):
                    self._save_text(UNNAMED, client, wanted, space, transaction)
                case m.Advertise(advertisement, space):
                    self._save_text(ADVERTISEMENT, client, advertisement, space, transaction)
                case m.Unsubscribe():
                    self._forget_covered(
                        UNNAMED, client, message.wanted, message.space, transaction
                    )
                    self._forget_cancelled(client, transaction)
                case m.Unadvertise():
                    offered, space = message.advertisement, message.space
                    self._forget_covered(ADVERTISEMENT, client, offered, space, transaction)
                case _:
                    pass

    def _save_named(self, client: m.Client, name: str, transaction: Transaction) -> None:
        key = name.encode()
        named = self._server.broker.named.present(client, name)
        if named is None:
            transaction.remove_state(SUBSCRIPTION, client.identity, key)
            self._names(client).discard(name)
        else:
            value = _encode(self._held_subscription(client, named))
            transaction.put_state(SUBSCRIPTION, client.identity, key, value)
            self._names(client).add(name)

    def _names(self, client: m.Client) -> set[str]:
        return self._saved_names.setdefault(client.identity, set())

    def _forget_cancelled(self, client: m.Client, transaction: Transaction) -> None:
        named = self._server.broker.named
        for name in [each for each in self._names(client) if named.present(client, each) is None]:
            self._save_named(client, name, transaction)

    def _save_text(
        self,
        kind: str,
        client: m.Client,
        item: Filter | Pattern | Advertisement | str,
        space: str | None,
        transaction: Transaction,
    ) -> None:
        key = _encode((space, str(item)))
        self._texts.setdefault((kind, client.identity), {})[key] = _parsed(kind, str(item))
        transaction.put_state(kind, client.identity, key, b"")

    def _forget_covered(
        self,
        kind: str,
        client: m.Client,
        item: Filter | Pattern | Advertisement | str,
        space: str | None,
        transaction: Transaction,
    ) -> None:
        saved = self._texts.get((kind, client.identity), {})
        wide = _parsed(kind, str(item))
        for key, narrow in list(saved.items()):
            is_comparable = type(wide) is type(narrow) and _text.decode(key)[0] == space
            if not is_comparable:
                continue
            if not isinstance(narrow, Advertisement):
                # What the broker has cancelled is what the grant of the client has left of it.
                narrow = self._granted(narrow, client)
            if wide.covers(narrow):  # type: ignore[arg-type]
                del saved[key]
                transaction.remove_state(kind, client.identity, key)

    def _granted(self, wanted: Filter | Pattern, client: m.Client) -> Filter | Pattern:
        try:
            return self._server.broker.grants.wanted(wanted, client)
        except TidegateError:
            return wanted  # it was refused at the start, by a grant that has changed

    def remove(self, client: m.Client, transaction: Transaction) -> None:
        """Remove all that is kept of a client."""
        for kind in _KINDS:
            transaction.remove_owner(kind, client.identity)
            self._texts.pop((kind, client.identity), None)
        self._saved_names.pop(client.identity, None)

    # -- for a new process of the client --------------------------------------------------------

    def held(self, client: m.Client) -> list[Held]:
        """The frames that tell a client of its subscriptions; at least one."""
        subscriptions = [
            self._held_subscription(client, each)
            for each in self._server.broker.named.subscriptions_of(client)
        ]
        starts = range(0, max(1, len(subscriptions)), HELD_MAX)
        return [
            Held(subscriptions[start : start + HELD_MAX], start + HELD_MAX >= len(subscriptions))
            for start in starts
        ]

    def _held_subscription(self, client: m.Client, named: m.NamedSubscription) -> HeldSubscription:
        subscription, version, space = named
        return HeldSubscription(
            self._server.broker.named.handle(client, subscription.id) + 1,
            subscription.id,
            str(subscription.filter),
            {name: wire_value(value) for name, value in subscription.parameters.items()},
            None if subscription.evolve is None else str(subscription.evolve),
            version,
            subscription.origin,
            space,
        )

    # -- after a start --------------------------------------------------------------------------

    def restore(self, state: Iterable[tuple[str, str, bytes, bytes]]) -> m.Outgoing:
        """Make the sessions and the requests of all durable clients again; returns messages for
        neighbours."""
        requests: list[tuple[m.Client, m.Message]] = []
        for kind, owner, key, value in state:
            if kind not in _KINDS:
                continue
            client = m.Client(owner)
            self._server.lives.restore(client)
            try:
                requests += [(client, each) for each in self._restored(kind, client, key, value)]
            except (msgspec.DecodeError, TidegateError) as error:
                _log.error("the %s of %r cannot be restored: %s", kind, owner, error)
        return self._make(requests)

    def _restored(
        self, kind: str, client: m.Client, key: bytes, value: bytes
    ) -> Sequence[m.Message]:
        if kind == CLIENT:
            return []
        if kind == SUBSCRIPTION:
            held = _held.decode(value)
            self._names(client).add(held.name)
            evolve = None if held.evolve is None else parse_evolve(held.evolve)
            values = values_of(held.parameters)
            return [
                m.Subscribe(
                    held.filter, held.name, values, evolve, held.version, held.origin_us,
                    space=held.space,
                )
            ]  # fmt: skip
        space, text = _text.decode(key)
        item = _parsed(kind, text)
        self._texts.setdefault((kind, client.identity), {})[key] = item
        if isinstance(item, Advertisement):
            return [m.Advertise(item, space)]
        return [m.Subscribe(item, space=space)]

    def _make(self, requests: list[tuple[m.Client, m.Message]]) -> m.Outgoing:
        server = self._server
        handled = server.broker.handle_requests(requests, server.now_us())
        for place, error in handled.errors.items():
            client, request = requests[place]
            _log.error("%r of %r cannot be restored: %s", request, client.identity, error)
        return handled.sent


def _parsed(kind: str, text: str) -> Filter | Pattern | Advertisement:
    if kind == ADVERTISEMENT:
        return parse_advertisement(text)
    pattern = parse_pattern(text)
    return pattern if len(pattern.steps) > 1 else pattern.steps[0]
