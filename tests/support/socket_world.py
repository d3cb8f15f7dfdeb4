"""A world of brokers that listen, for the scripts of `simulation.verifying.random_run`.

It has what a run uses of `simulation.world.World`. Brokers, sockets and sessions are real, in one
event loop; only the clock is simulated, so that filters evolve as in the other world.
The world is idle when all bytes that were written have been read, and no broker has anything to do.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate.language.events import Event
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.handshake import Hello
from tidegate.network.wire.publications import PublicationBlock
from tidegate.network.wire.values import wire_value
from tidegate.routing import messages as m
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Client, Message, Peer
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.world import LinkDirection, SimulatedClient

BEGIN_US = 1_700_000_000_000_000
WAIT_S = 120.0
PLENTY: dict[str, Any] = {
    "credit_events": 1 << 40,
    "credit_bytes": 1 << 40,
    "heartbeat_ms": 600_000,
}


@dataclass
class Bytes:
    """Bytes on their way: those written, and those read."""

    written: int = 0
    read: int = 0


@contextmanager
def counted_bytes() -> Iterator[Bytes]:
    """Count what all connections of this process write and read."""
    counted, patch = Bytes(), pytest.MonkeyPatch()
    take_output, receive = Connection.take_output, Connection.receive

    def counting_output(connection: Connection) -> Any:
        parts = take_output(connection)
        counted.written += sum(map(len, parts))
        return parts

    def counting_input(connection: Connection, data: Any) -> Any:
        counted.read += len(data)
        return receive(connection, data)

    patch.setattr(Connection, "take_output", counting_output)
    patch.setattr(Connection, "receive", counting_input)
    try:
        yield counted
    finally:
        patch.undo()


class ClockedServer(BrokerServer):
    """A broker that is told the time."""

    def __init__(self, settings: BrokerSettings, clock: Callable[[], int]) -> None:
        self._clock = clock  # first: the broker asks what time it is
        super().__init__(settings)

    def now_us(self) -> int:
        return self._clock()


@dataclass
class SocketSite:
    """A broker of the world."""

    server: ClockedServer
    is_up: bool = True

    @property
    def broker(self) -> Broker:
        return self.server.broker


class SocketClient(asyncio.Protocol):
    """The connection of one client to one broker; what comes is passed on in order."""

    def __init__(self, world: SocketWorld, client: Client) -> None:
        self._world, self._client = world, client
        self._wire = Connection.connecting(Hello(client.identity, 1, **PLENTY))
        self._transport: Any = None
        self._number = self._published = self.answered = 0
        self._names: dict[int, str] = {}
        self._asked: dict[int, str] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._write()

    def _write(self) -> None:
        self._transport.writelines(self._wire.take_output())

    def close(self) -> None:
        self._transport.abort()

    @property
    def is_open(self) -> bool:
        return self._wire.is_open

    def _name(self, handle: int) -> str:
        """The name of a subscription, which may have come here with the client."""
        if handle not in self._names:
            broker = self._world.sites[self._world.home[self._client]].broker
            self._names[handle] = broker.named.name_of(handle - 1)
        return self._names[handle]

    # -- out ------------------------------------------------------------------------------------

    def ask(self, make: Callable[[int], Any], name: str | None = None) -> int:
        """Send a request, for a subscription of a name if it makes one; returns its number."""
        self._number += 1
        if name is not None:
            self._asked[self._number] = name
        self._wire.send(make(self._number))
        self._write()
        return self._number

    def publish(self, event: Event, space: str | None) -> None:
        self._published += 1
        self._wire.send(Publish(self._published, EventBlock.of([event], space), False))
        self._write()

    # -- in -------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        for message in self._wire.receive(data):
            match message:
                case wire.Done(number, handles):
                    self.answered = number
                    if number in self._asked:
                        self._names[handles[0]] = self._asked[number]
                case wire.Refused(number):
                    self.answered = number
                case wire.InForce(handle, version):
                    self._pass_on(m.InForce(self._name(handle), version))
                case Deliver():
                    self._deliver(message)
                case DeliverSequence(publications=block):
                    # By its events alone: which pattern it is of, the run knows.
                    sequence = m.DeliverSequence(None, self._publications(block))  # type: ignore[arg-type]
                    self._pass_on(sequence)
                case wire.Missed(count):
                    raise AssertionError(f"{self._client.identity} has missed {count}")

    def _deliver(self, deliver: Deliver) -> None:
        pairs = iter(zip(deliver.handles.tolist(), deliver.versions.tolist(), strict=True))
        publications = self._publications(deliver.publications)
        counts = deliver.match_counts.tolist()
        for publication, count in zip(publications, counts, strict=True):
            matches = [next(pairs) for _ in range(count)]
            named = tuple(
                m.MatchedVersion(self._name(handle), version)
                for handle, version in matches
                if handle
            )
            self._pass_on(m.Deliver(publication, named, any(not handle for handle, _ in matches)))

    def _publications(self, block: PublicationBlock) -> tuple[m.Publication, ...]:
        return tuple(map(self._world.as_published, block.publications()))

    def _pass_on(self, message: Message) -> None:
        if self._world.connections[self._client] is self:
            self._world.clients[self._client].receive(message, self._world.now_us)


@dataclass
class SocketWorld:
    """Brokers that listen, and the clients of a run."""

    topology: Topology
    routing: str
    seed: int
    bytes: Bytes
    now_us: int = BEGIN_US
    sites: dict[Peer, SocketSite] = field(default_factory=dict)
    clients: dict[Client, SimulatedClient] = field(default_factory=dict)
    home: dict[Client, Peer] = field(default_factory=dict)
    connections: dict[Client, SocketClient] = field(default_factory=dict)
    directions: dict[tuple[Peer, Peer], LinkDirection] = field(default_factory=dict)
    durable: None = None
    merging: bool = False
    only_advertised: bool | None = None
    summaries: None = None
    _homes: dict[Client, Peer] = field(default_factory=dict)
    """Where the connection of each client is."""
    _pending: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _scheduled: int = 0
    _published: dict[tuple[str, int | None, str], Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for link in self.topology.links:
            for ends in ((link.a, link.b), (link.b, link.a)):
                self.directions[ends] = LinkDirection(0, None)
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        [(domain, architecture)] = self.topology.domains.items()
        for name in self.topology.brokers:
            # Each link is made by the broker that comes later, in a hierarchy by the lower one.
            peers = [
                each.a if each.b == name else each.b
                for each in self.topology.links
                if name in (each.a, each.b) and (each.a if each.b == name else each.b) in self.sites
            ]
            ports = [self.sites[each].server.port for each in peers]
            settings = BrokerSettings(
                name, port=0, routing=self.routing, architecture=architecture.value, domain=domain,
                peers=tuple(PeerAddress("127.0.0.1", each) for each in ports),
            )  # fmt: skip
            server = ClockedServer(settings, lambda: self.now_us)
            await server.start()
            self.sites[name] = SocketSite(server)
        async with asyncio.timeout(WAIT_S):
            while not self._all_linked(domain):
                await asyncio.sleep(0.005)
        await self._settle()

    def _all_linked(self, domain: str) -> bool:
        return all(
            len(site.broker.domains.by_name[domain].neighbours)
            == sum(name in (each.a, each.b) for each in self.topology.links)
            for name, site in self.sites.items()
        )

    def close(self) -> None:
        """Stop all brokers."""

        async def stop() -> None:
            for client in self.connections.values():
                client.close()
            for site in self.sites.values():
                await site.server.stop()

        self._loop.run_until_complete(stop())
        self._loop.close()

    # -- as in the other world --------------------------------------------------------------------

    def admit(self, client: Client, simulated: SimulatedClient, broker: Peer) -> None:
        self.clients[client], self.home[client] = simulated, broker

    def at(self, time_us: int, action: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._pending, (max(time_us, self.now_us), self._scheduled, action))

    def run(self, until_us: int | None = None, *, actions_max: int | None = None) -> None:
        """Carry out all actions, those of brokers that wait for a time included."""
        del actions_max  # for the other world, whose actions are messages
        while True:
            due = [each for site in self.sites.values() if (each := site.broker.due_us) is not None]
            times = [*due, *(each[0] for each in self._pending[:1])]
            next_us = min(times, default=None)
            if next_us is None or (until_us is not None and next_us > until_us):
                break
            if next_us > self.now_us or not self._pending or self._pending[0][0] > self.now_us:
                # Messages of one moment arrive before the next one; those of one and the same
                # moment may still be on their way when a client acts.
                self._loop.run_until_complete(self._settle())
                self.now_us = max(self.now_us, next_us)
            if self._pending and self._pending[0][0] <= self.now_us:
                heapq.heappop(self._pending)[2]()
            else:
                for site in self.sites.values():
                    site.server.turns.wake()
                self._loop.run_until_complete(self._settle())
        self._loop.run_until_complete(self._settle())
        if until_us is not None:
            self.now_us = max(self.now_us, until_us)

    def request(self, client: Client, message: Message) -> None:
        """Send a message of a client to its broker, and wait until the broker has answered."""
        self._loop.run_until_complete(self._request(client, message))

    # -- over sockets -----------------------------------------------------------------------------

    async def _request(self, client: Client, message: Message) -> None:
        connection = await self._connection(client)
        if isinstance(message, m.Publish):
            event = message.event
            self._published[_key(client.identity, event)] = event
            connection.publish(event, message.space)
            return
        name = message.name if isinstance(message, m.Subscribe) else None
        number = connection.ask(self._wire_request(client, message), name)
        async with asyncio.timeout(WAIT_S):
            while connection.answered < number:
                await asyncio.sleep(0)

    async def _connection(self, client: Client) -> SocketClient:
        """The connection of a client to its broker, a new one after a move."""
        if self._homes.get(client) != self.home[client]:
            server = self.sites[self.home[client]].server
            _, connection = await self._loop.create_connection(
                lambda: SocketClient(self, client), "127.0.0.1", server.port
            )
            async with asyncio.timeout(WAIT_S):
                while not connection.is_open:
                    await asyncio.sleep(0)
            self.connections[client], self._homes[client] = connection, self.home[client]
        return self.connections[client]

    def _wire_request(self, client: Client, message: Message) -> Callable[[int], Any]:
        match message:
            case m.Subscribe(wanted, name, parameters, evolve, version, origin, space=space):
                values = {each: wire_value(value) for each, value in parameters.items()}
                mode = None if evolve is None else str(evolve)
                return lambda number: wire.Subscribe(
                    number, str(wanted), name, values, mode, version, origin, message.confirm, space
                )
            case m.Update(name, version, parameters, filter):
                named = self.sites[self.home[client]].broker.named
                handle = named.handle(client, name) + 1
                changed = {
                    each: None if value is None else wire_value(value)
                    for each, value in parameters.items()
                }
                text = None if filter is None else str(filter)
                return lambda number: wire.Update(
                    number, handle, version, changed, text, message.confirm
                )
            case m.Cancel(name):
                handle = self.sites[self.home[client]].broker.named.handle(client, name) + 1
                return lambda number: wire.Cancel(number, handle)
            case m.Unsubscribe(wanted, space):
                return lambda number: wire.Unsubscribe(number, str(wanted), space)
            case m.Advertise(advertisement, space):
                return lambda number: wire.Advertise(number, str(advertisement), space)
            case m.Unadvertise(advertisement, space):
                return lambda number: wire.Unadvertise(number, str(advertisement), space)
            case m.Suspend():
                return lambda number: wire.Suspend(number)
            case m.Resume(home, moves):
                return lambda number: wire.Resume(number, home, moves)
            case m.Depart():
                return lambda number: wire.Depart(number)
        raise NotImplementedError(type(message).__name__)

    def as_published(self, publication: m.Publication) -> m.Publication:
        """A publication with the event object that was published, by which a run knows it."""
        event = publication.event
        published = self._published[_key(publication.publisher, event)]
        return m.Publication(published, publication.stamp, publication.publisher, publication.space)

    async def _settle(self) -> None:
        """Wait until all that was written is read, and no broker has anything to do."""
        quiet = 0
        async with asyncio.timeout(WAIT_S):
            while quiet < 3:
                await asyncio.sleep(0 if quiet else 0.0005)
                is_idle = self.bytes.written == self.bytes.read and all(
                    not (site.server.turns._wakened.is_set() or site.server.turns._waiting)
                    and not any(
                        each.arrived or each.wire.has_output for each in site.server.connections
                    )
                    for site in self.sites.values()
                )
                quiet = quiet + 1 if is_idle else 0


def _key(publisher: str, event: Event) -> tuple[str, int | None, str]:
    values = sorted((name, repr(value)) for name, value in event.attributes.items())
    return publisher, event_us(event), repr(values)
