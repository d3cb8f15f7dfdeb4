from __future__ import annotations

import asyncio

from support.admin_ports import admin
from support.wire_client import WireClient, bodies, running
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire


def test_trace_over_two_brokers() -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0)) as port:
            a = port.server
            peers = (PeerAddress("127.0.0.1", a.port),)
            async with running(BrokerSettings("b", port=0, peers=peers)) as b:
                while "a" not in b.broker.domains.domain_of:
                    await asyncio.sleep(0.01)
                ann = await WireClient.connect(b.port, "ann")
                await ann.request(wire.Subscribe, "x > 0", name="n", version=1, confirm=True)
                await ann.next(wire.InForce)
                found = (await port.post("/trace", json={"event": {"x": 1}})).body
                assert [each["broker"] for each in found["brokers"]] == ["a", "b"]
                assert found["brokers"][0]["passed_on"][0]["connected"] is True
                assert (found["deliveries"], found["published"]) == (1, False)
                assert found["unheard"] == []
                found = (await port.post("/trace", json={"event": {"x": 2}, "publish": True})).body
                assert found["published"]
                assert bodies(await ann.deliveries(1)) == [{"x": 2}]
                await ann.close()

    asyncio.run(main())


def test_broker_that_is_away_is_named() -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0), request_s=60) as port:
            a = port.server
            peers = (PeerAddress("127.0.0.1", a.port),)
            async with running(BrokerSettings("b", port=0, peers=peers)) as b:
                while "a" not in b.broker.domains.domain_of:
                    await asyncio.sleep(0.01)
                ann = await WireClient.connect(b.port, "ann")
                await ann.request(wire.Subscribe, "x > 0", name="n", version=1, confirm=True)
                await ann.next(wire.InForce)
                await ann.close()
            found = (await port.post("/trace", json={"event": {"x": 1}})).body
            assert found["unheard"] == ["b"]
            assert found["brokers"][0]["passed_on"][0]["connected"] is False

    asyncio.run(main())


def test_wrong_requests() -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0)) as port:
            for body, status, reason in [
                ([], 400, "an object that has an `event`"),
                ({"event": 5}, 400, "`event` is no JSON object"),
                ({"event": {}, "publish": "yes"}, 400, "`publish` is no boolean"),
                ({"event": {}, "events": 1}, 400, "there is no 'events'"),
                ({"event": {}, "publish": True, "identity": "bob"}, 400, "one of 'http'"),
                ({"event": {"x": [1]}}, 422, "a list is not a value"),
            ]:
                answer = await port.post("/trace", json=body)
                assert answer.status == status
                assert reason in answer.body["detail"]

    asyncio.run(main())
