"""A deterministic world for brokers: time, links with delay and bandwidth, processors, faults.

Rules. (1) One seed is one run, byte for byte. Actions of the same time are carried out in the order
in which they were scheduled, but actions from outside (`at`) before messages, and all random
numbers come from one generator. So the same requests at the same times produce the same messages,
no matter when the requests were scheduled; `replay` relies on that. (2) A broker in here is the
same `Broker` that runs on a network; only time and links are simulated. (3) A link that is up keeps
messages in order and loses none. When it goes down, the messages on it are lost, and both ends are
notified, because what they know of each other may be lost with them.

Theory of operation. A heap holds the pending actions, ordered by time. A message takes the delay of
its link plus the time that its bytes need. At the broker it waits until the processor is free,
occupies it for as long as such a message costs, and is handled at the end of that time. How many
matching steps it takes is known only then; if steps cost time, the processor is busy with them
after that, and the messages that wait are handled so much later.
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
from tidegate.language.spaces import Space
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Address, Client, Message, Notify, Outgoing, Peer
from tidegate.routing.overlay.domains import Architecture, Domain, DomainPlan
from tidegate.routing.overlay.graph import Announcement, Graph
from tidegate.routing.strategies import Strategy, strategy
from tidegate.routing.substrates import SubstrateChoice
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.costs import FREE, Costs, unshared
from tidegate.simulation.durable_sites import DurableSites
from tidegate.simulation.overlays.topology import Link, Topology

Action = Callable[[], None]

# Added to the sequence numbers of the world's own actions. A heap entry is (time, sequence number,
# action), so at equal times actions from outside come first, however late they were scheduled.
_AFTER_REQUESTS = 1 << 62


class SimulatedClient(Protocol):
    """A client in the world."""

    def receive(self, message: Message, now_us: int) -> None:
        """Handle a message from its broker."""
        ...


class SilentClient:
    """A client that ignores all messages."""

    def receive(self, message: Message, now_us: int) -> None:
        """Ignore a message."""


class MessageObserver(Protocol):
    """Called with each message that arrives, for example to write a trace."""

    def __call__(
        self, now_us: int, sender: Address, receiver: Address, message: Message, /
    ) -> None:
        """Observe a message."""
        ...


class Stopwatch(Protocol):
    """Called with the real processor time that a broker took for a message."""

    def __call__(self, message: Message, seconds: float) -> None:
        """Record the time."""
        ...


@dataclass(slots=True)
class LinkDirection:
    """One direction of a link."""

    delay_us: int
    bandwidth_bytes_per_s: float | None
    free_at_us: int = 0
    """When the last byte of the last message is sent."""
    last_arrival_us: int = 0
    """When the last message arrives; no later message may arrive before it."""
    epoch: int = 0
    """How often the link went down. A message of an earlier epoch is lost."""
    is_up: bool = True
    last_sent: int = 0
    """The number of the last message sent."""
    last_received: int = 0
    """The number of the last message that arrived; a duplicate has no greater one."""
    messages: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Site:
    """A broker in the world, with its processor."""

    broker: Broker
    free_at_us: int = 0
    """When the processor has handled all messages that wait now."""
    waiting: int = 0
    """Messages that wait for the processor, including the one it works on."""
    waiting_max: int = 0
    handled: int = 0
    in_vain: int = 0
    """Events from a neighbour that were neither delivered nor forwarded."""
    busy_us: int = 0
    steps_us: int = 0
    """The part of ``busy_us`` that was spent on matching steps."""
    is_up: bool = True
    epoch: int = 0
    """How often the broker crashed. A message that waited in an earlier epoch is lost."""
    alarm_us: int | None = None
    """When the broker is woken next."""


@dataclass(frozen=True, slots=True)
class Weather:
    """Random delays and duplicates on every link."""

    extra_delay_us_max: int = 0
    duplicated: float = 0.0
    """The share of messages that a link carries twice."""


@dataclass(slots=True)
class World:
    """The brokers, links and clients of an overlay, and the simulated time."""

    topology: Topology
    routing: str
    seed: int = 0
    costs: Costs = FREE
    weather: Weather = field(default_factory=Weather)
    observer: MessageObserver | None = None
    stopwatch: Stopwatch | None = None
    only_advertised: bool | None = None
    """Whether only advertised events are delivered; None for what the routing needs."""
    merging: bool = False
    """Whether brokers merge filters before sending them, where that is exact."""
    substrate: SubstrateChoice | None = None
    """The matcher with which brokers find the filters that an event matches; None for the default
    of the routing."""
    spaces: tuple[Space, ...] = ()
    """The spaces that all brokers have."""
    summaries: SummarySettings | None = None
    """The settings of the routing by summaries; None for the defaults."""
    is_durable: bool = False
    """Whether brokers store their state and links are sessions (see `durable_sites`)."""
    now_us: int = field(default=0, init=False)
    sites: dict[Peer, Site] = field(default_factory=dict, init=False)
    directions: dict[tuple[Peer, Peer], LinkDirection] = field(default_factory=dict, init=False)
    """The directions of all links, by sender and receiver."""
    clients: dict[Client, SimulatedClient] = field(default_factory=dict, init=False)
    home: dict[Client, Peer] = field(default_factory=dict, init=False)
    """The broker of each client."""
    arrived_by_type: Counter[type[Message]] = field(default_factory=Counter, init=False)
    """The number of messages that arrived at brokers and clients, by type."""
    durable: DurableSites | None = field(default=None, init=False)
    """What brokers have stored, and the sessions of links; None unless they are durable."""
    random: Random = field(init=False)
    _strategy: Strategy = field(init=False)
    _pending: list[tuple[int, int, Action]] = field(default_factory=list, init=False)
    """A heap of actions with their times and sequence numbers."""
    _scheduled: int = field(default=0, init=False)
    """The number of actions scheduled so far, the source of sequence numbers."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._strategy = strategy(self.routing)
        plans = {name: self._plan(name) for name in self.topology.domains}
        for name in self.topology.brokers:
            self.sites[name] = Site(self._broker(name, plans))
        for link in self.topology.links:
            self._connect(link)
        if self.is_durable:
            self.durable = DurableSites(self)
        for site in self.sites.values():
            self._set_alarm(site)

    def _plan(self, domain: str) -> DomainPlan:
        """The graph of a domain, with which its brokers start.

        Otherwise every run would begin with announcements of all links to all brokers.
        """
        costs_us: dict[Peer, dict[Peer, int]] = {}
        for link in self.topology.links:
            if link.domain == domain:
                costs_us.setdefault(link.a, {})[link.b] = _delay_us(link)
                costs_us.setdefault(link.b, {})[link.a] = _delay_us(link)
        announcements = {
            broker: Announcement(broker, 0, tuple(sorted(costs.items())))
            for broker, costs in costs_us.items()
        }
        return DomainPlan(announcements, Graph(costs_us))

    def _broker(self, name: Peer, plans: dict[str, DomainPlan]) -> Broker:
        broker = Broker(
            name,
            self._strategy,
            begun_us=self.now_us,
            only_advertised=self.only_advertised,
            merging=self.merging,
            substrate=self.substrate,
            spaces=self.spaces,
            summaries=self.summaries,
        )
        broker.variables.provide("load", lambda _time: self.sites[name].waiting)
        broker.variables.provide("free_bandwidth", lambda _time: self._free_bandwidth(name))
        for domain in self.topology.domains_of(name):
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
        """The bandwidth, in bytes/s, of a broker's idle links; None if no link has a limit."""
        directions = [each for (sender, _), each in self.directions.items() if sender == name]
        limits = [(each, each.bandwidth_bytes_per_s) for each in directions]
        free = [
            limit if each.free_at_us <= self.now_us else 0.0
            for each, limit in limits
            if limit is not None
        ]
        return sum(free) if free else None

    def _connect(self, link: Link) -> None:
        """Set up a link in both directions, without an exchange of messages."""
        in_hierarchy = self.topology.domains[link.domain] is Architecture.HIERARCHICAL
        for one, other in ((link.a, link.b), (link.b, link.a)):
            self.directions[one, other] = LinkDirection(_delay_us(link), link.bandwidth_bytes_per_s)
            broker = self.sites[one].broker
            domain = broker.domains.by_name[link.domain]
            domain.link(other, _delay_us(link), is_master=in_hierarchy and one == link.b)
            broker.domains.domain_of[other] = domain

    # -- time ---------------------------------------------------------------------------------

    def at(self, time_us: int, action: Action) -> None:
        """Schedule an action from outside; it precedes the messages of the same time."""
        self._scheduled += 1
        heapq.heappush(self._pending, (max(time_us, self.now_us), self._scheduled, action))

    def _schedule(self, time_us: int, action: Action) -> int:
        """Schedule an action of the world itself, such as the arrival of a message.

        Returns its sequence number, by which it can be put off and keep its place.
        """
        self._scheduled += 1
        sequence = _AFTER_REQUESTS + self._scheduled
        heapq.heappush(self._pending, (time_us, sequence, action))
        return sequence

    def run(self, until_us: int | None = None, *, actions_max: int | None = None) -> None:
        """Carry out all actions, or those up to a time, which becomes the current time.

        Raises SimulationError if there are ``actions_max`` or more.
        """
        pending = self._pending
        done = 0
        while pending and (until_us is None or pending[0][0] <= until_us):
            self.now_us, _, action = heapq.heappop(pending)
            action()
            done += 1
            if done == actions_max:
                raise SimulationError(f"the world is not idle after {done:,} actions")
        if until_us is not None:
            self.now_us = max(self.now_us, until_us)

    @property
    def next_us(self) -> int | None:
        """The time of the next action; None if there is none."""
        return self._pending[0][0] if self._pending else None

    @property
    def arrived(self) -> int:
        """The number of messages that have arrived."""
        return self.arrived_by_type.total()

    # -- clients ------------------------------------------------------------------------------

    def admit(self, client: Client, simulated: SimulatedClient, broker: Peer) -> None:
        """Add a client at a broker."""
        self.clients[client] = simulated
        self.home[client] = broker

    def request(self, client: Client, message: Message) -> None:
        """Send a message from a client to its broker, where it arrives at once."""
        self._arrive(self.home[client], client, message)

    # -- messages -----------------------------------------------------------------------------

    def send(self, sender: Peer, outgoing: Outgoing) -> None:
        """Store what has changed at a broker, if it is durable, and send what it wants to send."""
        if self.durable is not None:
            self.durable.commit(sender)
        for receiver, message in outgoing:
            if isinstance(receiver, Client):
                self._deliver(sender, receiver, message)
            elif self.durable is None:
                self.transmit(sender, receiver, message)
            elif (numbered := self.durable.send(sender, receiver, message)) is not None:
                self.transmit(sender, receiver, message, numbered[0])
        if self.durable is not None:
            self._set_alarm(self.sites[sender])

    def _deliver(self, sender: Peer, client: Client, message: Message) -> None:
        """Pass a message to a client, unless it has moved to another broker."""
        if self.home.get(client) != sender:
            return
        self.arrived_by_type[type(message)] += 1
        if self.observer is not None:
            self.observer(self.now_us, sender, client, message)
        self.clients[client].receive(message, self.now_us)

    def transmit(
        self, sender: Peer, receiver: Peer, message: Message, numbered: int | None = None
    ) -> None:
        """Put a message on a link, with its number in a session; dropped if the link is down."""
        direction = self.directions.get((sender, receiver))
        if direction is None or not direction.is_up:
            return
        size = self.costs.bytes(message)
        direction.messages += 1
        direction.bytes += size
        sent_us = self.now_us
        bandwidth = direction.bandwidth_bytes_per_s
        if bandwidth is not None:
            sent_us = max(sent_us, direction.free_at_us) + round(size * 1e6 / bandwidth)
            direction.free_at_us = sent_us
        arrival_us = sent_us + direction.delay_us
        if self.weather.extra_delay_us_max:
            arrival_us += self.random.randrange(self.weather.extra_delay_us_max + 1)
        # A random delay must not let a message overtake the one before it (rule 3).
        direction.last_arrival_us = arrival_us = max(arrival_us, direction.last_arrival_us)
        direction.last_sent += 1
        number, epoch = direction.last_sent, direction.epoch

        def arrive() -> None:
            # The link may have gone down meanwhile, and a duplicate arrives a second time.
            if direction.epoch == epoch and number > direction.last_received:
                direction.last_received = number
                self._arrive(receiver, sender, message, numbered)

        self._schedule(arrival_us, arrive)
        if self.weather.duplicated and self.random.random() < self.weather.duplicated:
            self._schedule(arrival_us + self.random.randrange(1_000_000), arrive)

    def _arrive(
        self, receiver: Peer, sender: Address, message: Message, numbered: int | None = None
    ) -> None:
        """Queue a message for the processor of a broker, or handle it at once if it is free."""
        site = self.sites[receiver]
        if not site.is_up:
            return
        self.arrived_by_type[type(message)] += 1
        if self.observer is not None:
            self.observer(self.now_us, sender, receiver, message)
        cost_us = self.costs.processor_us(message)
        if not cost_us and not self.costs.step_us and site.free_at_us <= self.now_us:
            self._handle(site, sender, message, numbered)
            return
        site.waiting += 1
        site.waiting_max = max(site.waiting_max, site.waiting)
        site.busy_us += cost_us
        site.free_at_us = max(self.now_us, site.free_at_us) + cost_us
        epoch = site.epoch
        direction = None if isinstance(sender, Client) else self.directions[sender, receiver]
        direction_epoch = 0 if direction is None else direction.epoch
        steps_us = site.steps_us

        def handle() -> None:
            nonlocal steps_us
            if site.epoch != epoch:  # the broker crashed, and `waiting` was reset
                return
            if site.steps_us > steps_us:  # steps of messages before this one have taken time
                later_us = self.now_us + site.steps_us - steps_us
                steps_us = site.steps_us
                heapq.heappush(self._pending, (later_us, sequence, handle))
                return
            site.waiting -= 1
            # If the link went down, the sender has been told that the message is lost. A broker
            # that handled it nevertheless could, for example, accept a connection that the other
            # end has given up.
            if direction is None or direction.epoch == direction_epoch:
                self._handle(site, sender, message, numbered)

        sequence = self._schedule(site.free_at_us, handle)

    def _handle(self, site: Site, sender: Address, message: Message, numbered: int | None) -> None:
        if (
            numbered is not None
            and self.durable is not None
            and not self.durable.takes(site.broker.name, sender, numbered)
        ):
            return
        site.handled += 1
        steps = site.broker.matching.steps
        if self.stopwatch is None:
            outgoing = site.broker.handle(message, sender, self.now_us)
        else:
            message = unshared(message)
            begun_s = process_time()
            outgoing = site.broker.handle(message, sender, self.now_us)
            self.stopwatch(message, process_time() - begun_s)
        if self.costs.step_us:
            self._spend(site, round(self.costs.step_us * (site.broker.matching.steps - steps)))
        if outgoing or self.durable is not None:
            self.send(site.broker.name, outgoing)
        elif type(message) is Notify:
            site.in_vain += 1
        self._set_alarm(site)

    def _spend(self, site: Site, steps_us: int) -> None:
        """Occupy the processor with the matching steps of the message that was just handled."""
        site.steps_us += steps_us
        site.busy_us += steps_us
        site.free_at_us = max(self.now_us, site.free_at_us) + steps_us

    def _set_alarm(self, site: Site) -> None:
        """Schedule the next wake-up of a broker, if it needs one earlier than scheduled."""
        due_us = site.broker.due_us
        if due_us is None or (site.alarm_us is not None and site.alarm_us <= due_us):
            return
        site.alarm_us = due_us
        broker = site.broker

        def wake() -> None:
            # Scheduled actions cannot be withdrawn. One that was replaced by an earlier alarm, or
            # belongs to a broker from before a crash, does nothing.
            if site.broker is broker and site.is_up and site.alarm_us == due_us:
                site.alarm_us = None
                self.send(broker.name, broker.wake(self.now_us))
                self._set_alarm(site)

        self._schedule(max(due_us, self.now_us), wake)

    # -- faults -------------------------------------------------------------------------------

    def cut(self, a: Peer, b: Peer) -> None:
        """Take a link down."""
        for one, other in ((a, b), (b, a)):
            was_up = self.take_down(one, other)
            if self.durable is not None and (one, other) in self.durable.sessions:
                self.durable.gave_up(one, other)
                was_up = True
            if was_up:
                self._notify_lost(one, other)

    def take_down(self, one: Peer, other: Peer) -> bool:
        """Take one direction of a link down, with what is on its way; returns whether it was up."""
        direction = self._direction(one, other)
        if not direction.is_up:
            return False
        direction.is_up = False
        direction.epoch += 1
        direction.free_at_us = direction.last_arrival_us = 0
        return True

    def _notify_lost(self, broker: Peer, peer: Peer) -> None:
        site = self.sites[broker]
        if site.is_up:
            self.send(broker, site.broker.link_lost(peer, self.now_us))
            self._set_alarm(site)

    def mend(self, a: Peer, b: Peer) -> None:
        """Bring a link up again, if both brokers are up, and let them connect."""
        if not (self.sites[a].is_up and self.sites[b].is_up):
            return
        if self.durable is not None and self.durable.has_session(a, b):
            self.durable.reconnect(a, b)  # it was not given up
            return
        link = self.topology.link(a, b)
        for one, other in ((a, b), (b, a)):
            self._direction(one, other).is_up = True
        if self.durable is not None:
            self.durable.set_up(a, b)
        # In a hierarchy `b` is below `a` and asks to join; elsewhere either end could.
        site = self.sites[link.b]
        if site.broker.knows(link.a):
            return
        in_hierarchy = self.topology.domains[link.domain] is Architecture.HIERARCHICAL
        request = site.broker.join(link.a, link.domain, _delay_us(link), as_client=in_hierarchy)
        self.send(link.b, request)

    def crash(self, broker: Peer) -> None:
        """Take a broker and its links down; it loses its state and the messages that wait."""
        site = self.sites[broker]
        site.is_up = False
        site.epoch += 1
        site.waiting = 0
        for peer in self.topology.neighbours(broker):
            self.cut(broker, peer)

    def restart(self, broker: Peer) -> None:
        """Start a crashed broker with an empty state; it connects to its neighbours."""
        if self.sites[broker].is_up:
            return
        self.start(broker)
        if self.durable is not None:
            self.durable.forget(broker)
        for peer in self.topology.neighbours(broker):
            self.mend(broker, peer)

    def start(self, name: Peer) -> Broker:
        """Start a broker that is down with an empty state; returns it."""
        site = self.sites[name]
        site.is_up = True
        site.free_at_us = self.now_us
        site.alarm_us = None
        site.broker = self._broker(name, {})  # without plans: it learns the links from others
        return site.broker

    def _direction(self, a: Peer, b: Peer) -> LinkDirection:
        direction = self.directions.get((a, b))
        if direction is None:
            raise TopologyError(f"there is no link from {a!r} to {b!r}")
        return direction


def _delay_us(link: Link) -> int:
    return round(link.delay_s * 1e6)
