"""The admin port and the WebSocket listener of a broker that a command runs."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.errors import AccessError, SettingsError, TidegateError

if TYPE_CHECKING:
    from tidegate.network.admin.settings import AdminSettings
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.configuration.listeners import AdminTable
    from tidegate.network.server.settings import BrokerSettings
    from tidegate.network.websocket.settings import WebSocketSettings

TOKEN_FILE = "admin-token"
"""The file in the folder of the store to which a broker writes the token that it has made."""
TOKEN_CHARS_MIN = 16

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--admin", metavar="HOST:PORT",
                 help="Admin port: health, metrics, state, events over HTTP; on loopback."),
    click.option("--admin-token-file", metavar="FILE",
                 type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 help="Token of the admin port; else TIDEGATE_ADMIN_TOKEN, or one is made and "
                      "written to admin-token in the folder of the store."),
    click.option("--websocket", metavar="HOST:PORT", help="Listen for WebSockets, as of browsers."),
    click.option("--origin", "origins", multiple=True, metavar="URL",
                 help="Origin of pages that may connect, as https://desk.example; * for all."),
]  # fmt: skip
_NAMES = ("admin", "admin_token_file", "websocket", "origins")


def listener_options(command: _Command) -> _Command:
    """Add the options of both listeners to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the listeners, and all others."""
    ours = {name: value for name, value in options.items() if name in _NAMES}
    return ours, {name: value for name, value in options.items() if name not in ours}


def with_options(settings: BrokerSettings, options: Mapping[str, Any]) -> BrokerSettings:
    """The settings of a broker with those of the listeners that the command line gives."""
    from tidegate.network.server.configuration.addresses import listen_address
    from tidegate.network.server.configuration.listeners import (
        AdminTable,
        WebSocketTable,
        check_admin_address,
        check_origins,
    )

    admin, websocket = settings.admin, settings.websocket
    if "admin" in options:
        with _usage("--admin"):
            listen = check_admin_address(options["admin"])
        admin = replace(admin or AdminTable(), listen=listen)
    if "admin_token_file" in options:
        if admin is None:
            raise click.UsageError("--admin-token-file goes with --admin")
        admin = replace(admin, token_file=options["admin_token_file"])
    if "websocket" in options:
        with _usage("--websocket"):
            listen_address(options["websocket"])
        websocket = replace(websocket or WebSocketTable(), listen=options["websocket"])
    if "origins" in options:
        if websocket is None:
            raise click.UsageError("--origin goes with --websocket")
        with _usage("--origin"):
            websocket = replace(websocket, origins=check_origins(tuple(options["origins"])))
    return replace(settings, admin=admin, websocket=websocket)


@contextmanager
def _usage(option: str) -> Iterator[None]:
    """Turn an error of a setting into one of the option that gave it."""
    try:
        yield
    except SettingsError as error:
        raise click.UsageError(f"{option}: {error}") from None


def listeners_of(
    settings: BrokerSettings,
) -> tuple[AdminSettings | None, WebSocketSettings | None]:
    """What the listeners are started with; raises TidegateError where a token is missing."""
    from tidegate.network.server.configuration.addresses import check_reach, listen_address

    admin = None if settings.admin is None else _admin(settings.admin, settings.data)
    if settings.websocket is None:
        return admin, None
    from tidegate.network.websocket.settings import WebSocketSettings

    host, port = listen_address(settings.websocket.listen)
    check_reach(host, settings.without_authentication or settings.auth is not None)
    tls = None if settings.tls is None else settings.tls.server_context()
    return admin, WebSocketSettings(host, port, settings.websocket.origins, tls)


def _admin(table: AdminTable, data: Path | None) -> AdminSettings:
    """The settings of the admin port.

    Its token is in a file, in TIDEGATE_ADMIN_TOKEN, or made and written to the folder of the store.
    """
    from tidegate.network.server.configuration.addresses import listen_address

    try:
        import aiohttp  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise click.ClickException(
            f"the admin port needs the extra `admin`: pip install 'tidegate[admin]' ({error})"
        ) from error
    from tidegate.network.admin.settings import AdminSettings, token_digest

    token = _token(table.token_file, data)
    if len(token) < TOKEN_CHARS_MIN or not token.isascii() or not token.isprintable():
        raise AccessError(
            f"the admin token has at least {TOKEN_CHARS_MIN} printable ASCII characters, as of "
            "`openssl rand -hex 32`"
        )
    return AdminSettings(token_digest(token), *listen_address(table.listen), table.identity)


def _token(token_file: Path | None, data: Path | None) -> str:
    if token_file is not None:
        try:
            return token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AccessError(f"{token_file} cannot be read: {error}") from None
    token = os.environ.get("TIDEGATE_ADMIN_TOKEN")
    if token:
        return token
    if data is None:
        raise AccessError(
            "the admin port needs a token: give --admin-token-file, or set TIDEGATE_ADMIN_TOKEN"
        )
    return _kept_token(data / TOKEN_FILE)


def _kept_token(file: Path) -> str:
    """The token in a file, which is made if it is not there, for nobody else to read."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return file.read_text(encoding="utf-8").strip()
        token = secrets.token_hex(32)
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(f"{token}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TidegateError(f"{file}: the admin token cannot be kept there: {error}") from None
    return token


@asynccontextmanager
async def listening(
    server: BrokerServer, admin: AdminSettings | None, websocket: WebSocketSettings | None
) -> AsyncIterator[list[str]]:
    """Run the listeners of a broker beside its own; gives lines that say where they are."""
    lines = []
    async with AsyncExitStack() as stack:
        if websocket is not None:
            from tidegate.network.websocket.listener import WebSocketListener

            listener = WebSocketListener(server, websocket)
            await listener.start()
            stack.callback(listener.close)
            scheme = "ws" if websocket.tls is None else "wss"
            lines.append(f"WebSockets at {scheme}://{websocket.host}:{listener.port}")
        if admin is not None:
            from tidegate.network.admin.http_port import AdminPort

            port = AdminPort(server, admin)
            await port.start()
            stack.push_async_callback(port.stop)
            lines.append(f"admin port at http://{admin.host}:{port.port}")
        yield lines
