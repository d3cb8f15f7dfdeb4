"""Subscriptions with a name: their values change, their filters may move.

Theory of operation ("Parametric Subscriptions", figure 6). Here, at the client's own broker, such a
subscription stands as it was written, with the values of its parameters. In the table of what is
asked for, and at other brokers, it is a filter of values, or one that moves with time only; that
matches at least as much. When an event matches there, it is judged once more as the subscription
stands here, with the variables of this broker. So nothing is missed, and nothing is delivered
that does not match.

An update puts another filter in the place of the old one, in this broker's table and, by one
message, in that of each neighbour it matters to. An event is judged by the one or by the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.matching.poset.wanted_filter import event_us, wanted_form
from tidegate.matching.subscription import Moment
from tidegate.routing.checks import check_standing, check_version, updated
from tidegate.routing.clients.client_state import is_covered
from tidegate.routing.forwarding import NamedAsker
from tidegate.routing.messages import (
    Client,
    InForce,
    MatchedVersion,
    NamedSubscription,
    Outgoing,
    Update,
)

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


class NamedSubscriptions:
    """The subscriptions with a name of a broker's own clients."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._named: dict[Client, dict[str, NamedSubscription]] = {}
        self._unconfirmed: dict[NamedAsker, int] = {}
        """The versions of which a client is to be told when they are in force."""
        self._awaited: dict[NamedAsker, int] | None = None
        """Those of them for which a wave is on its way; None if there is no wave."""

    def held(self, client: Client) -> list[NamedSubscription]:
        """The subscriptions of a client, as they stand."""
        return list(self._named.get(client, {}).values())

    def count(self, client: Client) -> int:
        """How many subscriptions a client has."""
        return len(self._named.get(client, ()))

    # -- what clients do ----------------------------------------------------------------------

    def subscribe(self, client: Client, named: NamedSubscription) -> None:
        """Enter a subscription."""
        name = named.subscription.id
        if name in self._named.get(client, ()):
            raise RoutingError(f"{client.identity!r} has a subscription {name!r} already")
        self._enter(client, named)

    def update(self, client: Client, message: Update) -> None:
        """Change a subscription, as one."""
        named = self._find(client, message.name)
        check_version(message.version)
        if message.version <= named.version:
            raise RoutingError(
                f"{message.name!r} has version {named.version}, and {message.version} is not later"
            )
        self._enter(
            client,
            NamedSubscription(
                updated(named.subscription, message, self._broker.limits.filters), message.version
            ),
        )

    def cancel(self, client: Client, name: str) -> None:
        """Cancel a subscription."""
        self._find(client, name)
        held = self._named[client]
        del held[name]
        if not held:
            del self._named[client]
        claim = NamedAsker(client, name)
        for versions in (self._unconfirmed, self._awaited or {}):
            versions.pop(claim, None)  # another one may get the name
        self._broker.subscriptions.release(claim)

    def cancel_covered(self, client: Client, wanted: Filter) -> int:
        """Cancel all subscriptions of a client that a filter covers; gives how many those are."""
        covered = [
            named.subscription.id for named in self.held(client) if is_covered(named, wanted)
        ]
        for name in covered:
            self.cancel(client, name)
        return len(covered)

    def dismiss(self, client: Client) -> None:
        """Forget a client."""
        for named in self.held(client):
            self.cancel(client, named.subscription.id)

    def _find(self, client: Client, name: str) -> NamedSubscription:
        named = self._named.get(client, {}).get(name)
        if named is None:
            raise RoutingError(f"{client.identity!r} has no subscription {name!r}")
        return named

    def _enter(self, client: Client, named: NamedSubscription) -> None:
        claim, table = NamedAsker(client, named.subscription.id), self._broker.subscriptions
        form = wanted_form(named.subscription, next(iter(table.asked(claim)), None))
        check_standing(form, self._broker.limits.filters)  # as others will
        self._named.setdefault(client, {})[named.subscription.id] = named
        table.claim(claim, form)

    # -- events -------------------------------------------------------------------------------

    def judge(self, claim: NamedAsker, event: Event) -> MatchedVersion | None:
        """Whether an event, which matches in the table, matches the subscription as it stands."""
        subscription, version = self._named[claim.client][claim.name]
        if subscription.filter.evolves:
            time_us = event_us(event)
            moment = Moment(time_us, self._broker.variables.at(time_us))
            environment = subscription.true_environment(moment)
            if not subscription.lives(moment) or not holds(
                subscription.filter.node, event.attributes, environment
            ):
                return None
        return MatchedVersion(claim.name, version)

    # -- when something is in force -----------------------------------------------------------

    def confirm(self, claim: NamedAsker, version: int) -> Outgoing:
        """Tell a client when a version of a subscription is in force everywhere.

        A wave tells; those that come while it is on its way share the next one.
        """
        self._unconfirmed[claim] = version
        return [] if self._awaited is not None else self._start()

    def _start(self) -> Outgoing:
        self._awaited, self._unconfirmed = self._unconfirmed, {}
        return self._broker.start_wave(self._confirmed)

    def _confirmed(self) -> Outgoing:
        awaited, self._awaited = self._awaited or {}, None
        sent: Outgoing = [
            (claim.client, InForce(claim.name, version)) for claim, version in awaited.items()
        ]
        return sent + self._start() if self._unconfirmed else sent
