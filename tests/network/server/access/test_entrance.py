from __future__ import annotations

import asyncio

from support.wire_client import WireClient, running
from tidegate.network.server.access.entrance import Entrance
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire.handshake import Goodbye


def test_limits_and_their_names() -> None:
    entrance = Entrance(
        ClientLimits(connections_max=4, connections_per_address_max=2, handshakes_max=3)
    )
    assert entrance.enter("a", "1.1.1.1:1") is None
    assert entrance.enter("b", "1.1.1.1:2") is None
    problem = entrance.enter("c", "1.1.1.1:3")
    assert problem is not None
    assert (problem.limit, problem.most) == ("connections_per_address_max", 2)
    problem = entrance.enter("d", "::1:4")
    assert problem is not None
    assert (problem.limit, problem.most) == ("handshakes_max", 3)
    problem = entrance.enter("e", "::1:4")
    assert problem is not None
    assert str(problem) == "the broker takes no more connections (connections_max is 4)"
    for each in "cde":
        entrance.leave(each)
        entrance.leave(each)
    assert len(entrance) == 2
    entrance.introduced("a")
    entrance.introduced("b")
    entrance.leave("a")
    assert entrance.enter("f", "1.1.1.1:1") is None


def test_a_connection_too_many_is_told_the_limit_and_comes_again() -> None:
    limits = ClientLimits(connections_per_address_max=1)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob", wait=False)
            goodbye = await bob.next(Goodbye)
            problem = goodbye.problem
            assert (problem.code, problem.text, problem.end) == (
                "limit", "connections_per_address_max", 1,
            )  # fmt: skip
            assert goodbye.retry_ms is not None
            await ann.close()
            async with asyncio.timeout(60):
                while len(server.entrance):
                    await asyncio.sleep(0.01)
            await WireClient.connect(server.port, "bob")

    asyncio.run(main())


def test_strangers_are_few() -> None:
    limits = ClientLimits(handshakes_max=1)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            # Who has said who it is counts no more; a client that nobody holds is closed.
            known = [await WireClient.connect(server.port, name) for name in ("ann", "bob")]
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            async with asyncio.timeout(60):
                while len(server.entrance) < 3:
                    await asyncio.sleep(0.01)
            refused = await WireClient.connect(server.port, "eve", wait=False)
            assert (await refused.next(Goodbye)).problem.text == "handshakes_max"
            assert len(known) == 2
            writer.close()

    asyncio.run(main())
