"""Brokers that talk over links which keep the order of messages; the test says which link is next.

There are no delays: a message waits on its link until the test takes it, so a test can have any
order that a real network can have.
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
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.broker import Broker, BrokerLimits
from tidegate.routing.messages import (
    Address,
    Advertise,
    Client,
    Connect,
    Deliver,
    DeliverSequence,
    Disconnect,
    InForce,
    Interests,
    Key,
    MatchedVersion,
    Message,
    Offers,
    Outgoing,
    Peer,
    Publish,
    Refused,
    Subscribe,
)
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Graph
from tidegate.routing.strategies import strategy

Links = Iterable[tuple[Peer, Peer]]


class Network:
    """Brokers in one domain, and the messages on their way between them."""

    def __init__(
        self,
        links: Links,
        routing: str = "subscription",
        architecture: Architecture = Architecture.ACYCLIC,
        *,
        only_advertised: bool | None = None,
        limits: BrokerLimits | None = None,
        merging: bool = False,
        substrate: str = "poset",
    ) -> None:
        """With ``links``; in a hierarchy each goes from a broker to its master."""
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
        for one, other in links:
            self.connect(one, other)

    def add(self, name: Peer) -> Broker:
        """A broker; a new one if there is none of this name."""
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
        """Link two brokers, and let all have their news."""
        self.add(other)
        is_hierarchy = self._architecture is Architecture.HIERARCHICAL
        self.take(one, self.add(one).join(other, "d", cost_us, as_client=is_hierarchy))
        self.run()

    def cut(self, one: Peer, other: Peer) -> None:
        """Have a link go down: what is on it is lost, and both ends are told."""
        for here, there in ((one, other), (other, one)):
            self.waiting.pop((here, there), None)
        for here, there in ((one, other), (other, one)):
            self.take(here, self.brokers[here].lost(there, self.now_us))

    def ask(self, broker: Peer, client: str, message: Message) -> list[Message]:
        """Let a client ask something of a broker; gives what the client gets at once."""
        known = len(self.received.setdefault(client, []))
        self.take(broker, self.brokers[broker].handle(message, Client(client), self.now_us))
        return self.received[client][known:]

    def subscribe(self, broker: Peer, client: str, wanted: str) -> None:
        self.ask(broker, client, Subscribe(wanted))

    def advertise(self, broker: Peer, client: str, offered: str) -> None:
        self.ask(broker, client, Advertise(offered))

    def publish(self, broker: Peer, client: str, **attributes: object) -> None:
        """Publish something; every event has a time of its own."""
        self.now_us += 1
        self.ask(broker, client, Publish(Event.of(attributes)))

    def take(self, sender: Peer, sent: Outgoing) -> None:
        """Put what a broker sends on its links; what is for clients they have at once."""
        for receiver, message in sent:
            if isinstance(receiver, Client):
                self.received.setdefault(receiver.identity, []).append(message)
            else:
                is_linked = receiver in self.brokers[sender].around.domain_of
                assert is_linked or isinstance(message, Connect | Disconnect | Refused)
                self.waiting.setdefault((sender, receiver), deque()).append(message)

    def step(self, random: Random | None = None) -> bool:
        """Let one message arrive, on the first link or on any; False if there is none."""
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
        """Let messages arrive until something is so."""
        while not done():
            assert self.step()

    def wait(self) -> None:
        """Let time pass until no broker has anything to do."""
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
        """The attributes of the events that a client got, in order."""
        return [
            dict(each.publication.event.attributes)
            for each in self.received.get(client, ())
            if isinstance(each, Deliver)
        ]

    def matches(self, client: str) -> list[tuple[MatchedVersion, ...]]:
        """The subscriptions, with versions, for which a client got each event."""
        return [each.matches for each in self.received.get(client, ()) if isinstance(each, Deliver)]

    def in_force(self, client: str) -> list[tuple[str, int]]:
        """What a client was told is in force, in order."""
        return [
            (each.name, each.version)
            for each in self.received.get(client, ())
            if isinstance(each, InForce)
        ]

    def sequences(self, client: str) -> list[list[dict[str, object]]]:
        """The attributes of the sequences that a client got, in order."""
        return [
            [dict(found.event.attributes) for found in each.publications]
            for each in self.received.get(client, ())
            if isinstance(each, DeliverSequence)
        ]

    def is_empty(self) -> bool:
        """Whether no broker holds anything for anyone, and nothing is on its way."""
        return not any(self.waiting.values()) and not any(
            len(table)
            for each in self.brokers.values()
            for table in (
                each.subscriptions.poset,
                each.offers.poset,
                each.sessions,
                each.waves,
                each.moves,
                each.patterns,
                each.claims._named,
            )
        )


class Ledger:
    """What a neighbour holds from a broker, by the names under which it was sent."""

    def __init__(self) -> None:
        self.held: dict[Key, WantedFilter | Advertisement] = {}

    def take(self, message: Message) -> tuple[list[str], list[str]]:
        """Apply a message; gives the texts of what is new and of what is taken back."""
        if isinstance(message, Interests):
            added: list[tuple[Key, WantedFilter | Advertisement]] = [*message.wanted]
            dropped = message.unwanted
        else:
            assert isinstance(message, Offers)
            added, dropped = [*message.offered], message.withdrawn
        texts = [str(self.held.pop(key)) for key in dropped]
        for key, item in added:
            assert key not in self.held
            self.held[key] = item
        return sorted(str(item) for _, item in added), sorted(texts)

    def texts(self) -> list[str]:
        return [str(item) for item in self.held.values()]


class Around:
    """One broker with neighbours that only take note of what they get."""

    def __init__(self, broker: Broker, *neighbours: Peer, master: Peer | None = None) -> None:
        self.broker = broker
        self.filters = {name: Ledger() for name in neighbours}
        self.offers = {name: Ledger() for name in neighbours}
        self.others: list[tuple[Address, Message]] = []
        self._keys = 0
        self._names: dict[tuple[Peer, str], Key] = {}
        architecture = Architecture.ACYCLIC if master is None else Architecture.HIERARCHICAL
        domain = Domain("d", architecture, broker.name)
        for name in neighbours:
            domain.link(name, 1, is_master=name == master)
        broker.add_domain(domain)

    def tell(self, sender: Address, message: Message) -> dict[Peer, tuple[list[str], list[str]]]:
        """Send the broker a message; gives what each neighbour then has more, and less.

        What is no filter and no advertisement goes to ``others``.
        """
        told: dict[Peer, tuple[list[str], list[str]]] = {}
        ledgers: list[Ledger] = []
        self.others = []
        for receiver, sent in self.broker.handle(message, sender, now_us=1):
            if isinstance(sent, Interests | Offers) and isinstance(receiver, str):
                ledger = (self.filters if isinstance(sent, Interests) else self.offers)[receiver]
                assert ledger not in ledgers  # all that is new goes in one message
                ledgers.append(ledger)
                more, less = told.setdefault(receiver, ([], []))
                added, dropped = ledger.take(sent)
                more += added
                less += dropped
            else:
                self.others.append((receiver, sent))
        return told

    def want(self, peer: Peer, wanted: Filter) -> dict[Peer, tuple[list[str], list[str]]]:
        """Let a neighbour subscribe."""
        self._keys += 1
        key = self._names[peer, str(wanted)] = Key(self._keys, None)
        return self.tell(peer, Interests(((key, wanted),)))

    def offer(self, peer: Peer, offered: Advertisement) -> dict[Peer, tuple[list[str], list[str]]]:
        """Let a neighbour advertise."""
        self._keys += 1
        key = self._names[peer, str(offered)] = Key(self._keys, None)
        return self.tell(peer, Offers(((key, offered),)))

    def name_of(self, peer: Peer, text: str) -> Key:
        """What a neighbour called what it sent."""
        return self._names[peer, text]

    def poset(self) -> dict[str, tuple[set[str], set[str]]]:
        """For each filter who asked for it, and where it was sent."""
        return {str(node.item): sets_of(node) for node in self.broker.subscriptions.poset}


def sets_of(node: PosetNode[WantedFilter]) -> tuple[set[str], set[str]]:
    """The subscribers and the forwards of a filter, by name."""
    return set(map(_name, node.subscribers)), set(map(_name, node.forwards))


def _name(each: Hashable) -> str:
    name = getattr(each, "identity", None) or getattr(each, "peer", None)
    return str(each if name is None else name)


_CACHES = frozenset(["now_us", "_graph", "_box", "_boxes"])


def state_of(thing: object) -> object:
    """All that can be reached from a thing, without what is only remembered to save time."""
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
