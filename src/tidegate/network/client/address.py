"""The address of a broker: `tidegate://host:7070`, with TLS `tidegates://`, or WebSocket."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from tidegate.errors import NetworkError

DEFAULT_PORT = 7070
_SCHEMES = ("tidegate", "tidegates", "ws", "wss")


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker listens, and how to speak to it.

    >>> BrokerAddress.parse("tidegate://localhost").port
    7070
    """

    scheme: str
    host: str
    port: int
    path: str = "/"

    @classmethod
    def parse(cls, url: str) -> BrokerAddress:
        """Read a URL; raises NetworkError for one that is none."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise NetworkError(f"{url!r} is not the URL of a broker: {error}") from None
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise NetworkError(
                f"{url!r} is not the URL of a broker; write tidegate://host:port, tidegates:// for "
                "TLS, or ws:// and wss:// for WebSocket"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            raise NetworkError(
                f"the URL of a broker has a host, a port and nothing else, not {url!r}; a token is "
                "given as token=..."
            )
        return cls(parts.scheme, parts.hostname, port or DEFAULT_PORT, parts.path or "/")

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is one of TLS."""
        return self.scheme in ("tidegates", "wss")

    @property
    def is_websocket(self) -> bool:
        """Whether frames travel in messages of a WebSocket."""
        return self.scheme in ("ws", "wss")

    @property
    def without_tls(self) -> str:
        """The scheme of the same transport without TLS, as the beginning of a URL."""
        return "ws://" if self.is_websocket else "tidegate://"

    def tls(self, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """The TLS context to connect with; None for a plain connection."""
        if not self.is_encrypted:
            return None
        return context or ssl.create_default_context()

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = self.path if self.is_websocket else ""
        return f"{self.scheme}://{host}:{self.port}{path}"
