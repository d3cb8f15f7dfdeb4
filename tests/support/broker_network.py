"""Brokers for tests: a network of them with links under the test's control, and a single one.

A message waits on its link until the test lets it arrive; there are no delays. Links keep the order
of messages, but the test chooses from which link the next one arrives. So it can produce any order
that a real network can produce.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from random import Random
from types import FunctionType, MethodType

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.spaces import Space
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.broker import Broker, BrokerLimits
from tidegate.routing.cell_updates import with_cells
from tidegate.routing.grants import Grant
from tidegate.routing.messages import (
    Address,
    Advertise,
    AdvertisementDelta,
    Client,
    Connect,
    Deliver,
    DeliverSequence,
    Disconnect,
    FilterDelta,
    InForce,
    Key,
    MatchedVersion,
    Message,
    Outgoing,
    Peer,
    Publish,
    Refused,
    Subscribe,
)
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Graph
from tidegate.routing.strategies import strategy
from tidegate.routing.summaries.settings import SummarySettings

Links = Iterable[tuple[Peer, Peer]]


class Network:
    """Brokers in one domain, the messages on their way between them, and what clients received."""

    def __init__(
        self,
        links: Links,
        routing: str = "subscription",
        architecture: Architecture = Architecture.ACYCLIC,
        *,
        only_advertised: bool | None = None,
        limits: BrokerLimits | None = None,
        merging: bool = False,
        substrate: str | None = None,
        spaces: Iterable[Space] = (),
        summaries: SummarySettings | None = None,
        grant_of: Callable[[str], Grant] | None = None,
    ) -> None:
        """Connect brokers by ``links``; in a hierarchy each goes from a broker to its master."""
        self.now_us = 1
        self.brokers: dict[Peer, Broker] = {}
        self.waiting: dict[tuple[Peer, Peer], deque[Message]] = {}
        self.received: dict[str, list[Message]] = {}
        self.refused: list[Refused] = []
        self._routing = routing
        self._architecture = architecture
        self._only_advertised = only_advertised
        self._limits = limits
        self._merging = merging
        self._substrate = substrate
        self._spaces = tuple(spaces)
        self._summaries = summaries
        self._grant_of = grant_of
        for one, other in links:
            self.connect(one, other)

    def add(self, name: Peer) -> Broker:
        """The broker with this name, which is started if there is none."""
        if name not in self.brokers:
            routing = strategy(self._routing)
            broker = self.brokers[name] = Broker(
                name,
                routing,
                begun_us=self.now_us,
                only_advertised=self._only_advertised,
                limits=self._limits,
                merging=self._merging,
                substrate=self._substrate,
                spaces=self._spaces,
                summaries=self._summaries,
                grant_of=self._grant_of,
            )
            broker.add_domain(
                Domain(
                    "d",
                    self._architecture,
                    name,
                    tree_per_source=routing.tree_per_source,
                    floods=not routing.sends_subscriptions,
                )
            )
        return self.brokers[name]

    def connect(self, one: Peer, other: Peer, cost_us: int = 1) -> None:
        """Link two brokers, and let all messages arrive."""
        self.add(other)
        is_hierarchy = self._architecture is Architecture.HIERARCHICAL
        self.take(one, self.add(one).join(other, "d", cost_us, as_client=is_hierarchy))
        self.run()

    def cut(self, one: Peer, other: Peer) -> None:
        """Take a link down: messages on it are lost, and both ends are told."""
        for here, there in ((one, other), (other, one)):
            self.waiting.pop((here, there), None)
        for here, there in ((one, other), (other, one)):
            self.take(here, self.brokers[here].link_lost(there, self.now_us))

    def ask(self, broker: Peer, client: str, message: Message) -> list[Message]:
        """Send a request of a client to a broker; returns what the client receives at once."""
        before = len(self.received.setdefault(client, []))
        self.take(broker, self.brokers[broker].handle(message, Client(client), self.now_us))
        return self.received[client][before:]

    def subscribe(self, broker: Peer, client: str, wanted: str) -> None:
        self.ask(broker, client, Subscribe(wanted))

    def advertise(self, broker: Peer, client: str, advertisement: str) -> None:
        self.ask(broker, client, Advertise(advertisement))

    def publish(self, broker: Peer, client: str, **attributes: object) -> None:
        """Publish an event; each one has a later time than the one before."""
        self.now_us += 1
        self.ask(broker, client, Publish(Event.of(attributes)))

    def take(self, sender: Peer, sent: Outgoing) -> None:
        """Put what a broker sends on its links; clients receive their messages at once."""
        for receiver, message in sent:
            if isinstance(receiver, Client):
                self.received.setdefault(receiver.identity, []).append(message)
            else:
                is_linked = receiver in self.brokers[sender].domains.domain_of
                assert is_linked or isinstance(message, Connect | Disconnect | Refused)
                self.waiting.setdefault((sender, receiver), deque()).append(message)

    def step(self, random: Random | None = None) -> bool:
        """Let one message arrive, from the first or a random link; False if there is none."""
        links = [link for link, messages in self.waiting.items() if messages]
        if not links:
            return False
        self.arrive(*(links[0] if random is None else random.choice(links)))
        return True

    def arrive(self, sender: Peer, receiver: Peer) -> None:
        """Let the next message on a link arrive."""
        message = self.waiting[sender, receiver].popleft()
        if isinstance(message, Refused):
            self.refused.append(message)
        self.take(receiver, self.brokers[receiver].handle(message, sender, self.now_us))

    def run(self, random: Random | None = None) -> None:
        """Let all messages arrive."""
        while self.step(random):
            pass

    def run_until(self, done: Callable[[], bool]) -> None:
        """Let messages arrive until a condition holds."""
        while not done():
            assert self.step()

    def wait(self) -> None:
        """Let messages arrive and time pass until no broker has anything to do."""
        self.run()
        while True:
            due = {
                name: at for name, each in self.brokers.items() if (at := each.due_us) is not None
            }
            if not due:
                return
            name = min(due, key=lambda each: due[each])
            self.now_us = max(self.now_us, due[name])
            self.take(name, self.brokers[name].wake(self.now_us))
            self.run()

    def delivered(self, client: str) -> list[dict[str, object]]:
        """The attributes of the events that a client received, in order."""
        return [
            dict(each.publication.event.attributes)
            for each in self.received.get(client, ())
            if isinstance(each, Deliver)
        ]

    def matches(self, client: str) -> list[tuple[MatchedVersion, ...]]:
        """The matched versions of each event that a client received, in order."""
        return [each.matches for each in self.received.get(client, ()) if isinstance(each, Deliver)]

    def in_force(self, client: str) -> list[tuple[str, int]]:
        """The versions that were confirmed to a client, in order."""
        return [
            (each.name, each.version)
            for each in self.received.get(client, ())
            if isinstance(each, InForce)
        ]

    def sequences(self, client: str) -> list[list[dict[str, object]]]:
        """The attributes of the events in each sequence that a client received, in order."""
        return [
            [dict(publication.event.attributes) for publication in each.publications]
            for each in self.received.get(client, ())
            if isinstance(each, DeliverSequence)
        ]

    def is_empty(self) -> bool:
        """Whether no broker holds anything for anyone, and no message is on its way."""
        clients = [Client(identity) for identity in self.received]
        return not any(self.waiting.values()) and not any(
            len(broker.subscriptions.poset)
            + len(broker.advertisements.poset)
            + len(broker.waves)
            + len(broker.moves)
            + len(broker.patterns)
            + sum(client in broker.sessions for client in clients)
            + sum(broker.named.count(client) for client in clients)
            for broker in self.brokers.values()
        )


class Ledger:
    """What a neighbour holds from a broker, by key."""

    def __init__(self) -> None:
        self.held: dict[Key, WantedFilter | Advertisement] = {}

    def take(self, message: Message) -> tuple[list[str], list[str]]:
        """Apply a delta; returns the texts of what it adds and of what it removes.

        An update counts as both.
        """
        assert isinstance(message, FilterDelta | AdvertisementDelta)
        removed = [str(self.held.pop(key)) for key in message.removed]
        added: list[tuple[Key, WantedFilter | Advertisement]] = [*message.added]
        for key, cells in message.updated if isinstance(message, FilterDelta) else ():
            old = self.held.pop(key)
            assert not isinstance(old, Advertisement)
            added.append((key, with_cells(old, cells)))
            removed.append(str(old))
        for key, item in added:
            assert key not in self.held
            self.held[key] = item
        return sorted(str(item) for _, item in added), sorted(removed)

    def texts(self) -> list[str]:
        return [str(item) for item in self.held.values()]


class BrokerHarness:
    """One broker with neighbours that only record what they are sent."""

    def __init__(self, broker: Broker, *neighbours: Peer, master: Peer | None = None) -> None:
        self.broker = broker
        self.filters = {name: Ledger() for name in neighbours}
        self.advertisements = {name: Ledger() for name in neighbours}
        self.others: list[tuple[Address, Message]] = []
        self._last_key = 0
        self._keys: dict[tuple[Peer, str], Key] = {}
        architecture = Architecture.ACYCLIC if master is None else Architecture.HIERARCHICAL
        domain = Domain("d", architecture, broker.name)
        for name in neighbours:
            domain.link(name, 1, is_master=name == master)
        broker.add_domain(domain)

    def send(self, sender: Address, message: Message) -> dict[Peer, tuple[list[str], list[str]]]:
        """Send the broker a message; returns what that adds and removes at each neighbour.

        Messages that are no deltas go to ``others``.
        """
        changes: dict[Peer, tuple[list[str], list[str]]] = {}
        ledgers: list[Ledger] = []
        self.others = []
        for receiver, sent in self.broker.handle(message, sender, now_us=1):
            if isinstance(sent, FilterDelta | AdvertisementDelta) and isinstance(receiver, str):
                is_filters = isinstance(sent, FilterDelta)
                ledger = (self.filters if is_filters else self.advertisements)[receiver]
                assert ledger not in ledgers  # all that changes goes in one message
                ledgers.append(ledger)
                all_added, all_removed = changes.setdefault(receiver, ([], []))
                added, removed = ledger.take(sent)
                all_added += added
                all_removed += removed
            else:
                self.others.append((receiver, sent))
        return changes

    def subscribe(self, peer: Peer, wanted: Filter) -> dict[Peer, tuple[list[str], list[str]]]:
        """Let a neighbour subscribe."""
        self._last_key += 1
        key = self._keys[peer, str(wanted)] = Key(self._last_key, None)
        return self.send(peer, FilterDelta(((key, wanted),)))

    def advertise(
        self, peer: Peer, advertisement: Advertisement
    ) -> dict[Peer, tuple[list[str], list[str]]]:
        """Let a neighbour advertise."""
        self._last_key += 1
        key = self._keys[peer, str(advertisement)] = Key(self._last_key, None)
        return self.send(peer, AdvertisementDelta(((key, advertisement),)))

    def key_of(self, peer: Peer, text: str) -> Key:
        """The key under which a neighbour has sent a filter or advertisement."""
        return self._keys[peer, text]

    def poset(self) -> dict[str, tuple[set[str], set[str]]]:
        """The names of the subscribers and of the forwards of each filter."""
        return {str(node.item): sets_of(node) for node in self.broker.subscriptions.poset}


def sets_of(node: PosetNode[WantedFilter]) -> tuple[set[str], set[str]]:
    """The names of the subscribers and of the forwards of a filter."""
    return set(map(_name, node.subscribers)), set(map(_name, node.forwards))


def _name(each: Hashable) -> str:
    name = getattr(each, "identity", None) or getattr(each, "peer", None)
    return str(each if name is None else name)


_CACHES = frozenset(["now_us", "parser", "_graph", "_box", "_boxes"])


def state_of(thing: object) -> object:
    """All state that can be reached from an object, except for caches, as comparable values."""
    return _state(thing, {})


def _state(thing: object, seen: dict[int, int]) -> object:
    if thing is None or isinstance(thing, str | int | float | bool | datetime | Enum):
        return thing
    if isinstance(thing, Filter | Advertisement | Pattern):
        return str(thing)
    if isinstance(thing, FunctionType | MethodType | Graph | type):
        return getattr(thing, "__qualname__", "a graph")
    if id(thing) in seen:
        return f"#{seen[id(thing)]}"
    seen[id(thing)] = len(seen)
    if isinstance(thing, Mapping):
        return [(_state(key, seen), _state(value, seen)) for key, value in thing.items()]
    if isinstance(thing, frozenset | set):
        return sorted(str(_state(each, seen)) for each in thing)
    if isinstance(thing, list | tuple | deque):
        return [_state(each, seen) for each in thing]
    return type(thing).__name__, [
        (name, _state(getattr(thing, name), seen))
        for name in _attributes(thing)
        if name not in _CACHES
    ]


def _attributes(thing: object) -> list[str]:
    if is_dataclass(thing):
        return [each.name for each in fields(thing)]
    slots = [
        name
        for kind in type(thing).__mro__
        for name in getattr(kind, "__slots__", ())
        if hasattr(thing, name)
    ]
    return [*slots, *getattr(thing, "__dict__", {})]
