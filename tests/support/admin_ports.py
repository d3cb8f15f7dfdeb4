"""A broker with its admin port, and a client of that, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import ClientSession

from support.wire_client import running
from tidegate.network.admin.http_port import AdminPort
from tidegate.network.admin.settings import AdminSettings, token_digest
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings

TOKEN = "the token of a test"


class Answer(NamedTuple):
    """What the admin port has answered."""

    status: int
    content_type: str
    body: Any


class Admin:
    """A broker that has an admin port."""

    def __init__(self, server: BrokerServer, port: AdminPort, session: ClientSession) -> None:
        self.server = server
        self.port = port
        self._session = session

    async def ask(self, method: str, path: str, token: str | None = TOKEN, **more: Any) -> Answer:
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        url = f"http://127.0.0.1:{self.port.port}{path}"
        async with self._session.request(method, url, headers=headers, **more) as answer:
            is_json = answer.content_type.endswith("json")
            body = await answer.json(content_type=None) if is_json else await answer.text()
            return Answer(answer.status, answer.content_type, body)

    async def get(self, path: str, **more: Any) -> Answer:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, **more: Any) -> Answer:
        return await self.ask("POST", path, **more)


@asynccontextmanager
async def admin(settings: BrokerSettings, **fields: Any) -> AsyncIterator[Admin]:
    """Run a broker with an admin port."""
    async with running(settings) as server, ClientSession() as session:
        port = AdminPort(server, AdminSettings(token_digest(TOKEN), port=0, **fields))
        await port.start()
        try:
            yield Admin(server, port, session)
        finally:
            await port.stop()
