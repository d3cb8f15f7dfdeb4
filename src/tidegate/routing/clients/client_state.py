"""A client's view of its own named subscriptions ("Parametric Subscriptions", figure 5).

Rules.

(1) A change is in force for the client as soon as it makes it. A delivery is accepted only if the
    event matches the subscription as the client has it now, so nothing outdated gets through,
    however long the brokers take to learn of the change (strictness, 3.3).
(2) All changes of a client are numbered, and its broker gets them in that order. The number is the
    version of the subscription; a name that is used again has a higher version than before.

Like a broker, this does no I/O: methods return the message that is to be sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from tidegate.errors import RoutingError, TidegateError
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import DEFAULT_LIMITS
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import covers, event_us, wanted_form
from tidegate.matching.subscription import Moment, Subscription
from tidegate.routing.messages import (
    Cancel,
    Deliver,
    Depart,
    MatchedVersion,
    Message,
    NamedSubscription,
    Subscribe,
    Unsubscribe,
    Update,
)
from tidegate.routing.validation import checked_named_subscription, updated_subscription


class ClientState:
    """The named subscriptions of one client.

    >>> client = ClientState()
    >>> client.subscribe("cheap", "price < :limit", {"limit": 10}, now_us=0).name
    'cheap'
    >>> client.update("cheap", {"limit": 5}).version
    2
    """

    def __init__(self) -> None:
        self._named: dict[str, NamedSubscription] = {}
        self._changes = 0

    def __contains__(self, name: str) -> bool:
        return name in self._named

    def __getitem__(self, name: str) -> NamedSubscription:
        """The present version of a subscription; raises RoutingError if there is none."""
        named = self._named.get(name)
        if named is None:
            raise RoutingError(f"there is no subscription {name!r}; subscribe first")
        return named

    def adopt(self, named: NamedSubscription) -> None:
        """Take a subscription over as the broker has it, in place of this client's own version.

        An earlier process of a durable client has made it, or an update was refused.
        """
        self._named[named.subscription.id] = named
        self._changes = max(self._changes, named.version)

    # -- requests -----------------------------------------------------------------------------

    def subscribe(
        self,
        name: str,
        wanted: Filter | str,
        parameters: Mapping[str, Value] | None = None,
        *,
        now_us: int,
        evolve: Evolve | None = None,
        confirm: bool = False,
        space: str | None = None,
    ) -> Subscribe:
        """Subscribe under a name, in a space; `t` counts from ``now_us``."""
        if name in self._named:
            raise RoutingError(f"there is a subscription {name!r} already; update or cancel it")
        version = self._changes + 1
        request = Subscribe(wanted, name, parameters or {}, evolve, version, now_us, space=space)
        named = checked_named_subscription(request, now_us, DEFAULT_LIMITS)
        self._named[name], self._changes = named, version
        # as it was written: the broker checks all of it against its space
        return replace(subscribe_request(named), wanted=wanted, confirm=confirm)

    def update(
        self,
        name: str,
        parameters: Mapping[str, Value | None] | None = None,
        *,
        filter: Filter | str | None = None,
        confirm: bool = False,
    ) -> Update:
        """Change parameters of a subscription, its filter, or both, in one step."""
        version = self._changes + 1
        message = Update(name, version, parameters or {}, filter, confirm)
        named = self[name]
        updated = updated_subscription(named.subscription, message, DEFAULT_LIMITS)
        self._named[name] = NamedSubscription(updated, version, named.space)
        self._changes = version
        return message

    def cancel(self, name: str) -> Cancel:
        """Cancel a subscription."""
        del self._named[self[name].subscription.id]
        return Cancel(name)

    def unsubscribe(self, wanted: Filter, space: str | None = None) -> Unsubscribe:
        """Cancel all subscriptions in a space that a filter covers, with a name and without."""
        for name, named in list(self._named.items()):
            if is_covered(named, wanted, space):
                self.cancel(name)
        return Unsubscribe(wanted, space)

    def resubscribe(self) -> list[Subscribe]:
        """The requests for a broker that has forgotten this client, with the present versions."""
        return [subscribe_request(named) for named in self._named.values()]

    def follow(self, request: Message, now_us: int) -> None:
        """Take over a request that was made elsewhere, with its own version.

        One that a broker refuses changes nothing here either.
        """
        with suppress(TidegateError):
            match request:
                case Subscribe(name=str(name)) if name not in self._named:
                    self.adopt(checked_named_subscription(request, now_us, DEFAULT_LIMITS))
                case Update(name, version) if name in self._named:
                    named = self._named[name]
                    updated = updated_subscription(named.subscription, request, DEFAULT_LIMITS)
                    self.adopt(NamedSubscription(updated, version, named.space))
                case Cancel(name) if name in self._named:
                    self.cancel(name)
                case Unsubscribe(wanted, space):
                    parsed = parse(wanted) if isinstance(wanted, str) else wanted
                    if isinstance(parsed, Filter):
                        self.unsubscribe(parsed, space)
                case Depart():
                    self._named.clear()

    # -- deliveries ---------------------------------------------------------------------------

    def accepted(self, delivery: Deliver) -> tuple[MatchedVersion, ...]:
        """The matches of a delivery that still hold (rule 1); empty if the event is outdated."""
        event = delivery.publication.event
        return tuple(each for each in delivery.matches if self._matches_now(each.name, event))

    def _matches_now(self, name: str, event: Event) -> bool:
        named = self._named.get(name)
        return named is not None and matches_now(named.subscription, event)


def matches_now(subscription: Subscription, event: Event) -> bool:
    """Whether an event, as of its publication time, matches this version of a subscription.

    Only the broker knows its variables, so predicates with variables count as satisfied.
    """
    moment, filter = Moment(event_us(event)), subscription.filter
    if filter.variables:
        filter = filter.relaxed(keep_parameters=True)
    return subscription.lives(moment) and holds(
        filter.node, event.attributes, subscription.exact_environment(moment)
    )


def is_covered(named: NamedSubscription, wanted: Filter, space: str | None = None) -> bool:
    """Whether a filter in a space covers this version of a subscription, now and ever after.

    Client and broker both decide by this function what an unsubscription cancels.
    """
    return named.space == space and covers(wanted, wanted_form(named.subscription))


def subscribe_request(named: NamedSubscription) -> Subscribe:
    """The request for this version of a subscription."""
    subscription, version, space = named
    return Subscribe(
        subscription.filter,
        subscription.id,
        subscription.parameters,
        subscription.evolve,
        version,
        subscription.origin,
        space=space,
    )
