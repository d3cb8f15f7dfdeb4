"""A deterministic world for brokers: links with delay and bandwidth, queues, processors, faults.

Rules. (1) One seed is one run: what happens at the same time happens in the order in which it was
scheduled, what comes from outside (`at`) before messages, and all chance comes from one generator.
So the same requests at the same times give the same messages, whoever schedules them. (2) A broker
in here is the same `Broker` that runs on a network; only the time and the links are simulated. (3)
A link keeps the order of messages and loses none while it is up. What is on it when it goes down is
lost, and so is the state that it carried: both ends are told.

Theory of operation. A heap holds what is to happen, by time. A message takes the delay of its link
and the time its bytes need; then it waits until the broker is free, takes its processor for as long
as such a message costs, and is handled when that is over.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from time import process_time
from typing import Protocol

from tidegate.errors import SimulationError, TopologyError
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Address, Client, Message, Notify, Outgoing, Peer
from tidegate.routing.overlay.domains import Architecture, Domain, DomainPlan
from tidegate.routing.overlay.graph import Announcement, Graph
from tidegate.routing.strategies import Strategy, strategy
from tidegate.simulation.costs import FREE, Costs, unshared
from tidegate.simulation.overlays.topology import Link, Topology

Action = Callable[[], None]

_INSIDE = 1 << 62
"""Added to the numbers of messages, so that they come after what comes from outside."""


class Receiver(Protocol):
    """A client in the world."""

    def receive(self, message: Message, now_us: int) -> None:
        """Take what comes from its broker."""
        ...


class Watcher(Protocol):
    """Is told of each message that arrives, for a trace."""

    def __call__(self, now_us: int, sender: Address, receiver: Address, message: Message) -> None:
        """Take note of a message."""
        ...


class Stopwatch(Protocol):
    """Is told how much of the real processor a broker took for a message."""

    def __call__(self, message: Message, seconds: float) -> None:
        """Take note of it."""
        ...


@dataclass(slots=True)
class LinkDirection:
    """One direction of a link."""

    delay_us: int
    bandwidth_bytes_per_s: float | None
    free_at_us: int = 0
    arrived_at_us: int = 0
    """When the last message on it arrives."""
    epoch: int = 0
    """How often it was down; what was sent before that does not arrive."""
    is_up: bool = True
    sent: int = 0
    received: int = 0
    """The number of the last message that arrived; a second copy has no greater one."""
    messages: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Site:
    """A broker in the world, with its processor."""

    broker: Broker
    free_at_us: int = 0
    waiting: int = 0
    waiting_max: int = 0
    handled: int = 0
    in_vain: int = 0
    """Events that came from a neighbour and were neither delivered nor passed on."""
    busy_us: int = 0
    is_up: bool = True
    epoch: int = 0
    alarm_us: int | None = None
    """When the broker is to be woken."""


@dataclass(frozen=True, slots=True)
class Weather:
    """What goes wrong at random, on every link."""

    extra_delay_us_max: int = 0
    duplicated: float = 0.0
    """The share of messages that the transport carries twice."""


@dataclass(slots=True)
class World:
    """Brokers, links and clients, and the time."""

    topology: Topology
    routing: str
    seed: int = 0
    costs: Costs = FREE
    weather: Weather = field(default_factory=Weather)
    watcher: Watcher | None = None
    stopwatch: Stopwatch | None = None
    only_advertised: bool | None = None
    merging: bool = False
    """Whether brokers send filters merged where that is exact."""
    substrate: str = "poset"
    """What finds the filters that an event matches, in brokers."""
    now_us: int = field(default=0, init=False)
    sites: dict[Peer, Site] = field(default_factory=dict, init=False)
    lines: dict[tuple[Peer, Peer], LinkDirection] = field(default_factory=dict, init=False)
    clients: dict[Client, Receiver] = field(default_factory=dict, init=False)
    home: dict[Client, Peer] = field(default_factory=dict, init=False)
    """The broker at which each client is."""
    kinds: Counter[type[Message]] = field(default_factory=Counter, init=False)
    """How many messages of each type have arrived, at brokers and clients."""
    random: Random = field(init=False)
    _strategy: Strategy = field(init=False)
    _agenda: list[tuple[int, int, Action]] = field(default_factory=list, init=False)
    _scheduled: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._strategy = strategy(self.routing)
        plans = {name: self._plan(name) for name in self.topology.domains}
        for name in self.topology.brokers:
            self.sites[name] = Site(self._broker(name, plans))
        for link in self.topology.links:
            self._lay(link)

    def _plan(self, domain: str) -> DomainPlan:
        near: dict[Peer, dict[Peer, int]] = {}
        for link in self.topology.links:
            if link.domain == domain:
                near.setdefault(link.a, {})[link.b] = _time_us(link)
                near.setdefault(link.b, {})[link.a] = _time_us(link)
        said = {
            broker: Announcement(broker, 0, tuple(sorted(costs.items())))
            for broker, costs in near.items()
        }
        return DomainPlan(said, Graph(near))

    def _broker(self, name: Peer, plans: dict[str, DomainPlan]) -> Broker:
        broker = Broker(
            name,
            self._strategy,
            begun_us=self.now_us,
            only_advertised=self.only_advertised,
            merging=self.merging,
            substrate=self.substrate,
        )
        broker.variables.provide("load", lambda _time: self.sites[name].waiting)
        broker.variables.provide("free_bandwidth", lambda _time: self._free_bandwidth(name))
        mine = dict.fromkeys(
            self.topology.link(name, each).domain for each in self.topology.neighbours(name)
        )
        for domain in mine:
            broker.add_domain(
                Domain(
                    domain,
                    self.topology.domains[domain],
                    name,
                    tree_per_source=self._strategy.tree_per_source,
                    floods=not self._strategy.sends_subscriptions,
                    plan=plans.get(domain),
                )
            )
        return broker

    def _free_bandwidth(self, name: Peer) -> float | None:
        """Bytes a second of the links from a broker that carry nothing now; None without limits."""
        lines = [line for (sender, _), line in self.lines.items() if sender == name]
        limits = [(line, line.bandwidth_bytes_per_s) for line in lines]
        free = [
            limit if line.free_at_us <= self.now_us else 0.0
            for line, limit in limits
            if limit is not None
        ]
        return sum(free) if free else None

    def _lay(self, link: Link) -> None:
        """Have a link, both ways, as the plan says."""
        in_hierarchy = self.topology.domains[link.domain] is Architecture.HIERARCHICAL
        for one, other in ((link.a, link.b), (link.b, link.a)):
            self.lines[one, other] = LinkDirection(_time_us(link), link.bandwidth_bytes_per_s)
            broker = self.sites[one].broker
            domain = broker.around.domains[link.domain]
            domain.link(other, _time_us(link), is_master=in_hierarchy and one == link.b)
            broker.around.domain_of[other] = domain

    # -- time ---------------------------------------------------------------------------------

    def at(self, time_us: int, action: Action) -> None:
        """Have something happen at a time, before the messages of that time."""
        self._scheduled += 1
        heapq.heappush(self._agenda, (max(time_us, self.now_us), self._scheduled, action))

    def _later(self, time_us: int, action: Action) -> None:
        """Have something happen in the world itself."""
        self._scheduled += 1
        heapq.heappush(self._agenda, (time_us, _INSIDE + self._scheduled, action))

    def run(self, until_us: int | None = None, *, actions_max: int | None = None) -> None:
        """Let time pass until nothing more happens, or until a time.

        Raises SimulationError if more happens than may.
        """
        agenda = self._agenda
        done = 0
        while agenda and (until_us is None or agenda[0][0] <= until_us):
            self.now_us, _, action = heapq.heappop(agenda)
            action()
            done += 1
            if done == actions_max:
                raise SimulationError(f"the world has not come to rest after {done:,} actions")
        if until_us is not None:
            self.now_us = max(self.now_us, until_us)

    @property
    def next_us(self) -> int | None:
        """When something happens next; None if nothing does."""
        return self._agenda[0][0] if self._agenda else None

    @property
    def arrived(self) -> int:
        """How many messages have arrived."""
        return self.kinds.total()

    # -- clients ------------------------------------------------------------------------------

    def admit(self, client: Client, receiver: Receiver, broker: Peer) -> None:
        """Have a client at a broker."""
        self.clients[client] = receiver
        self.home[client] = broker

    def request(self, client: Client, message: Message) -> None:
        """Let a client send something to its broker."""
        self._arrive(self.home[client], client, message)

    # -- messages -----------------------------------------------------------------------------

    def _send(self, sender: Peer, outgoing: Outgoing) -> None:
        for receiver, message in outgoing:
            if isinstance(receiver, Client):
                self._hand(sender, receiver, message)
            else:
                self._carry(sender, receiver, message)

    def _hand(self, sender: Peer, client: Client, message: Message) -> None:
        """Give a client what is for it, if it is there."""
        if self.home.get(client) != sender:
            return
        self.kinds[type(message)] += 1
        if self.watcher is not None:
            self.watcher(self.now_us, sender, client, message)
        self.clients[client].receive(message, self.now_us)

    def _carry(self, sender: Peer, receiver: Peer, message: Message) -> None:
        line = self.lines.get((sender, receiver))
        if line is None or not line.is_up:
            return
        size = self.costs.bytes(message)
        line.messages += 1
        line.bytes += size
        leaves = self.now_us
        if line.bandwidth_bytes_per_s is not None:
            leaves = max(leaves, line.free_at_us) + round(size * 1e6 / line.bandwidth_bytes_per_s)
            line.free_at_us = leaves
        arrives = leaves + line.delay_us
        if self.weather.extra_delay_us_max:
            arrives += self.random.randrange(self.weather.extra_delay_us_max + 1)
        line.arrived_at_us = arrives = max(arrives, line.arrived_at_us)
        line.sent += 1
        number, epoch = line.sent, line.epoch

        def arrive() -> None:
            if line.epoch == epoch and number > line.received:
                line.received = number
                self._arrive(receiver, sender, message)

        self._later(arrives, arrive)
        if self.weather.duplicated and self.random.random() < self.weather.duplicated:
            self._later(arrives + self.random.randrange(1_000_000), arrive)

    def _arrive(self, receiver: Peer, sender: Address, message: Message) -> None:
        site = self.sites[receiver]
        if not site.is_up:
            return
        self.kinds[type(message)] += 1
        if self.watcher is not None:
            self.watcher(self.now_us, sender, receiver, message)
        cost_us = self.costs.processor_us(message, site.broker)
        if not cost_us and site.free_at_us <= self.now_us:
            self._handle(site, sender, message)
            return
        site.waiting += 1
        site.waiting_max = max(site.waiting_max, site.waiting)
        site.busy_us += cost_us
        site.free_at_us = max(self.now_us, site.free_at_us) + cost_us
        epoch = site.epoch
        line = None if isinstance(sender, Client) else self.lines[sender, receiver]
        line_epoch = 0 if line is None else line.epoch

        def handle() -> None:
            if site.epoch != epoch:
                return
            site.waiting -= 1
            if line is None or line.epoch == line_epoch:  # else it is lost with the link
                self._handle(site, sender, message)

        self._later(site.free_at_us, handle)

    def _handle(self, site: Site, sender: Address, message: Message) -> None:
        site.handled += 1
        if self.stopwatch is not None:
            message = unshared(message)
        begun_s = process_time()
        sent = site.broker.handle(message, sender, self.now_us)
        if self.stopwatch is not None:
            self.stopwatch(message, process_time() - begun_s)
        if sent:
            self._send(site.broker.name, sent)
        elif type(message) is Notify:
            site.in_vain += 1
        self._set_alarm(site)

    def _set_alarm(self, site: Site) -> None:
        """Wake a broker when it has something to do."""
        due_us = site.broker.due_us
        if due_us is None or (site.alarm_us is not None and site.alarm_us <= due_us):
            return
        site.alarm_us = due_us
        broker = site.broker

        def wake() -> None:
            if site.broker is broker and site.is_up and site.alarm_us == due_us:
                site.alarm_us = None
                self._send(broker.name, broker.wake(self.now_us))
                self._set_alarm(site)

        self._later(max(due_us, self.now_us), wake)

    # -- faults -------------------------------------------------------------------------------

    def cut(self, a: Peer, b: Peer) -> None:
        """Take a link down."""
        for one, other in ((a, b), (b, a)):
            line = self._line(one, other)
            if line.is_up:
                line.is_up = False
                line.epoch += 1
                line.free_at_us = line.arrived_at_us = 0
                self._tell_lost(one, other)

    def _tell_lost(self, broker: Peer, peer: Peer) -> None:
        site = self.sites[broker]
        if site.is_up:
            self._send(broker, site.broker.lost(peer, self.now_us))

    def mend(self, a: Peer, b: Peer) -> None:
        """Bring a link up again; the brokers at its ends connect."""
        if not (self.sites[a].is_up and self.sites[b].is_up):
            return
        link = self.topology.link(a, b)
        for one, other in ((a, b), (b, a)):
            self._line(one, other).is_up = True
        site = self.sites[link.b]
        if site.broker.knows(link.a):
            return
        in_hierarchy = self.topology.domains[link.domain] is Architecture.HIERARCHICAL
        request = site.broker.join(link.a, link.domain, _time_us(link), as_client=in_hierarchy)
        self._send(link.b, request)

    def crash(self, broker: Peer) -> None:
        """Let a broker lose all it knows, and its clients their connection."""
        site = self.sites[broker]
        site.is_up = False
        site.epoch += 1
        site.waiting = 0
        for peer in self.topology.neighbours(broker):
            self.cut(broker, peer)

    def restart(self, broker: Peer) -> None:
        """Start a broker anew; it connects with its neighbours."""
        site = self.sites[broker]
        if site.is_up:
            return
        site.is_up = True
        site.free_at_us = self.now_us
        site.alarm_us = None
        site.broker = self._broker(broker, {})
        for peer in self.topology.neighbours(broker):
            self.mend(broker, peer)

    def _line(self, a: Peer, b: Peer) -> LinkDirection:
        line = self.lines.get((a, b))
        if line is None:
            raise TopologyError(f"there is no link from {a!r} to {b!r}")
        return line


def _time_us(link: Link) -> int:
    return round(link.delay_s * 1e6)
