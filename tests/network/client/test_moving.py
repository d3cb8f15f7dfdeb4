"""A client moves between brokers over sockets, while events are published all the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from support.wire_client import running
from tidegate import Parameter, Subscriber, on
from tidegate.errors import NetworkError
from tidegate.language.events import Event
from tidegate.network.client.client import Client
from tidegate.network.client.connect import connect
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, PeerAddress

WAIT_S = 30.0


@asynccontextmanager
async def line(folder: Path | None = None) -> AsyncIterator[list[BrokerServer]]:
    """Three brokers in a line."""
    async with AsyncExitStack() as stack:
        servers: list[BrokerServer] = []
        for name in "abc":
            peers = tuple(PeerAddress("127.0.0.1", each.port) for each in servers[-1:])
            data = None if folder is None else folder / name
            settings = BrokerSettings(name, port=0, data=data, peers=peers)
            servers.append(await stack.enter_async_context(running(settings)))
        await until(lambda: len(servers[1].broker.domains.domain_of) == 2)
        await until(lambda: len(servers[2].broker.domains.domain_of) == 1)
        yield servers


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


def url(server: BrokerServer) -> str:
    return f"tidegate://127.0.0.1:{server.port}"


def client_of(server: BrokerServer, **options: object) -> Client:
    return connect(url(server), timeout=WAIT_S, **options)  # type: ignore[arg-type]


async def publish(publisher: Client, count: int, *, confirm: bool) -> None:
    for x in range(count):
        await publisher.publish({"x": x}, confirm=confirm)
        await asyncio.sleep(0.002)


async def receive(client: Client, name: str, count: int) -> list[int]:
    found = []
    for _ in range(count):
        event = await client.subscriptions[name].next(WAIT_S)
        assert event is not None
        found.append(event["x"])
    return found


def test_a_client_misses_nothing_and_gets_nothing_twice() -> None:
    async def main() -> None:
        async with line() as servers, client_of(servers[1]) as publisher:
            async with client_of(servers[0], identity="desk") as client:
                await client.subscribe("x >= :least", name="all", least=0)
                publishing = asyncio.create_task(publish(publisher, 120, confirm=False))
                receiving = asyncio.create_task(receive(client, "all", 120))
                for to in (2, 1, 0, 2):
                    await asyncio.sleep(0.05)
                    await client.move(url(servers[to]))
                    assert client.broker == "abc"[to]
                assert await receiving == list(range(120))
                await publishing
                await client.subscriptions["all"].update(least=5)
                await publisher.publish_many([{"x": 4}, {"x": 6}])
                assert await receive(client, "all", 1) == [6]
                assert (client.missed, client.sessions_lost) == (0, 0)
            for each in servers[:2]:
                assert "desk" not in {client.identity for client in each.sessions}

    asyncio.run(main())


def test_a_durable_client_moves_with_what_it_has_in_hand(tmp_path: Path) -> None:
    """Events that were received and not acknowledged are acknowledged at the new broker."""

    async def main() -> None:
        async with line(tmp_path) as servers, client_of(servers[1]) as publisher:
            async with client_of(servers[0], identity="desk", durable=True, ack="manual") as client:
                sub = await client.subscribe("x >= 0", name="all")
                await publish(publisher, 4, confirm=True)
                taken = [await sub.next(WAIT_S) for _ in range(3)]
                assert taken[0] is not None
                assert taken[1] is not None
                taken[0].ack()
                publishing = asyncio.create_task(publish(publisher, 30, confirm=True))
                await client.move(url(servers[2]))
                taken[1].ack()
                rest = [await sub.next(WAIT_S) for _ in range(31)]
                assert [each["x"] for each in rest if each] == [3, *range(30)]
                await publishing
                assert "desk" not in {each.identity for each in servers[0].sessions}
            async with client_of(servers[2], identity="desk", durable=True) as again:
                # only the first two were acknowledged, one of them after the move
                assert await receive(again, "all", 32) == [2, 3, *range(30)]
                with pytest.raises(TimeoutError):
                    await again.subscriptions["all"].next(0.1)

    asyncio.run(main())


def test_the_new_broker_keeps_a_durable_client_over_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            line(tmp_path) as servers,
            client_of(servers[0], identity="desk", durable=True) as client,
        ):
            await client.subscribe("x > :least", name="some", least=1)
            await client.advertise("y > 0")
            await client.move(url(servers[2]))
        settings = BrokerSettings("c", port=0, data=tmp_path / "c")
        async with (
            running(settings) as server,
            client_of(server, identity="desk", durable=True) as client,
        ):
            assert dict(client.subscriptions["some"].parameters) == {"least": 1}
            assert server.broker.advertisements.items_of(next(iter(server.broker.sessions)))
        settings = BrokerSettings("a", port=0, data=tmp_path / "a")
        async with running(settings) as server:
            assert not server.sessions

    asyncio.run(main())


class Collector(Subscriber):
    least = Parameter(0)

    def __init__(self) -> None:
        self.seen: list[int] = []

    @on("x >= :least")
    def some(self, event: Event) -> None:
        self.seen.append(event["x"])


def test_subscribers_move_with_their_client() -> None:
    async def main() -> None:
        async with (
            line() as servers,
            client_of(servers[1]) as publisher,
            client_of(servers[0]) as client,
        ):
            collector = await client.attach(Collector())
            publishing = asyncio.create_task(publish(publisher, 60, confirm=False))
            await asyncio.sleep(0.03)
            await client.move(url(servers[2]))
            await publishing
            await until(lambda: len(collector.seen) == 60)
            assert collector.seen == list(range(60))

    asyncio.run(main())


def test_a_client_that_has_nothing_moves_and_is_back() -> None:
    async def main() -> None:
        async with line() as servers, client_of(servers[0]) as client:
            await client.move(url(servers[1]))
            moving = asyncio.create_task(client.move(url(servers[2])))
            await asyncio.sleep(0)
            with pytest.raises(NetworkError, match="moving already"):
                await client.move(url(servers[0]))
            await moving
            sub = await client.subscribe("x = 1")
            await client.move(url(servers[0]))
            await client.publish({"x": 1})
            event = await sub.next(WAIT_S)
            assert event is not None

    asyncio.run(main())


def test_what_is_no_address_is_refused() -> None:
    async def main() -> None:
        async with line() as servers, client_of(servers[0]) as client:
            with pytest.raises(NetworkError, match="not the URL of a broker"):
                await client.move("nowhere")
            assert client.is_connected

    asyncio.run(main())
