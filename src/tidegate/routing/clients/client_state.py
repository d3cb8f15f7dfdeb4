"""What a client knows of its own subscriptions ("Parametric Subscriptions", figure 5).

Rules. (1) A change is in force for the client as soon as it is made: a delivery is taken only if
the event matches the subscription as it stands now, so nothing stale gets through, however long
brokers take to learn of the change (strictness). (2) All changes of a client are numbered, and
brokers get them in that order; a delivery names the version that the broker went by.

Like a broker, this does no I/O: methods give the message that is to be sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import covers, event_us, wanted_form
from tidegate.matching.subscription import Moment, Subscription
from tidegate.routing.checks import checked_named, updated
from tidegate.routing.messages import (
    Cancel,
    Deliver,
    InForce,
    MatchedVersion,
    NamedSubscription,
    Subscribe,
    Unsubscribe,
    Update,
)


class ClientState:
    """The subscriptions with a name of one client.

    >>> client = ClientState()
    >>> client.subscribe("cheap", "price < :limit", {"limit": 10}, now_us=0).name
    'cheap'
    >>> client.update("cheap", {"limit": 5}).version
    2
    """

    def __init__(self) -> None:
        self._named: dict[str, NamedSubscription] = {}
        self._in_force: dict[str, int] = {}
        self._changes = 0
        self.stale = 0
        """How many deliveries were not taken, because no subscription wanted them any more."""

    def __contains__(self, name: str) -> bool:
        return name in self._named

    def __getitem__(self, name: str) -> NamedSubscription:
        """A subscription as it stands; raises RoutingError."""
        named = self._named.get(name)
        if named is None:
            raise RoutingError(f"there is no subscription {name!r}")
        return named

    # -- what it asks for ---------------------------------------------------------------------

    def subscribe(
        self,
        name: str,
        wanted: Filter | str,
        parameters: Mapping[str, Value] | None = None,
        *,
        now_us: int,
        evolve: Evolve | None = None,
        confirm: bool = False,
    ) -> Subscribe:
        """Subscribe; `t` counts from now on."""
        if name in self._named:
            raise RoutingError(f"there is a subscription {name!r} already")
        version = self._changes + 1
        request = Subscribe(wanted, name, parameters or {}, evolve, version, now_us)
        named = checked_named(request, now_us, DEFAULT_LIMITS)
        self._named[name], self._changes = named, version
        return replace(request_of(named), confirm=confirm)

    def update(
        self,
        name: str,
        parameters: Mapping[str, Value | None] | None = None,
        *,
        filter: Filter | str | None = None,
        confirm: bool = False,
    ) -> Update:
        """Change a subscription, as one: parameters, or the whole filter, or both."""
        version = self._changes + 1
        message = Update(name, version, parameters or {}, filter, confirm)
        changed = updated(self[name].subscription, message, DEFAULT_LIMITS)
        self._named[name], self._changes = NamedSubscription(changed, version), version
        return message

    def cancel(self, name: str) -> Cancel:
        """End a subscription."""
        del self._named[self[name].subscription.id]
        self._in_force.pop(name, None)
        return Cancel(name)

    def unsubscribe(self, wanted: Filter) -> Unsubscribe:
        """End all subscriptions that a filter covers, with a name and without."""
        for name in [name for name, named in self._named.items() if is_covered(named, wanted)]:
            self.cancel(name)
        return Unsubscribe(wanted)

    def again(self) -> list[Subscribe]:
        """What to ask of a broker that has forgotten this client."""
        self._in_force.clear()
        return [request_of(named) for named in self._named.values()]

    # -- what it gets -------------------------------------------------------------------------

    def taken(self, delivery: Deliver) -> tuple[MatchedVersion, ...]:
        """The subscriptions for which a delivery is to be taken; they want it now."""
        event = delivery.publication.event
        taken = tuple(each for each in delivery.matches if self._wants(each.name, event))
        self.stale += not taken and not delivery.unnamed
        return taken

    def _wants(self, name: str, event: Event) -> bool:
        named = self._named.get(name)
        return named is not None and wants(named.subscription, event)

    def confirmed(self, message: InForce) -> None:
        """Take note that a version is in force."""
        if message.name in self._named:
            self._in_force[message.name] = message.version

    def in_force(self, name: str) -> int | None:
        """The version that was last said to be in force everywhere."""
        return self._in_force.get(name)


def wants(subscription: Subscription, event: Event) -> bool:
    """Whether a subscription wants an event, whatever the variables of its broker may be."""
    moment, filter = Moment(event_us(event)), subscription.filter
    if filter.variables:
        filter = filter.relaxed(keep_parameters=True)
    return subscription.lives(moment) and holds(
        filter.node, event.attributes, subscription.true_environment(moment)
    )


def is_covered(named: NamedSubscription, wanted: Filter) -> bool:
    """Whether a filter covers a subscription, as it stands and for all time to come."""
    return covers(wanted, wanted_form(named.subscription))


def request_of(named: NamedSubscription) -> Subscribe:
    """What asks for a subscription as it stands."""
    subscription, version = named
    return Subscribe(
        subscription.filter,
        subscription.id,
        subscription.parameters,
        subscription.evolve,
        version,
        subscription.origin,
    )
