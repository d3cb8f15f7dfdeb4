"""The clients of a random run: their subscriptions, and which events they may and must receive.

While messages are on their way, nobody can tell with which version of a subscription a broker
matches an event. So there are two bounds.

- A client *may* receive an event only if some filter that it had in this round matches it.
- A client *must* receive an event if, for one of its subscriptions, all versions match it from the
  one that was in force at all brokers when the event was published (`InForce` confirmed it, or the
  round began with it) up to the present one. Whichever of them a broker used, it matched.

When the brokers are idle both bounds are the same: the last version of each subscription.
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

VersionsInForce = Mapping[str, tuple[int, int]]
"""By name of a subscription: the number of its predecessors of that name, and a version.

The first tells a subscription from a later one, whose versions begin with 1 again.
"""


@dataclass(slots=True)
class CheckedClient:
    """A client of a random run."""

    address: Client
    filters: list[Filter] = field(default_factory=list)
    """Its filters without a name, none of which covers another."""
    advertisements: list[Advertisement] = field(default_factory=list)
    round_filters: list[Filter] = field(default_factory=list)
    """All filters without a name that it had in this round."""
    state: ClientState = field(default_factory=ClientState)
    versions: dict[str, dict[int, Subscription]] = field(default_factory=dict)
    """Named subscriptions, each with its versions since the start of the round."""
    in_force: dict[str, int] = field(default_factory=dict)
    """By name: the version that all brokers have, or a later one; absent if there is none."""
    ended: Counter[str] = field(default_factory=Counter)
    """By name: the number of subscriptions that have ended."""
    round_versions: list[Subscription] = field(default_factory=list)
    """All versions of all named subscriptions in this round, also of those that have ended."""
    has_session: bool = False
    """Whether its broker knows the client."""
    is_suspended: bool = False
    moves: int = 0
    is_stable: bool = True
    """Whether its filters and advertisements have not changed in this round."""
    received: list[m.Publication] = field(default_factory=list)
    sequences: list[tuple[Event, ...]] = field(default_factory=list)

    # -- messages -----------------------------------------------------------------------------

    def receive(self, message: Message, now_us: int) -> None:  # noqa: ARG002 - of the protocol
        """Record a message from the broker."""
        match message:
            case m.Deliver(publication, _, unnamed):
                if self.state.accepted(message) or unnamed:
                    self.received.append(publication)
            case m.DeliverSequence(_, publications):
                self.sequences.append(tuple(each.event for each in publications))
            case m.InForce(name, version):
                # A confirmation may be late, for a subscription that has ended meanwhile.
                if version in self.versions.get(name, ()):
                    self.in_force[name] = max(version, self.in_force.get(name, 0))

    # -- changes ------------------------------------------------------------------------------

    def begin_round(self) -> None:
        """Start a round: brokers are idle, so the last version of each subscription is in force."""
        self.is_stable = True
        self.round_filters = list(self.filters)
        self.received.clear()
        for name, versions in self.versions.items():
            last = max(versions)
            self.versions[name] = {last: versions[last]}
            self.in_force[name] = last
        self.round_versions = [
            each for versions in self.versions.values() for each in versions.values()
        ]

    def add_version(self, name: str) -> None:
        """Add the version of a subscription that its state has now."""
        subscription, version, _ = self.state[name]
        self.round_versions.append(subscription)
        self.versions.setdefault(name, {})[version] = subscription

    def end_subscription(self, name: str) -> None:
        """Remove a named subscription that was cancelled."""
        del self.versions[name]
        self.in_force.pop(name, None)
        self.ended[name] += 1

    def reset(self) -> None:
        """Start again as a new client, after a departure or the crash of the broker."""
        self.filters, self.advertisements = [], []
        self.state = ClientState()
        for name in list(self.versions):
            self.end_subscription(name)
        self.has_session = self.is_suspended = self.is_stable = False

    # -- expected events ----------------------------------------------------------------------

    def wants(self, event: Event, variables: Mapping[str, Value]) -> bool:
        """Whether the client must receive an event that is published while brokers are idle."""
        return any(each.matches(event) for each in self.filters) or any(
            matches(versions[max(versions)], event, variables)
            for versions in self.versions.values()
        )

    def may_receive(self, event: Event, variables: Iterable[Mapping[str, Value]]) -> bool:
        """Whether some filter of this round matches an event, with the variables of any broker."""
        return any(each.matches(event) for each in self.round_filters) or any(
            matches(each, event, some) for some in variables for each in self.round_versions
        )

    def versions_in_force(self) -> VersionsInForce:
        """The named subscriptions that all brokers have at this moment."""
        return {
            name: (self.ended[name], version)
            for name, version in self.in_force.items()
            if name in self.versions
        }

    def must_receive(self, event: Event, in_force: VersionsInForce) -> bool:
        """Whether all versions of a subscription, from the one in force at publication, match."""
        return any(
            ended == self.ended[name]
            and version in self.versions.get(name, ())
            and all(
                matches(each, event, {})
                for number, each in self.versions[name].items()
                if number >= version
            )
            for name, (ended, version) in in_force.items()
        )


def matches(subscription: Subscription, event: Event, variables: Mapping[str, Value]) -> bool:
    """Whether a subscription matches an event, by the oracle."""
    moment = Moment(event_us(event), variables)
    return subscription.lives(moment) and holds(
        subscription.filter.node, event.attributes, subscription.exact_environment(moment)
    )
