"""Grants over sockets: requests of all kinds, restarts with other grants, publishing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.wire_client import WireClient, bodies, running
from tidegate.errors import AccessError
from tidegate.language.events import Event
from tidegate.network.admin.local_client import LocalClient
from tidegate.network.server.access.granted import grants_of
from tidegate.network.server.access.settings import AuthSettings, IdentitySettings
from tidegate.network.server.access.tokens import HashedToken
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire.flow import Ack, Confirmed, NotPublished
from tidegate.network.wire.requests import Cancel, Missed, Refused, Subscribe, Update
from tidegate.routing.grants import NOTHING

HASH = str(HashedToken.of("secret"))


def auth(subscribe: str | None = None, *, wide: str = "refuse", **more: Any) -> AuthSettings:
    ann = IdentitySettings("ann", token=HASH, subscribe=subscribe, wide=wide, **more)  # type: ignore[arg-type]
    return AuthSettings(identities=(ann, IdentitySettings("bob", token=HASH)))


def stored(folder: Path, settings: AuthSettings | None) -> BrokerSettings:
    return BrokerSettings("a", port=0, data=folder, auth=settings)


async def connect(port: int, name: str, **fields: Any) -> WireClient:
    return await WireClient.connect(port, name, token="secret", **fields)


def test_grants_of_settings() -> None:
    assert grants_of(None) is None
    grant_of = grants_of(
        AuthSettings(
            "narrow",
            identities=(
                IdentitySettings("ann", token=HASH, subscribe="price < 10", publish="price > 0"),
                IdentitySettings("bob", token=HASH, wide="refuse"),
            ),
        )
    )
    assert grant_of is not None
    ann, bob = grant_of("ann/monitor"), grant_of("bob")
    assert (str(ann.subscribe), str(ann.publish), ann.narrows) == ("price < 10", "price > 0", True)
    assert (bob.subscribe, bob.publish, bob.narrows) == (None, None, False)
    assert grant_of("eve") is NOTHING


def test_requests_that_ask_for_more_are_refused() -> None:
    async def main() -> None:
        settings = BrokerSettings("a", port=0, auth=auth("price < 10"))
        async with running(settings) as server:
            ann = await connect(server.port, "ann")
            done = await ann.request(Subscribe, "price < :limit", "s", {"limit": 5})
            for request in (
                Subscribe(2, "price < 11"),
                Update(3, done.handles[0], 1, {"limit": 11}),
                Update(4, done.handles[0], 1, {}, "symbol = 'IBM'"),
                Subscribe(5, "price < 5 then symbol = 'IBM' within 1 s"),
            ):
                ann.send(request)
                refused = await ann.next(Refused)
                assert refused.number == request.number
                assert refused.problem.code == "access"
                assert "'ann' may get `price < 10`" in refused.problem.reason
            bob = await connect(server.port, "bob")
            bob.publish({"price": 10, "symbol": "IBM"}, {"price": 4})
            assert bodies(await ann.deliveries(1)) == [{"price": 4}]

    asyncio.run(main())


def test_many_subscriptions_at_once_are_refused_one_by_one() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=auth("price < 10"))) as server:
            url = f"tidegate://127.0.0.1:{server.port}"
            async with tidegate.connect(url, identity="ann/bulk", token="secret") as client:
                wanted = [f"price < {limit}" for limit in range(5, 15)]
                with pytest.raises(AccessError, match="'ann/bulk' may get `price < 10`"):
                    await client.subscribe_many(wanted)
                (session,) = server.sessions
                named = server.broker.named.subscriptions_of(session)
                filters = {str(each.subscription.filter) for each in named}
                assert filters == {f"price < {limit}" for limit in range(5, 11)}

    asyncio.run(main())


def test_a_pattern_that_is_narrowed_comes_under_its_handle_and_can_be_cancelled() -> None:
    async def main() -> None:
        settings = BrokerSettings("a", port=0, auth=auth("price < 10", wide="narrow"))
        async with running(settings) as server:
            ann = await connect(server.port, "ann")
            wanted = "kind = 'x' then kind = 'y' within 1 s"
            first = await ann.request(Subscribe, wanted)
            again = await ann.request(Subscribe, wanted)
            assert again.handles == first.handles
            done = await ann.request(Cancel, first.handles[0])
            assert type(done).__name__ == "Done"
            (session,) = server.sessions.values()
            assert server.broker.patterns.patterns_of(session.client) == []

    asyncio.run(main())


@pytest.mark.parametrize("wide", ["refuse", "narrow"])
def test_a_grant_that_has_changed_holds_for_what_is_in_the_store(tmp_path: Path, wide: str) -> None:
    """Subscriptions and waiting events were stored under a wider grant."""

    async def main() -> None:
        async with running(stored(tmp_path, auth())) as server:
            ann = await connect(server.port, "ann", is_durable=True)
            await ann.request(Subscribe, "price < :limit", "s", {"limit": 20})
            await ann.request(Subscribe, "symbol = 'IBM'")
            await ann.close()
            bob = await connect(server.port, "bob")
            bob.publish(*({"price": price, "symbol": "IBM"} for price in (15, 5)), confirm=True)
            await bob.next(Confirmed)
        async with running(stored(tmp_path, auth("price < 10", wide=wide))) as server:
            ann = await connect(server.port, "ann", is_durable=True, session=2)
            rows = await ann.deliveries(1)
            assert bodies(rows) == [{"price": 5, "symbol": "IBM"}]
            assert (await ann.next(Missed)).count == 1
            ann.send(Ack(rows[0][2]))
            bob = await connect(server.port, "bob", epoch=1)
            bob.publish(*({"price": price, "symbol": "IBM"} for price in (16, 6)), confirm=True)
            await bob.next(Confirmed)
            if wide == "narrow":
                assert bodies(await ann.deliveries(1)) == [{"price": 6, "symbol": "IBM"}]
            await ann.close()
        # what was refused or narrowed is still in the store as it was asked for
        async with running(stored(tmp_path, auth("price < 30"))) as server:
            (session,) = [each for each in server.sessions if each.identity == "ann"]
            (named,) = server.broker.named.subscriptions_of(session)
            assert str(named.subscription.filter) == "price < :limit"
        # an identity that is gone may do nothing, and what is stored for it waits
        gone = AuthSettings(identities=(IdentitySettings("bob", token=HASH),))
        async with running(stored(tmp_path, gone)) as server:
            (session,) = [each for each in server.sessions if each.identity == "ann"]
            assert server.broker.named.subscriptions_of(session) == []

    asyncio.run(main())


def test_the_admin_port_is_no_stranger() -> None:
    async def main() -> None:
        event = Event.of({"price": -1})
        async with running(BrokerSettings("a", port=0, auth=auth("price < 10"))) as server:
            assert await LocalClient(server, "http").publish([event], confirm=False) == {}
            with pytest.raises(ConnectionError, match="is not admitted"):
                await connect(server.port, "http")
        entry = IdentitySettings("http", token=HASH, publish="price > 0")
        settings = BrokerSettings("a", port=0, auth=AuthSettings(identities=(entry,)))
        async with running(settings) as server:
            refused = await LocalClient(server, "http").publish([event], confirm=False)
            assert "'http' may publish `price > 0`" in refused[0]

    asyncio.run(main())


def test_publishing_outside_of_the_grant_is_told_confirmed_or_not(tmp_path: Path) -> None:
    async def main() -> None:
        settings = stored(tmp_path, auth(publish="price > 0"))
        async with running(settings) as server:
            ann, bob = await connect(server.port, "ann"), await connect(server.port, "bob")
            await bob.request(Subscribe, "price is not null", "s")
            ann.publish({"price": 1}, {"price": -1}, {"price": 2, "x": 1})
            ann.publish({"price": -4}, {"price": 5}, confirm=True)
            await ann.next(Confirmed)
            refused = [await ann.next(NotPublished) for _ in range(3)]
            assert [each.number for each in refused] == [2, 3, 4]
            assert {each.problem.code for each in refused} == {"access"}
            assert bodies(await bob.deliveries(2)) == [{"price": 1}, {"price": 5}]
            assert server.counters.refused == 3

    asyncio.run(main())
