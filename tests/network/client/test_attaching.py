"""Subscriber classes over the network: figure 5 of Parametric Subscriptions, with real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.wire_client import running
from tidegate import Parameter, Subscriber, on
from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.network.client.client import Client
from tidegate.network.client.connect import connect
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings
from tidegate.subscribers.attachment import Failure

WAIT_S = 30.0


class Monitor(Subscriber):
    """The buyer of the paper: it wants only what is cheaper than what it has bought last."""

    last_buy = Parameter(100.0)

    def __init__(self) -> None:
        self.bought: list[float] = []

    @on("firm = 'IBM' and price < :last_buy")
    def quote(self, event: Event) -> None:
        self.last_buy = event["price"]
        self.bought.append(event["price"])


class Reader(Subscriber):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    @on("x >= 0")
    async def all(self, event: Event) -> None:
        await self.gate.wait()
        self.seen.append(("all", event["x"]))

    @on("x > 10")
    def large(self, event: Event) -> None:
        self.seen.append(("large", event["x"]))


def client_of(server: BrokerServer, **options: object) -> Client:
    return connect(f"tidegate://127.0.0.1:{server.port}", timeout=WAIT_S, **options)  # type: ignore[arg-type]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


def with_clients(
    work: Callable[[BrokerServer, Client, Client], Awaitable[None]], data: Path | None = None
) -> None:
    async def main() -> None:
        async with (
            running(BrokerSettings("a", port=0, data=data)) as server,
            client_of(server) as one,
            client_of(server) as other,
        ):
            await work(server, one, other)

    asyncio.run(main())


def interrupt(client: Client) -> None:
    assert client._session is not None
    client._session.interrupt()


def quotes(*prices: float) -> list[dict[str, object]]:
    return [{"firm": "IBM", "price": price} for price in prices]


def test_no_handler_sees_what_its_own_values_no_longer_match() -> None:
    """All quotes come in one frame, matched by the broker before the first handler was called."""

    async def work(_: BrokerServer, client: Client, publisher: Client) -> None:
        monitor = await client.attach(Monitor())
        await publisher.publish_many(quotes(99, 99.5, 98, 98.5, 120, 97))
        await until(lambda: 97 in monitor.bought)
        assert monitor.bought == [99, 98, 97]
        assert monitor.last_buy == 97

    with_clients(work)


def test_updates_that_are_assigned_together_are_joined_and_in_order() -> None:
    async def work(server: BrokerServer, client: Client, publisher: Client) -> None:
        monitor = await client.attach(Monitor())
        (subscription,) = client.subscriptions.values()
        for price in range(1_000):
            monitor.last_buy = float(price)
        await until(lambda: subscription.parameters == {"last_buy": 999.0})
        assert subscription.version < 20
        await until(lambda: server.broker.named.subscriptions_of(
            next(iter(server.broker.sessions)))[0].subscription.parameters == {"last_buy": 999.0}
        )  # fmt: skip
        await publisher.publish_many(quotes(998.5))
        await until(lambda: monitor.bought == [998.5])

    with_clients(work)


class Car(Subscriber):
    place = Parameter(0.0, damping=5.0)

    def __init__(self) -> None:
        self.seen: list[int] = []

    @on("x between :place - 10 and :place + 10")
    def near(self, event: Event) -> None:
        self.seen.append(event["x"])


def test_damping_saves_messages() -> None:
    async def work(_: BrokerServer, client: Client, publisher: Client) -> None:
        car = await client.attach(Car())
        (subscription,) = client.subscriptions.values()
        for step in range(400):
            car.place = step / 100  # within the band that the broker has
            if step % 100 == 0:
                await asyncio.sleep(0.01)
        assert subscription.version <= 5
        await publisher.publish_many([{"x": 13}, {"x": 14}, {"x": -6}, {"x": -7}])
        await until(lambda: -6 in car.seen)
        assert car.seen == [13, -6]  # judged by the true place, 3.99

    with_clients(work)


def test_handlers_are_called_in_order_and_failures_are_told() -> None:
    class Wrong(Reader):
        @on("x = 12")
        def fails(self, event: Event) -> None:
            raise ValueError(event["x"])

    async def work(_: BrokerServer, client: Client, publisher: Client) -> None:
        failures: list[Failure] = []
        reader = await client.attach(Wrong(), on_error=failures.append)
        await publisher.publish_many([{"x": 1}, {"x": 12}, {"x": 2}])
        await until(lambda: len(reader.seen) == 4)
        assert reader.seen == [("all", 1), ("all", 12), ("large", 12), ("all", 2)]
        assert [each.handler for each in failures] == ["fails"]

    with_clients(work)


def test_a_durable_subscriber_goes_on_in_another_process(tmp_path: Path) -> None:
    """What the handlers had not done with when the first process ended comes again."""

    async def main() -> None:
        async with (
            running(BrokerSettings("a", port=0, data=tmp_path)) as server,
            client_of(server) as publisher,
        ):
            async with client_of(server, identity="desk", durable=True) as client:
                reader = await client.attach(Reader())
                await publisher.publish_many([{"x": 1}, {"x": 2}], confirm=True)
                await until(lambda: len(reader.seen) == 2)
                reader.gate.clear()
                await publisher.publish_many([{"x": 3}, {"x": 20}], confirm=True)
                await asyncio.sleep(0.05)
            async with client_of(server, identity="desk", durable=True) as client:
                assert sorted(client.subscriptions) == ["Reader.0", "Reader.1"]
                again = await client.attach(Reader())
                await until(lambda: len(again.seen) >= 3)
                seen = [each for each in again.seen if each[1] > 2]
                assert seen == [("all", 3), ("all", 20), ("large", 20)]
                assert again.seen[: len(again.seen) - 3] in ([], [("all", 2)])

    asyncio.run(main())


def test_drain_waits_for_handlers() -> None:
    async def work(_: BrokerServer, client: Client, publisher: Client) -> None:
        reader = await client.attach(Reader())
        reader.gate.clear()
        await publisher.publish_many([{"x": each} for each in range(5)])
        first = next(iter(client.subscriptions.values()))
        await until(lambda: len(first.inbox) == 4)
        asyncio.get_running_loop().call_later(0.02, reader.gate.set)
        await client.drain(WAIT_S)
        assert [x for _, x in reader.seen] == [0, 1, 2, 3, 4]

    with_clients(work)


def test_after_a_break_handlers_and_updates_go_on() -> None:
    async def work(_: BrokerServer, client: Client, publisher: Client) -> None:
        monitor = await client.attach(Monitor())
        interrupt(client)
        monitor.last_buy = 50.0
        await until(lambda: client.is_connected)
        (subscription,) = client.subscriptions.values()
        await until(lambda: subscription.parameters == {"last_buy": 50.0})
        await client.subscribe("z = 1")  # the updates before it have arrived
        await publisher.publish_many(quotes(60, 40))
        await until(lambda: bool(monitor.bought))
        assert monitor.bought == [40]

    with_clients(work)


def test_detach_ends_the_subscriptions() -> None:
    async def work(server: BrokerServer, client: Client, publisher: Client) -> None:
        monitor = await client.attach(Monitor())
        with pytest.raises(SubscriptionError, match="already attached"):
            await client.attach(monitor)
        await client.detach(monitor)
        assert not client.subscriptions
        assert [len(server.broker.named.subscriptions_of(each))
                for each in server.broker.sessions] in ([], [0])  # fmt: skip
        with pytest.raises(SubscriptionError, match="not attached"):
            await client.detach(monitor)
        await publisher.publish_many(quotes(1))
        await client.attach(monitor)
        await publisher.publish_many(quotes(2))
        await until(lambda: bool(monitor.bought))
        assert monitor.bought == [2]

    with_clients(work)


def test_what_cannot_be_attached_is_said() -> None:
    class Loaded(Subscriber):
        @on("price < @load")
        def quote(self, event: Event) -> None: ...

    async def work(_: BrokerServer, client: Client, __: Client) -> None:
        with pytest.raises(SubscriptionError, match="variable of the broker"):
            await client.attach(Loaded())
        assert not client.subscriptions

    with_clients(work)
