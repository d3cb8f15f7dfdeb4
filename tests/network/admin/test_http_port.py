from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.admin_ports import admin
from support.wire_client import WireClient, bodies, running
from tidegate.errors import NetworkError
from tidegate.network.admin.http_port import AdminPort
from tidegate.network.admin.settings import AdminSettings
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire


def test_health_and_readiness_need_no_token() -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0)) as port:
            answer = await port.get("/health", token=None)
            assert answer == (200, "application/json", {"status": "ok"})
            assert (await port.get("/ready", token=None)).body == {"status": "ready"}
            port.server.is_draining = True
            answer = await port.get("/ready", token=None)
            assert answer.status == 503
            assert answer.body["reasons"] == ["the broker drains"]

    asyncio.run(main())


@pytest.mark.parametrize("token", [None, "", "another token of a test"])
@pytest.mark.parametrize("path", ["/state", "/metrics", "/nothing"])
def test_all_else_needs_it(path: str, token: str | None, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0)) as port:
            answer = await port.get(path, token=token)
            assert (answer.status, answer.content_type) == (401, "application/problem+json")
            assert "Authorization: Bearer TOKEN" in answer.body["detail"]

    asyncio.run(main())
    assert "no valid token" in caplog.text
    assert token is None or token == "" or token not in caplog.text


def test_events_reach_subscribers(tmp_path: Path) -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0, data=tmp_path)) as port:
            ann = await WireClient.connect(port.server.port, "ann")
            await ann.request(wire.Subscribe, "x > 0 or ce_type = 't'")
            answer = await port.post("/events", json=[{"x": 1}, {"x": 0}])
            assert (answer.status, answer.body) == (200, {"published": 2, "confirmed": True})
            answer = await port.post("/events?confirm=false", json={"x": 2})
            assert (answer.status, answer.body) == (202, {"published": 1, "confirmed": False})
            headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"}
            assert (await port.post("/events", json={"y": 1}, headers=headers)).status == 200
            cloud_event = {"ce_id": "1", "ce_source": "s", "ce_type": "t", "y": 1}
            assert bodies(await ann.deliveries(3)) == [{"x": 1}, {"x": 2}, cloud_event]
            await ann.close()

    asyncio.run(main())


def test_wrong_requests_are_problems() -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0), body_bytes_max=1_000) as port:
            for method, path, body, status, reason in [
                ("GET", "/nothing", None, 404, "there is no '/nothing'"),
                ("GET", "/events", None, 405, "takes POST, not GET"),
                ("POST", "/events", b"{", 400, "not valid JSON"),
                ("POST", "/events", b'{"x": [1]}', 422, "a list is not a value"),
                ("POST", "/events", b" " * 1_001, 413, ""),
                ("POST", "/events?confirm=true", b"{}", 409, "has no store"),
                ("POST", "/events?confirm=perhaps", b"{}", 400, "true or false"),
                ("POST", "/events?space=s", b"{}", 422, "there is no space"),
                ("POST", "/neighbours/b/forget", None, 422, "no neighbour of this broker"),
            ]:
                headers = {"Content-Type": "application/json"}
                answer = await port.ask(method, path, data=body, headers=headers)
                assert (answer.status, answer.content_type) == (status, "application/problem+json")
                assert reason in str(answer.body)

    asyncio.run(main())


def test_slow_bodies_and_too_many_connections_are_bounded() -> None:
    async def main() -> None:
        settings = BrokerSettings("a", port=0)
        async with admin(settings, request_s=0.1, connections_max=2) as port:
            at = ("127.0.0.1", port.port.port)
            reader, writer = await asyncio.open_connection(*at)
            head = (
                "POST /events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                "Authorization: Bearer the token of a test\r\nContent-Length: 9\r\n\r\n{"
            )
            writer.write(head.encode())
            assert b"503" in await reader.readline()
            more = [await asyncio.open_connection(*at) for _ in range(3)]
            assert b"" in [await asyncio.wait_for(more[-1][0].read(), 60)]
            for each in (writer, *(each for _, each in more)):
                each.close()

    asyncio.run(main())


def test_neighbour_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with admin(BrokerSettings("a", port=0, data=tmp_path)) as port:
            a = port.server
            peers = (PeerAddress("127.0.0.1", a.port),)
            async with running(BrokerSettings("b", port=0, peers=peers, data=tmp_path / "b")) as b:
                while "a" not in b.broker.domains.domain_of:
                    await asyncio.sleep(0.01)
                ann = await WireClient.connect(b.port, "ann", is_durable=True)
                await ann.request(wire.Subscribe, "x > 0", name="n", version=1, confirm=True)
                await ann.next(wire.InForce)
                answer = await port.post("/neighbours/b/forget")
                assert (answer.status, "is connected" in answer.body["detail"]) == (422, True)
                await ann.close()
            await port.post("/events", json=[{"x": 1}, {"x": 2}])
            answer = await port.post("/neighbours/b/forget")
            assert answer.body["messages"] > 0
            assert (answer.body["filters"], answer.body["stored_events"]) == (1, 2)
            assert a.broker.domains.domain_of == {}
            assert a.links.by_peer == {}
            assert (await port.get("/state")).body["neighbours"] == []

    asyncio.run(main())


def test_port_in_use() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            with pytest.raises(NetworkError, match="the admin port cannot listen at"):
                await AdminPort(server, AdminSettings(b"", port=server.port)).start()

    asyncio.run(main())
