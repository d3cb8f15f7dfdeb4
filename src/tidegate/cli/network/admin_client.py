"""The admin port of a broker, for commands."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from tidegate.errors import AccessError, ConnectionLostError, NetworkError

ANSWER_BYTES_MAX = 64 << 20
DEFAULT_URL = "http://127.0.0.1:7080"

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--broker", metavar="URL", default=DEFAULT_URL, show_default=True,
                 envvar="TIDEGATE_ADMIN", help="Admin port of the broker: http://HOST:PORT."),
    click.option("--token", metavar="TOKEN", envvar="TIDEGATE_ADMIN_TOKEN",
                 help="Admin token; better given as TIDEGATE_ADMIN_TOKEN."),
    click.option("--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="File with the admin token, as the broker wrote it."),
    click.option("--timeout", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True,
                 metavar="SECONDS", help="How long to wait for each answer."),
]  # fmt: skip


def admin_options(command: _Command) -> _Command:
    """Add the options for an admin port to a command, which takes them as ``**admin``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class AdminClient:
    """Asks the admin port of one broker."""

    def __init__(
        self, broker: str, token: str | None, token_file: Path | None, timeout: float
    ) -> None:
        self.url = broker.rstrip("/")
        parts = urlsplit(broker)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme != "http" or not parts.hostname or not port or parts.path not in ("", "/"):
            raise NetworkError(
                f"{broker!r} is not the URL of an admin port, which is as {DEFAULT_URL}; a broker "
                "has one if it was started with --admin"
            )
        if token is None and token_file is not None:
            token = token_file.read_text(encoding="utf-8").strip()
        if token is None:
            raise AccessError(
                "the admin port asks for a token: give --token-file, or set TIDEGATE_ADMIN_TOKEN"
            )
        self._address = (parts.hostname, port)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._timeout = timeout

    def get(self, path: str) -> Any:
        """What GET answers."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: object = None) -> Any:
        """What POST answers."""
        return self._ask("POST", path, None if body is None else json.dumps(body).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        connection = http.client.HTTPConnection(*self._address, timeout=self._timeout)
        try:
            connection.request(method, path, body, self._headers)
            answer = connection.getresponse()
            data = answer.read(ANSWER_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConnectionLostError(f"{self.url} cannot be reached: {reason}") from None
        finally:
            connection.close()
        if len(data) > ANSWER_BYTES_MAX:
            raise NetworkError(f"{self.url} answers more than {ANSWER_BYTES_MAX} bytes")
        try:
            decoded = json.loads(data)
        except ValueError:
            raise NetworkError(f"{self.url} is not the admin port of a broker") from None
        if answer.status == 401:
            raise AccessError(f"{self.url}: the admin token is wrong")
        if answer.status >= 400:
            detail = decoded.get("detail") if isinstance(decoded, dict) else None
            raise NetworkError(f"{self.url}: {detail or answer.reason}")
        return decoded


def printable(text: object, width: int | None = None) -> str:
    """A text of a stranger on a terminal: no control characters, and cut to a width.

    >>> printable("desk\\x1b[2J", 6)
    'desk\N{REPLACEMENT CHARACTER}\N{HORIZONTAL ELLIPSIS}'
    """
    shown = "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(text)
    )
    if width is None or len(shown) <= width:
        return shown
    return shown[: max(0, width - 1)] + "\N{HORIZONTAL ELLIPSIS}"
