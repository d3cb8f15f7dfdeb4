"""A client over real sockets, with a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.wire_client import running
from tidegate.errors import (
    AccessError,
    ConnectionLostError,
    FilterError,
    NetworkError,
    RoutingError,
    SubscriptionError,
    UnresolvedError,
)
from tidegate.network.client.client import Client
from tidegate.network.client.connect import connect
from tidegate.network.client.events import ReceivedEvent
from tidegate.network.client.subscription import Subscription
from tidegate.network.server.settings import BrokerSettings

WAIT_S = 8.0
"""Long enough for the first match of all, which compiles the kernels."""


def memory() -> BrokerSettings:
    return BrokerSettings("a", port=0)


def stored(folder: Path, port: int = 0) -> BrokerSettings:
    return BrokerSettings("a", port=port, data=folder)


def client_of(port: int, **options: object) -> Client:
    return connect(f"tidegate://127.0.0.1:{port}", timeout=WAIT_S, **options)  # type: ignore[arg-type]


async def take(subscription: Subscription, count: int) -> list[object]:
    """The attribute `x` of the next events."""
    events = [await subscription.next(WAIT_S) for _ in range(count)]
    return [event["x"] for event in events if event is not None]


def with_clients(work: Callable[[Client, Client], Awaitable[None]]) -> None:
    """Run work with a subscriber and a publisher at one broker."""

    async def main() -> None:
        async with (
            running(memory()) as server,
            client_of(server.port) as one,
            client_of(server.port) as other,
        ):
            await work(one, other)

    asyncio.run(main())


# -- events ---------------------------------------------------------------------------------------


def test_events_reach_their_subscribers() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x < :limit", limit=10)
        await publisher.publish_many([{"x": 9.5, "y": "é"}, {"x": 12}, {"x": 3}])
        event = await subscription.next(WAIT_S)
        assert isinstance(event, ReceivedEvent)
        assert dict(event.attributes) == {"x": 9.5, "y": "é"}
        assert (event["x"], event.get("z", 0), "y" in event, list(event)) == (
            9.5,
            0,
            True,
            ["x", "y"],
        )
        assert (event.version, event.publisher, event.position) == (
            subscription.version, publisher.identity, 0,
        )  # fmt: skip
        assert event.time is not None
        assert event.id.broker == subscriber.broker == "a"
        assert await take(subscription, 1) == [3]
        with pytest.raises(TimeoutError):
            await subscription.next(0.05)

    with_clients(work)


def test_an_update_is_in_force_when_it_returns() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x < :limit", name="cheap", limit=0)
        for limit in range(1, 20):
            await subscription.update(limit=limit)
            await publisher.publish_many([{"x": limit - 0.5}, {"x": limit}])
            event = await subscription.next(WAIT_S)
            assert event is not None
            assert (event["x"], event.version) == (limit - 0.5, subscription.version)
        await subscription.change("x > :limit and x < :top", {"top": 100})
        assert dict(subscription.parameters) == {"limit": 19, "top": 100}
        await publisher.publish_many([{"x": 5}, {"x": 50}, {"x": 500}])
        assert await take(subscription, 1) == [50]
        await subscription.update(top=None)
        await publisher.publish({"x": 50})
        with pytest.raises(TimeoutError):
            await subscription.next(0.05)

    with_clients(work)


def test_nothing_outdated_is_handed_out() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x < :limit", limit=10)
        await publisher.publish_many([{"x": 9}, {"x": 1}, {"x": 8}])
        while len(subscription.inbox) < 3:
            await asyncio.sleep(0.005)
        await subscription.update(limit=5)  # while the events wait in the inbox
        assert await take(subscription, 1) == [1]
        await publisher.publish({"x": 2})
        assert await take(subscription, 1) == [2]

    with_clients(work)


def test_subscriptions_may_share_an_inbox() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        inbox = subscriber.inbox()
        low = await subscriber.subscribe("x < 5", name="low", inbox=inbox)
        even = await subscriber.subscribe("y = 0", name="even", inbox=inbox)
        await publisher.publish_many([{"x": 1, "y": 0}, {"x": 2, "y": 1}, {"x": 9, "y": 0}])
        events = [await inbox.next(WAIT_S) for _ in range(3)]
        assert [[match[0] for match in each.matches] for each in events if each] == [
            [low, even], [low], [even],
        ]  # fmt: skip
        await low.cancel()
        await publisher.publish({"x": 1, "y": 0})
        event = await inbox.next(WAIT_S)
        assert event is not None
        assert [match[0].name for match in event.matches] == ["even"]

    with_clients(work)


def test_sequences_of_a_pattern() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        pattern = await subscriber.subscribe_pattern("x = 1 then x = 2 within 30 s")
        await publisher.publish({"x": 2})
        await publisher.publish({"x": 1}, confirm=False)
        await asyncio.sleep(0.01)
        await publisher.publish({"x": 2})
        sequence = await pattern.next(WAIT_S)
        assert sequence is not None
        assert [event["x"] for event in sequence] == [1, 2]
        await pattern.cancel()
        assert await pattern.next(WAIT_S) is None

    with_clients(work)


def test_unsubscribing_ends_what_a_filter_covers() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        narrow = await subscriber.subscribe("x < 5")
        wide = await subscriber.subscribe("x < 50")
        await subscriber.unsubscribe("x < 10")
        await publisher.publish({"x": 1})
        assert await take(wide, 1) == [1]
        assert await narrow.next(WAIT_S) is None
        assert list(subscriber.subscriptions.values()) == [wide]
        with pytest.raises(RoutingError, match="has no subscription that"):
            await subscriber.unsubscribe("x < 10")

    with_clients(work)


def test_a_client_is_away_and_back() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x > 0")
        await subscriber.suspend()
        await publisher.publish_many([{"x": 1}, {"x": 2}])
        with pytest.raises(TimeoutError):
            await subscription.next(0.05)
        await subscriber.resume()
        assert await take(subscription, 2) == [1, 2]

    with_clients(work)


def test_errors_have_their_types() -> None:
    async def work(client: Client, _: Client) -> None:
        with pytest.raises(FilterError, match="a value must follow"):
            await client.subscribe("x <")
        with pytest.raises(FilterError):
            await client.advertise("x <")
        with pytest.raises(UnresolvedError, match="no parameter :b"):
            await (await client.subscribe("x < :a", name="n")).update(b=1)
        with pytest.raises(RoutingError, match="there is a subscription 'n' already"):
            await client.subscribe("x < 1", name="n")
        with pytest.raises(SubscriptionError, match="is a filter, not a pattern"):
            await client.subscribe_pattern("x < 1")
        with pytest.raises(AccessError, match="no store"):
            await client.publish({"x": 1}, confirm=True)
        await client.close()
        with pytest.raises(NetworkError, match="closed"):
            await client.publish({"x": 1})

    with_clients(work)


def test_readers_come_to_an_end() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x > 0")
        await publisher.publish_many([{"x": 1}, {"x": 2}])
        while len(subscription.inbox) < 2:
            await asyncio.sleep(0.005)

        async def read() -> list[object]:
            return [event["x"] async for event in subscription]

        reader = asyncio.create_task(read())
        await subscriber.drain(WAIT_S)
        assert await reader == [1, 2]

    with_clients(work)


# -- connections ----------------------------------------------------------------------------------


def test_a_broken_connection_is_made_again_and_loses_nothing_asked_for() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x < :limit", limit=0)
        for number in range(1, 6):
            interrupt(subscriber)
            await subscription.update(limit=number)  # returns when in force, all the same
            interrupt(publisher)
            while not publisher.is_connected:
                await asyncio.sleep(0.005)
            await publisher.publish({"x": number - 0.5})
            assert await take(subscription, 1) == [number - 0.5]
        assert subscriber.sessions_lost == 0

    with_clients(work)


def interrupt(client: Client) -> None:
    assert client._session is not None
    client._session.interrupt()


def test_a_client_that_was_forgotten_subscribes_again() -> None:
    async def main() -> None:
        async with running(memory()) as server:
            port = server.port
            subscriber, publisher = client_of(port), client_of(port)
            await subscriber
            subscription = await subscriber.subscribe("x < :limit", limit=1)
            pattern = await subscriber.subscribe_pattern("x = 1 then x = 2")
            await subscription.update(limit=5)
        async with running(BrokerSettings("a", port=port)):
            await publisher
            while subscriber.sessions_lost == 0 or pattern.handle is None:
                await asyncio.sleep(0.01)
            await subscription.update(limit=7)
            await publisher.publish_many([{"x": 6}, {"x": 8}, {"x": 4}])
            assert await take(subscription, 2) == [6, 4]
            await subscriber.close()
            await publisher.close()

    asyncio.run(main())


def test_a_durable_client_gets_what_was_confirmed_exactly_once(tmp_path: Path) -> None:
    """Over restarts of the subscriber, of its connection, and of the broker."""

    async def main() -> None:
        got: list[object] = []
        port = 0
        publisher: Client | None = None
        for round in range(3):
            async with running(stored(tmp_path, port)) as server:
                port = server.port
                if publisher is None:
                    publisher = await client_of(port, identity="feed")
                async with client_of(port, identity="desk", durable=True) as subscriber:
                    subscription = await subscriber.subscribe("x >= :low", name="all", low=0)
                    batch = [{"x": round * 100 + number} for number in range(30)]
                    await publisher.publish_many(batch, confirm=True)
                    got += await take(subscription, 10)
                    interrupt(subscriber)
                    await asyncio.sleep(0)  # the client learns of it
                    got += await take(subscription, 10)
                    await subscription.next(WAIT_S)  # acknowledges those before, is not counted
        assert publisher is not None
        async with (
            running(stored(tmp_path, port)) as server,
            client_of(server.port, identity="desk", durable=True) as subscriber,
        ):
            got += await take(subscriber.subscriptions["all"], 90 - len(got))
            assert got == [round * 100 + number for round in range(3) for number in range(30)]
            with pytest.raises(TimeoutError):
                await subscriber.subscriptions["all"].next(0.05)
        await publisher.close()

    asyncio.run(main())


def test_manual_acknowledgements_decide_what_comes_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(stored(tmp_path)) as server:
            port = server.port
            async with (
                client_of(port, identity="desk", durable=True, ack="manual") as subscriber,
                client_of(port) as publisher,
            ):
                subscription = await subscriber.subscribe("x > 0", name="all")
                await publisher.publish_many([{"x": n} for n in range(1, 6)], confirm=True)
                events = [await subscription.next(WAIT_S) for _ in range(5)]
                for index in (0, 1, 3):  # the third is not done with
                    event = events[index]
                    assert event is not None
                    event.ack()
                    event.ack()
            async with client_of(port, identity="desk", durable=True) as subscriber:
                assert await take(subscriber.subscriptions["all"], 3) == [3, 4, 5]

    asyncio.run(main())


def test_a_durable_subscription_is_changed_by_the_next_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(stored(tmp_path)) as server, client_of(server.port) as publisher:
            desk = {"identity": "desk", "durable": True}
            async with client_of(server.port, **desk) as client:
                await client.subscribe("x < :a", name="n", a=5)
            async with client_of(server.port, **desk) as client:
                held = client.subscriptions["n"]
                assert (str(held.filter), dict(held.parameters)) == ("x < :a", {"a": 5})
                same = await client.subscribe("x < :a", name="n", a=7)
                assert same is held
                await publisher.publish_many([{"x": 6}, {"x": 8}], confirm=True)
                assert await take(same, 1) == [6]
            async with client_of(server.port, **desk) as client:
                other = await client.subscribe("x > :b", name="n", b=10)
                await publisher.publish_many([{"x": 6}, {"x": 80}], confirm=True)
                assert await take(other, 1) == [80]
                with pytest.raises(SubscriptionError, match="needs a name"):
                    await client.subscribe("x < 1")
            async with client_of(server.port, **desk) as client:
                await client.depart()
            async with client_of(server.port, **desk) as client:
                assert dict(client.subscriptions) == {}

    asyncio.run(main())


def test_a_second_process_of_a_client_takes_over() -> None:
    async def main() -> None:
        async with running(memory()) as server:
            first = await client_of(server.port, identity="desk")
            subscription = await first.subscribe("x > 0")
            async with client_of(server.port, identity="desk"):
                with pytest.raises(AccessError, match="taken over"):
                    await subscription.next(WAIT_S)
                with pytest.raises(AccessError):
                    await first.publish({"x": 1})

    asyncio.run(main())


def test_a_broker_that_is_not_there() -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLostError, match="cannot be reached: Connection refused"):
            async with connect("tidegate://127.0.0.1:9", timeout=0.2):
                pass

    asyncio.run(main())


def test_another_server_is_told_apart() -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NetworkError, match="another protocol"):
            async with client_of(port):
                pass
        server.close()
        await server.wait_closed()

    asyncio.run(main())


# -- flow -----------------------------------------------------------------------------------------


def test_more_events_than_the_credit_come_in_order() -> None:
    async def main() -> None:
        async with (
            running(memory()) as server,
            client_of(server.port, credit_events=7, slow="block") as subscriber,
            client_of(server.port) as publisher,
        ):
            subscription = await subscriber.subscribe("x >= 0")
            await publisher.publish_many([{"x": number} for number in range(500)])
            assert await take(subscription, 500) == list(range(500))

    asyncio.run(main())


def test_publishing_goes_on_beyond_the_credit_of_the_broker() -> None:
    async def work(subscriber: Client, publisher: Client) -> None:
        subscription = await subscriber.subscribe("x >= 0")
        count = 12_000
        publishing = asyncio.create_task(
            publisher.publish_many([{"x": number} for number in range(count)])
        )
        assert await take(subscription, count) == list(range(count))
        await publishing

    with_clients(work)
