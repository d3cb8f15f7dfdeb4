"""Named subscriptions of a broker's own clients: updated in place, exact, and confirmed by waves.

Rules ("Parametric Subscriptions", 3.3 and figure 6).

(1) The client's own broker keeps a named subscription as the client wrote it, with the values of
    its parameters. The table, and all other brokers, have the *wanted form* of it: a static filter,
    or one that evolves with time only. Whatever the subscription matches, its wanted form matches.
(2) An event that matches in the table is evaluated once more with the subscription itself and the
    variables of this broker. So nothing is missed, and nothing that does not match is delivered.
(3) An update replaces the filter in one step: here in the table and, by one message, at each
    neighbour that holds it. At every broker an event is matched by the old version or by the new
    one; there is no time at which neither is there.
(4) Versions only grow. A delivery names the version by which the event was matched.

Confirmations. `InForce` is sent when a wave that started after the change is back: by then all
brokers have handled it. A client that updates a lot would start as many waves. Therefore at most
one wave of a broker is on its way for confirmations, and all that are asked for meanwhile share
the next one. With summaries, acknowledgements take the place of the wave (`summaries.summaries`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.matching.poset.wanted_filter import event_us, wanted_form
from tidegate.matching.subscription import Moment
from tidegate.routing.askers import NamedAsker
from tidegate.routing.clients.client_state import is_covered
from tidegate.routing.clients.named_handles import NamedHandles
from tidegate.routing.messages import (
    Client,
    InForce,
    MatchedVersion,
    NamedSubscription,
    Outgoing,
    Update,
)
from tidegate.routing.validation import check_version, check_wanted_filter, updated_subscription

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


class NamedSubscriptions:
    """The named subscriptions of a broker's own clients."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_client: dict[Client, dict[str, NamedSubscription]] = {}
        self.handles = NamedHandles()
        """A small number for each subscription, and what a batch of events needs to know of it."""
        self._unconfirmed: dict[NamedAsker, int] = {}
        """Versions to be confirmed by the next wave."""
        self._awaited: dict[NamedAsker, int] | None = None
        """Versions that the wave on its way will confirm; None if there is no such wave."""
        self._is_held = False

    def handle(self, client: Client, name: str) -> int:
        """The handle of a subscription: a small number, used again once it is cancelled.

        Raises RoutingError if the client has no such subscription.
        """
        self._find(client, name)
        return self.handles.of(NamedAsker(client, name))

    def version(self, client: Client, name: str) -> int:
        """The present version of a subscription; raises RoutingError if there is none."""
        return self._find(client, name).version

    def name_of(self, handle: int) -> str:
        """The name of the subscription that has a handle."""
        return self.handles.asker(handle).name

    def subscriptions_of(self, client: Client) -> list[NamedSubscription]:
        """The present versions of the named subscriptions of a client."""
        return list(self._by_client.get(client, {}).values())

    def present(self, client: Client, name: str) -> NamedSubscription | None:
        """The present version of a subscription; None if the client has none of this name."""
        return self._by_client.get(client, {}).get(name)

    def count(self, client: Client) -> int:
        """The number of named subscriptions of a client."""
        return len(self._by_client.get(client, ()))

    # -- requests of clients ------------------------------------------------------------------

    def subscribe(self, client: Client, named: NamedSubscription) -> None:
        """Add a subscription; raises if the client has one with this name."""
        name = named.subscription.id
        if name in self._by_client.get(client, ()):
            raise RoutingError(
                f"{client.identity!r} has a subscription {name!r} already; update or cancel it"
            )
        self._put(client, named)

    def restore(self, client: Client, named: NamedSubscription) -> None:
        """Add a subscription of a client as it was before a restart."""
        self._put(client, named)

    def update(self, client: Client, message: Update) -> None:
        """Replace a subscription by a later version, in one step."""
        named = self._find(client, message.name)
        check_version(message.version)
        if message.version <= named.version:
            raise RoutingError(
                f"{message.name!r} has version {named.version}, and {message.version} is not later"
            )
        updated = updated_subscription(
            named.subscription, message, self._broker.limits.filters, self._broker.parser
        )
        changed = NamedSubscription(updated, message.version, named.space)
        text = message.filter if isinstance(message.filter, str) else None
        self._broker.spaces.check_named(changed, text)
        self._put(client, changed)

    def cancel(self, client: Client, name: str) -> None:
        """Remove a subscription."""
        self._find(client, name)
        names = self._by_client[client]
        del names[name]
        if not names:
            del self._by_client[client]
        asker = NamedAsker(client, name)
        self.handles.release(asker)
        for versions in (self._unconfirmed, self._awaited or {}):
            versions.pop(asker, None)  # a new one of this name must not be confirmed by it
        self._broker.subscriptions.cancel_named(asker)

    def cancel_covered(self, client: Client, wanted: Filter, space: str | None) -> int:
        """Remove all subscriptions of a client in a space that a filter covers; returns their
        number."""
        covered = [
            named.subscription.id
            for named in self.subscriptions_of(client)
            if is_covered(named, wanted, space)
        ]
        for name in covered:
            self.cancel(client, name)
        return len(covered)

    def remove_client(self, client: Client) -> None:
        """Remove all subscriptions of a client."""
        for named in self.subscriptions_of(client):
            self.cancel(client, named.subscription.id)

    def find(self, client: Client, name: str) -> NamedSubscription | None:
        """The present version of a subscription; None if the client has none of this name."""
        return self._by_client.get(client, {}).get(name)

    def _find(self, client: Client, name: str) -> NamedSubscription:
        named = self.find(client, name)
        if named is None:
            raise RoutingError(f"{client.identity!r} has no subscription {name!r}")
        return named

    def _put(self, client: Client, named: NamedSubscription) -> None:
        asker, table = NamedAsker(client, named.subscription.id), self._broker.subscriptions
        before = next(iter(table.items_of(asker)), None)
        form = wanted_form(named.subscription, before)  # computes only what differs from before
        form = self._broker.grants.wanted(form, client)
        form = self._broker.spaces.bound(form, named.space)
        check_wanted_filter(form, self._broker.limits.filters)  # as the neighbours will
        self._by_client.setdefault(client, {})[named.subscription.id] = named
        evolves = named.subscription.filter.evolves
        self.handles.put(asker, self._broker.sessions.number(client), named.version, evolves)
        table.set_named(asker, form)

    # -- events -------------------------------------------------------------------------------

    def matched_version(self, asker: NamedAsker, event: Event) -> MatchedVersion | None:
        """The version of a subscription that an event matches, exactly; None if it does not.

        The event must match the wanted form. A static subscription matches just the same events,
        so only an evolving one is evaluated again.
        """
        subscription, version, _ = self._by_client[asker.client][asker.name]
        if subscription.filter.evolves:
            time_us = event_us(event)
            moment = Moment(time_us, self._broker.variables.at(time_us))
            environment = subscription.exact_environment(moment)
            if not subscription.lives(moment) or not holds(
                subscription.filter.node, event.attributes, environment
            ):
                return None
        return MatchedVersion(asker.name, version)

    # -- confirmations ------------------------------------------------------------------------

    def confirm(self, asker: NamedAsker, version: int) -> Outgoing:
        """Send `InForce` to the client once all brokers have a version of a subscription.

        If a version is asked for while an earlier one still waits for the next wave, only the later
        one is confirmed; that includes the earlier one.
        """
        self._unconfirmed[asker] = version
        return [] if self._is_held or self._awaited is not None else self._start_wave()

    def hold_confirmations(self) -> None:
        """Start no wave until `release_confirmations`."""
        self._is_held = True

    def release_confirmations(self) -> Outgoing:
        """Start the wave for what is to be confirmed by now, unless one is on its way."""
        self._is_held = False
        return self._start_wave() if self._unconfirmed and self._awaited is None else []

    def _start_wave(self) -> Outgoing:
        self._awaited, self._unconfirmed = self._unconfirmed, {}
        return self._broker.when_in_force(self._wave_done)

    def _wave_done(self) -> Outgoing:
        awaited, self._awaited = self._awaited or {}, None
        sent: Outgoing = [
            (asker.client, InForce(asker.name, version)) for asker, version in awaited.items()
        ]
        return sent if self._is_held or not self._unconfirmed else sent + self._start_wave()
