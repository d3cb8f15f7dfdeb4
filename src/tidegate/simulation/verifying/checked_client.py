"""The clients of a random run: what they ask for, what they should get and what they got.

A client may get an event only if something that it asked for matches it. It must get an event if it
was reachable and asked for it all the while: as long as nothing says what brokers go by, that is
with every version that a subscription had since then. What was said to be in force
(`InForce`) counts from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.subscription import Moment, Subscription
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState
from tidegate.routing.messages import Client, Message

Sure = Mapping[str, tuple[int, int]]
"""For names of subscriptions: how many of the name had ended before, and a version."""


@dataclass(slots=True)
class Actor:
    """A client of a run."""

    client: Client
    filters: list[Filter] = field(default_factory=list)
    advertisements: list[Advertisement] = field(default_factory=list)
    ever: list[Filter] = field(default_factory=list)
    """All filters of this round and those it began with."""
    state: ClientState = field(default_factory=ClientState)
    named: dict[str, dict[int, Subscription]] = field(default_factory=dict)
    """The versions of each subscription with a name since brokers were at rest, or it began."""
    in_force: dict[str, int] = field(default_factory=dict)
    """The version of each that all brokers have at least; absent if there is none yet."""
    ended: Counter[str] = field(default_factory=Counter)
    """How often a subscription of a name has ended: who comes after it is another one."""
    ever_named: list[Subscription] = field(default_factory=list)
    """All versions of all of them in this round."""
    is_known: bool = False
    """Whether its broker knows of it."""
    is_suspended: bool = False
    moves: int = 0
    is_stable: bool = True
    """Whether its filters have stayed as they were in this round."""
    received: list[m.Publication] = field(default_factory=list)
    sequences: list[tuple[Event, ...]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    # -- what comes ---------------------------------------------------------------------------

    def receive(self, message: Message, now_us: int) -> None:  # noqa: ARG002 - time is of no matter
        """Take what comes from the broker."""
        match message:
            case m.Deliver(publication, _, unnamed):
                if self.state.taken(message) or unnamed:
                    self.received.append(publication)
            case m.DeliverSequence(_, publications):
                self.sequences.append(tuple(each.event for each in publications))
            case m.InForce(name, version):
                self.state.confirmed(message)
                if version in self.named.get(name, ()):
                    self.in_force[name] = max(version, self.in_force.get(name, 0))
            case m.Refused(_, reason):
                self.refused.append(reason)

    # -- what it does -------------------------------------------------------------------------

    def begin_round(self) -> None:
        """Take it that brokers are at rest."""
        self.is_stable = True
        self.ever = list(self.filters)
        self.received.clear()
        for name, versions in self.named.items():
            last = max(versions)
            self.named[name] = {last: versions[last]}
            self.in_force[name] = last
        self.ever_named = [each for versions in self.named.values() for each in versions.values()]

    def changed(self, name: str) -> None:
        """Take note of a new version of a subscription."""
        subscription, version = self.state[name]
        self.ever_named.append(subscription)
        self.named.setdefault(name, {})[version] = subscription

    def cancelled(self, name: str) -> None:
        """Take note of the end of a subscription."""
        del self.named[name]
        self.in_force.pop(name, None)
        self.ended[name] += 1

    def forgotten(self) -> None:
        """Be as if new: the broker has forgotten the client."""
        self.filters, self.advertisements = [], []
        self.state = ClientState()
        for name in list(self.named):
            self.cancelled(name)
        self.is_known = self.is_suspended = self.is_stable = False

    # -- what it should get -------------------------------------------------------------------

    def wants(self, event: Event, variables: Mapping[str, Value]) -> bool:
        """Whether it should get an event when brokers are at rest."""
        return any(each.matches(event) for each in self.filters) or any(
            matches(versions[max(versions)], event, variables) for versions in self.named.values()
        )

    def ever_asked(self, event: Event, variables: Iterable[Mapping[str, Value]]) -> bool:
        """Whether it asked for an event at any time of this round, at any broker."""
        return any(each.matches(event) for each in self.ever) or any(
            matches(each, event, some) for some in variables for each in self.ever_named
        )

    def sure_names(self) -> Sure:
        """The subscriptions that all brokers have, and from which version on they go by them."""
        return {
            name: (self.ended[name], version)
            for name, version in self.in_force.items()
            if name in self.named
        }

    def is_due(self, event: Event, sure: Sure) -> bool:
        """Whether an event has matched, ever since, one of those that were sure when it came."""
        return any(
            ended == self.ended[name]
            and version in self.named.get(name, ())
            and all(
                matches(each, event, {})
                for number, each in self.named[name].items()
                if number >= version
            )
            for name, (ended, version) in sure.items()
        )


def matches(subscription: Subscription, event: Event, variables: Mapping[str, Value]) -> bool:
    """Whether a subscription matches an event, as the oracle says."""
    moment = Moment(event_us(event), variables)
    return subscription.lives(moment) and holds(
        subscription.filter.node, event.attributes, subscription.true_environment(moment)
    )
