"""The HTTP port of a broker: aiohttp in the event loop of the broker.

    GET  /health                      200 while the broker lives; no token needed, nor for the next
    GET  /ready                       200 or 503, with the reasons
    GET  /metrics                     Prometheus or OpenMetrics text
    GET  /state                       state.py, as JSON
    POST /events                      events, as bodies.py takes them
    POST /trace                       the way of an event through the network: tracing.py
    POST /neighbours/NAME/forget      remove a neighbour that is gone for good

Requests give the token as `Authorization: Bearer TOKEN`. What they ask for is small, so that the
broker's turns hardly wait for it; bodies, time and connections are bounded.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tidegate.errors import HttpRequestError, NetworkError, OverloadedError, TidegateError
from tidegate.network.admin.bodies import events_of, trace_request
from tidegate.network.admin.health import unready
from tidegate.network.admin.local_client import LocalClient
from tidegate.network.admin.metrics import BrokerMetrics
from tidegate.network.admin.problems import PROBLEM_TYPE, problem_json
from tidegate.network.admin.settings import AdminSettings
from tidegate.network.admin.state import broker_state
from tidegate.network.admin.tracing import trace
from tidegate.network.server.broker_server import BrokerServer

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_OPEN = ("/health", "/ready")
"""Paths that need no token: a supervisor asks them, and they say nothing of clients."""


class AdminPort:
    """Serves HTTP for one broker."""

    def __init__(self, server: BrokerServer, settings: AdminSettings) -> None:
        self._server = server
        self._settings = settings
        self._metrics = BrokerMetrics(server)
        self._client = LocalClient(server, settings.identity)

    async def start(self) -> None:
        """Listen; raises NetworkError if that is impossible."""
        application = web.Application(
            middlewares=[self._guarded], client_max_size=self._settings.body_bytes_max
        )
        application.add_routes(
            [
                web.get("/health", self._health),
                web.get("/ready", self._ready),
                web.get("/metrics", self._metrics_page),
                web.get("/state", self._state),
                web.post("/events", self._publish),
                web.post("/trace", self._trace),
                web.post("/neighbours/{name}/forget", self._forget),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, keepalive_timeout=30)
        await self._runner.setup()
        try:
            self._listener = await self._server.loop.create_server(
                self._new_connection, self._settings.host, self._settings.port
            )
        except OSError as error:
            await self._runner.cleanup()
            raise NetworkError(
                f"the admin port cannot listen at {self._settings.host}:{self._settings.port}: "
                f"{error.strerror or error}"
            ) from None
        _log.info("the admin port listens at http://%s:%d", self._settings.host, self.port)

    def _new_connection(self) -> asyncio.Protocol:
        http = self._runner.server
        assert http is not None  # it is set up
        if len(http.connections) >= self._settings.connections_max:
            return _Refusing()
        return http()

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening; requests that are being answered may end first."""
        self._listener.close()
        await self._runner.shutdown()
        await self._runner.cleanup()
        self._client.close()

    # -- all requests -------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask for the token, bound the time, and answer errors as problems."""
        try:
            if request.path not in _OPEN:
                self._check_token(request)
            async with asyncio.timeout(self._settings.request_s):
                return await handler(request)
        except HttpRequestError as error:
            return _problem(error)
        except web.HTTPException as error:
            response = _problem(HttpRequestError(error.status, _explained(error, request)))
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
            return response
        except TimeoutError:
            limit = self._settings.request_s
            return _problem(HttpRequestError(503, f"the request took longer than {limit:g} s"))
        except OverloadedError as error:
            return _problem(HttpRequestError(503, str(error)))
        except TidegateError as error:
            return _problem(HttpRequestError(422, str(error)))

    def _check_token(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._settings.admits(token.strip()):
            return
        _log.warning(
            "a request to the admin port had no valid token: %s %s",
            request.method, request.path,
            extra={"event": "admin_refused", "address": request.remote},
        )  # fmt: skip
        raise HttpRequestError(401, "give the admin token as `Authorization: Bearer TOKEN`")

    # -- what can be asked --------------------------------------------------------------------

    async def _health(self, _request: web.Request) -> web.Response:
        if not self._server.is_alive:
            return _json({"status": "failed"}, 503)
        return _json({"status": "ok"})

    async def _ready(self, _request: web.Request) -> web.Response:
        reasons = unready(self._server)
        if reasons:
            return _json({"status": "not ready", "reasons": reasons}, 503)
        return _json({"status": "ready"})

    async def _metrics_page(self, request: web.Request) -> web.Response:
        page, content_type = self._metrics.page(request.headers.get("Accept", ""))
        return web.Response(body=page, headers={"Content-Type": content_type})

    async def _state(self, _request: web.Request) -> web.Response:
        return _json(broker_state(self._server))

    async def _publish(self, request: web.Request) -> web.Response:
        confirm = _confirm(request, has_store=self._server.store is not None)
        space = request.query.get("space")
        headers = {name.lower(): value for name, value in request.headers.items()}
        events = events_of(headers, await request.read(), self._settings.events_max)
        refused = await self._client.publish(events, confirm=confirm, space=space)
        if refused:
            count = len(refused)
            raise HttpRequestError(
                422,
                f"{count} of {len(events)} events were refused by the broker; the others are "
                "published",
                list(refused.items())[:100],
            )
        return _json({"published": len(events), "confirmed": confirm}, 200 if confirm else 202)

    async def _trace(self, request: web.Request) -> web.Response:
        asked = trace_request(await request.read(), self._settings.identity)
        reports = await trace(self._server, asked.event, asked.identity, asked.space)
        confirm = asked.publish and self._server.store is not None
        if asked.publish:
            refused = await self._client.publish([asked.event], confirm=confirm, space=asked.space)
            if refused:
                raise HttpRequestError(422, f"the event was refused: {refused[0]}")
        return _json(
            {
                "deliveries": sum(each["deliveries"] for each in reports.reports),
                "brokers": reports.reports,
                "unheard": reports.unheard(),
                "published": asked.publish,
                "confirmed": confirm,
            }
        )

    async def _forget(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        forgotten = await self._server.turns.ask(lambda turn: self._server.links.forget(name, turn))
        return _json({"neighbour": name, **forgotten})


def _confirm(request: web.Request, *, has_store: bool) -> bool:
    asked = request.query.get("confirm")
    if asked is None:
        return has_store
    if asked not in ("true", "false"):
        raise HttpRequestError(400, f"confirm is true or false, not {asked!r:.50}")
    if asked == "true" and not has_store:
        raise HttpRequestError(409, "this broker has no store, so it confirms nothing; use --data")
    return asked == "true"


def _explained(error: web.HTTPException, request: web.Request) -> str:
    if error.status == 404:
        return f"there is no {request.path!r:.200}"
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return f"{request.path} takes {allowed}, not {request.method}"
    return error.text or error.reason


def _problem(error: HttpRequestError) -> web.Response:
    return web.Response(status=error.status, text=problem_json(error), content_type=PROBLEM_TYPE)


def _json(value: dict[str, Any], status: int = 200) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return web.Response(status=status, text=text, content_type="application/json")


class _Refusing(asyncio.Protocol):
    """Closes a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
