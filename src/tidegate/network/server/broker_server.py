"""A broker as a process: asyncio, sessions and the store around `routing.broker.Broker`.

Theory of operation. A connection (`served_connection`) turns bytes into messages and wakes `turns`.
A turn hands requests (`requests`) and events (`events`) to the broker in batches, commits what must
be durable, and only then answers, delivers (`client_output`) and writes, once for each connection.
Who connects is decided by `admission`; what outlives a connection is in `sessions`, what outlives
the process in the store (`durable_clients`, `stored_events`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import cast

from tidegate.errors import (
    AccessError,
    NetworkError,
    OverloadedError,
    ProtocolError,
    StoreFullError,
    TidegateError,
)
from tidegate.language.spaces import Space
from tidegate.matching.arrays import I64
from tidegate.network.observing.counters import Counters
from tidegate.network.server.access.authentication import Authentication, principal
from tidegate.network.server.access.entrance import Entrance
from tidegate.network.server.access.exposure import warn_of_exposure
from tidegate.network.server.access.granted import grants_of
from tidegate.network.server.access.rates import Rates
from tidegate.network.server.access.tls_door import TlsDoor, new_door
from tidegate.network.server.admission import Admission
from tidegate.network.server.client_lives import ClientLives
from tidegate.network.server.deliveries.blocking import Blocking
from tidegate.network.server.deliveries.client_output import ClientOutput
from tidegate.network.server.deliveries.replays import Replays
from tidegate.network.server.durable_clients import DurableClients
from tidegate.network.server.durable_links import SEEN, DurableLinks
from tidegate.network.server.events import PUBLISHER, EventTurns
from tidegate.network.server.link_connector import keep_connected
from tidegate.network.server.links import Links
from tidegate.network.server.publish_credit import PublishCredit
from tidegate.network.server.refusals import Refusals
from tidegate.network.server.requests import RequestTurns
from tidegate.network.server.routed_turn import ClientDeliveries
from tidegate.network.server.served_connection import ServedConnection
from tidegate.network.server.sessions import ClientSession
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.server.turns import Turn, Turns
from tidegate.network.store.kept_spaces import joined_spaces, save_spaces
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.handshake import Hello
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing import messages as m
from tidegate.routing.broker import Broker
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.strategies import strategy

_log = logging.getLogger(__name__)

HOUSEKEEPING_S = 0.5
RETRY_MS = 1_000
"""When clients come back to a broker that drains."""


class BrokerServer:
    """A broker that listens."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings
        self.software = f"tidegate {version('tidegate')}"
        self.counters = Counters()
        self.sessions: dict[m.Client, ClientSession] = {}
        self.published: dict[str, tuple[int, int]] = {}
        """By identity: the epoch and number of the last publication in the store."""
        self.refusals = Refusals()
        self.connections: dict[ServedConnection, float] = {}
        """The connections, with the time at which a handshake must be through."""
        self.doors: set[TlsDoor] = set()
        """Connections that have not agreed on TLS yet."""
        self._now_us = 0
        self.is_draining = False
        self.started_us = self.now_us()
        self._must_acknowledge = False
        """Whether the next turn acknowledges what neighbours have sent, come what may."""
        self.entrance = Entrance(settings.limits)
        self.authentication = Authentication(self)
        self.rates = Rates(
            settings.limits, time.monotonic, str if settings.auth is None else principal
        )
        self.admission = Admission(self)
        self.durable = DurableClients(self)
        self.lives = ClientLives(self)
        self.links = Links(self)
        self.durable_links = DurableLinks(self)
        self.output = ClientOutput(self)
        self.blocking = Blocking(self)
        self.replays = Replays(self)
        self.requests = RequestTurns(self)
        self.events = EventTurns(self)
        limits = settings.limits
        self.flow = PublishCredit(limits.publish_events_max, limits.publish_bytes_max)

    # -- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, restore what it has, and listen; raises a TidegateError."""
        self.loop = asyncio.get_running_loop()
        settings = self.settings
        self.store = (
            None if settings.data is None else Store(settings.data, settings.name, settings.store)
        )
        try:
            self.broker = Broker(
                settings.name,
                strategy(settings.routing),
                begun_us=self._begin(),
                substrate=settings.substrate,
                limits=settings.broker_limits,
                spaces=self._spaces(),
                summaries=settings.summaries,
                grant_of=grants_of(settings.auth),
            )
            self.broker.variables.set(**settings.variables)
            routing = self.broker.strategy
            self.broker.add_domain(
                Domain(
                    settings.domain,
                    Architecture(settings.architecture),
                    settings.name,
                    tree_per_source=routing.tree_per_source,
                    floods=not routing.sends_subscriptions,
                )
            )
            self.turns = Turns(self)
            self.lives.begin()
            if self.store is not None:
                self.published = self.store.positions(PUBLISHER)
                self._restore(self.store)
            self._listener = await self.loop.create_server(
                new_door(self), settings.host, settings.port, backlog=1024
            )
        except OSError as error:
            self._close_store()
            raise NetworkError(
                f"cannot listen at {settings.host}:{settings.port}: {error.strerror or error}"
            ) from None
        except TidegateError:
            self._close_store()
            raise
        self._tasks = [
            self.loop.create_task(self.turns.run(), name="turns"),
            self.loop.create_task(self._keep_house(), name="housekeeping"),
            *(self.loop.create_task(keep_connected(self, each)) for each in settings.peers),
        ]
        warn_of_exposure(settings)
        _log.info(
            "the broker %s listens at %s:%d", settings.name, settings.host, self.port,
            extra={"event": "listening"},
        )  # fmt: skip

    def _restore(self, store: Store) -> None:
        """Go on where the broker ended: with its neighbours first, then with its clients."""
        state = list(store.state())
        self.refusals.restore(state)
        sent = self.durable_links.restore(state, store.positions(SEEN))
        sent += self.durable.restore(state)
        self.durable_links.begin()
        self.links.restore(sent)

    def _begin(self) -> int:
        """The time of this start, which is later than that of the one before."""
        begun_us = self.now_us()
        if self.store is not None:
            before = {key: value for kind, _, key, value in self.store.state() if kind == "begun"}
            last = int.from_bytes(before.get(b"", b"\0"), "big")
            self._now_us = begun_us = max(begun_us, last + 1)
            transaction = Transaction()
            transaction.put_state("begun", "", b"", begun_us.to_bytes(8, "big"))
            self.store.commit(transaction).result()
        return begun_us

    def _spaces(self) -> tuple[Space, ...]:
        """The spaces to begin with: those of the settings, and those that the store has kept."""
        if self.store is None:
            return self.settings.spaces
        spaces = joined_spaces(self.store.state(), self.settings.spaces)
        self._keep_spaces(spaces)
        return spaces

    def extend_spaces(self, spaces: Iterable[Space]) -> None:
        """Declare more attributes, and more spaces, while clients go on; all or none.

        Raises SpaceError, with nothing changed, if an attribute has another type already.
        """
        self.broker.spaces.extend(spaces)
        if self.store is not None:
            self._keep_spaces(self.broker.spaces)

    def _keep_spaces(self, spaces: Iterable[Space]) -> None:
        assert self.store is not None
        transaction = Transaction()
        save_spaces(spaces, transaction)
        if transaction:
            self.store.commit(transaction).result()

    @property
    def port(self) -> int:
        """The port at which the broker listens."""
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def is_alive(self) -> bool:
        """Whether the broker runs; what it does in the background ends only with an error."""
        return not any(each.done() for each in self._tasks)

    async def wait(self) -> None:
        """Wait until the broker ends by itself, which it does only with an error."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()

    async def stop(self) -> None:
        """Drain: handle what has arrived, say goodbye to all, close the store.

        It takes no longer than `ClientLimits.drain_s` allows; what was not handled by then was not
        confirmed or acknowledged, and comes again.
        """
        self.is_draining = True
        limit = self.settings.limits.drain_s
        deadline = self.loop.time() + limit
        _log.info("the broker %s drains", self.settings.name, extra={"event": "draining"})
        self._listener.close()
        self.authentication.close()
        self.rates.release()
        for door in list(self.doors):
            door.abort()
        self.blocking.release_all()
        for connection in self.connections:
            connection.stop_reading()
            if connection.arrived:  # a turn has left it for later, which must be now
                self.turns.wake(connection)
        if not self._tasks[0].done():
            try:
                async with asyncio.timeout_at(deadline):
                    await self.turns.idle()
            except TimeoutError:
                _log.warning(
                    "not all that had come was handled within %g s", limit,
                    extra={"event": "drain_cut_short"},
                )  # fmt: skip
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, TidegateError):
                await task
        for connection in list(self.connections):
            connection.end(NetworkError("the broker drains"), RETRY_MS)
        deadline = max(deadline, self.loop.time() + 2.0)
        while self.connections and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        self._close_store()
        _log.info("the broker %s has stopped", self.settings.name, extra={"event": "stopped"})

    def _close_store(self) -> None:
        if self.store is not None:
            self.store.close()

    async def _keep_house(self) -> None:
        """Heartbeats, time-outs and retention."""
        before = self.loop.time()
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            now = self.loop.time()
            # While this process stood still, as while kernels are compiled, it heard nobody.
            stood_still_s, before = now - before - HOUSEKEEPING_S, now
            self.counters.stood_still_s = max(0.0, stood_still_s)
            for connection in self.connections:
                connection.last_heard += max(0.0, stood_still_s)
            for connection, deadline in list(self.connections.items()):
                if not connection.wire.is_open and now > deadline:
                    connection.end(AccessError("no handshake came in time"))
                elif not connection.beat(now):
                    connection.abort()
            self.lives.expire(now)
            self.blocking.expire(now)
            due_us = self.broker.due_us
            if due_us is not None and due_us <= self.now_us():
                self.turns.wake()
            if any(each.unacknowledged for each in self.links.by_peer.values()):
                self._must_acknowledge = True
                self.turns.wake()
            self.lives.look_at_queues()
            if self.store is not None:
                self.store.purge(self.now_us())

    def now_us(self) -> int:
        """The time for the broker, which never goes back."""
        self._now_us = max(self._now_us, time.time_ns() // 1_000)
        return self._now_us

    # -- connections --------------------------------------------------------------------------

    def connection_made(self, connection: ServedConnection) -> None:
        self.counters.connections += 1
        deadline = self.loop.time() + self.settings.limits.handshake_s
        self.connections[connection] = deadline
        problem = self.entrance.enter(connection, connection.address)
        if self.is_draining:
            connection.end(OverloadedError("the broker drains"), RETRY_MS)
        elif problem is not None and connection.link is None:
            self.counters.refused_connections += 1
            _log.warning("%s was refused: %s", connection.address, problem)
            connection.end(problem, RETRY_MS)

    def connection_lost(self, connection: ServedConnection) -> None:
        self.connections.pop(connection, None)
        self.entrance.leave(connection)
        self.authentication.ended(connection)
        self.connection_ended(connection)

    def connection_ended(self, connection: ServedConnection) -> None:
        """Part a connection from its session, which goes on for a while."""
        self.flow.ended(connection)
        link, connection.link = connection.link, None
        if link is not None:
            self.links.connection_lost(link, connection)
        session, connection.session = connection.session, None
        if session is not None and session.connection is connection:
            self.lives.connection_lost(session)

    def peer_broke_protocol(self, connection: ServedConnection, error: ProtocolError) -> None:
        _log.warning(
            "%s broke the protocol: %s", connection.address, error,
            extra={"event": "protocol_broken", "address": connection.address},
        )  # fmt: skip
        self.connection_ended(connection)
        connection.write_out()

    def too_slow(self, session: ClientSession) -> None:
        """End the connection of a client whose policy says so."""
        connection = session.connection
        if connection is not None:
            _log.warning(
                "%s is disconnected: it takes its deliveries too slowly", session.client.identity,
                extra={"event": "slow_disconnected", "client": session.client.identity},
            )  # fmt: skip
            connection.end(OverloadedError("deliveries were not taken in time"), RETRY_MS)

    def check_admission(self, hello: Hello) -> None:
        """Raise unless whoever says hello may connect."""
        if self.is_draining:
            raise OverloadedError("the broker drains")
        session = self.sessions.get(m.Client(hello.identity))
        if hello.is_durable and self.store is None:
            raise AccessError(
                "this broker has no store, so no client is durable; start it with --data"
            )
        if session is not None and session.is_durable and not hello.is_durable:
            raise AccessError(
                f"{hello.identity!r} is a durable client; connect as one, and depart to end that"
            )

    def log_refusal(self, connection: ServedConnection, hello: Hello, error: TidegateError) -> None:
        self.counters.refused_connections += 1
        _log.warning(
            "%r at %s was refused: %s", hello.identity, connection.address, error,
            extra={"event": "connection_refused", "client": hello.identity,
                   "address": connection.address},
        )  # fmt: skip

    # -- clients ------------------------------------------------------------------------------

    def cannot_confirm(self) -> TidegateError | None:
        """Why no publication can be confirmed now; None if it can."""
        if self.store is None:
            return AccessError("this broker has no store, so it confirms nothing; use --data")
        return self.cannot_store()

    def cannot_store(self) -> TidegateError | None:
        """Why nothing can be stored now; None if it can."""
        if self.store is not None and self.store.is_full:
            return StoreFullError("the store of the broker is full")
        if (peer := self.links.overloaded) is not None:
            return OverloadedError(f"too many messages wait for the neighbour {peer!r}")
        return None

    def acknowledged(self, session: ClientSession, position: int, turn: Turn) -> None:
        """A durable client has done with its deliveries up to a position."""
        if session.queue is not None and self.store is not None:
            position = min(position, session.cursor)  # not what it cannot have had
            self.store.acknowledge(turn.transaction, session.queue, position)

    def add_deliveries(
        self,
        session: ClientSession,
        rows: ClientDeliveries,
        block: PublicationBlock,
        positions: I64,
    ) -> None:
        self.counters.delivered += len(rows.events)
        session.delivered += len(rows.events)
        self.output.add(session, rows, block, positions)

    def dispatch(self, outgoing: m.Outgoing, turn: Turn) -> None:
        """Pass messages of the broker on to their receivers."""
        by_client: dict[m.Client, list[m.Message]] = {}
        for address, message in outgoing:
            if isinstance(address, m.Client):
                by_client.setdefault(address, []).append(message)
            else:
                passed_on = cast(m.PeerMessage, message)
                turn.after_commit.append(partial(self.links.send, address, passed_on))
        for client, messages in by_client.items():
            self.output.dispatch(client, messages, turn)

    def save_links(self, turn: Turn) -> None:
        """Save what has changed about links, and acknowledge after the commit what was taken."""
        positions_too = self._must_acknowledge or self.links.must_acknowledge
        self._must_acknowledge = False
        if self.store is None or self.durable_links.save(
            turn.transaction, positions_too=positions_too
        ):
            turn.after_commit.append(self.links.acknowledge)

    def run_due(self, turn: Turn) -> None:
        """Do what time has made due."""
        self.lives.end_expired(turn)
        self.lives.settle_moves(turn)
        self.lives.shorten_queues(turn)
        due_us = self.broker.due_us
        if due_us is not None and due_us <= self.now_us():
            self.dispatch(self.broker.wake(self.now_us()), turn)

    def write_out(self) -> None:
        """Write what the turn has sent, once for each connection."""
        for connection in list(self.connections):
            if connection.wire.has_output:
                connection.write_out()
