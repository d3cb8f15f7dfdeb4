"""The admin port and the WebSocket listener of a broker that a command runs."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.network.addresses import check_reach, is_loopback, parse_address
from tidegate.errors import AccessError, TidegateError

if TYPE_CHECKING:
    from tidegate.network.admin.settings import AdminSettings
    from tidegate.network.server.broker_server import BrokerServer
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


def listener_options(command: _Command) -> _Command:
    """Add the options of both listeners to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def listener_settings(
    data: Path | None,
    admin: str | None,
    admin_token_file: Path | None,
    websocket: str | None,
    origins: Sequence[str],
    without_authentication: bool = False,
) -> tuple[AdminSettings | None, WebSocketSettings | None]:
    """The settings of both listeners, from their options."""
    if admin is None and admin_token_file is not None:
        raise click.UsageError("--admin-token-file goes with --admin")
    if websocket is None and origins:
        raise click.UsageError("--origin goes with --websocket")
    port = socket = None
    if admin is not None:
        address = parse_address(admin, "--admin")
        if not is_loopback(address[0]):
            raise TidegateError(
                f"the admin port has no TLS, and {address[0]} can be reached from other machines; "
                "listen at 127.0.0.1, and put a proxy in front of it"
            )
        port = admin_settings(address, admin_token_file, data)
    if websocket is not None:
        address = parse_address(websocket, "--websocket")
        check_reach(address[0], without_authentication)
        socket = websocket_settings(address, origins)
    return port, socket


def admin_settings(
    address: tuple[str, int], token_file: Path | None, data: Path | None, identity: str = "http"
) -> AdminSettings:
    """The settings of the admin port.

    Its token is in a file, in TIDEGATE_ADMIN_TOKEN, or made and written to the folder of the store.
    """
    try:
        from tidegate.network.admin.settings import AdminSettings, token_digest
    except ImportError as error:
        raise click.ClickException(
            f"the admin port needs the extra `admin`: pip install 'tidegate[admin]' ({error})"
        ) from error
    token = _token(token_file, data)
    if len(token) < TOKEN_CHARS_MIN or not token.isascii() or not token.isprintable():
        raise AccessError(
            f"the admin token has at least {TOKEN_CHARS_MIN} printable ASCII characters, as of "
            "`openssl rand -hex 32`"
        )
    return AdminSettings(token_digest(token), *address, identity)


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


def websocket_settings(address: tuple[str, int], origins: Sequence[str]) -> WebSocketSettings:
    """The settings of the WebSocket listener."""
    from tidegate.network.websocket.settings import WebSocketSettings

    for origin in origins:
        scheme, separator, rest = origin.partition("://")
        is_one = separator and scheme in ("http", "https") and rest and "/" not in rest
        if origin != "*" and not is_one:
            raise click.UsageError(
                f"an origin is scheme://host[:port] without a path, or *, not {origin!r}"
            )
    return WebSocketSettings(*address, tuple(origins))


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
            lines.append(f"WebSockets at ws://{websocket.host}:{listener.port}")
        if admin is not None:
            from tidegate.network.admin.http_port import AdminPort

            port = AdminPort(server, admin)
            await port.start()
            stack.push_async_callback(port.stop)
            lines.append(f"admin port at http://{admin.host}:{port.port}")
        yield lines
