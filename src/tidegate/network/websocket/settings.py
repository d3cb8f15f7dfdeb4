"""The settings of the WebSocket listener."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebSocketSettings:
    """Where a broker listens for WebSockets, and to which pages."""

    host: str = "127.0.0.1"
    port: int = 7090
    """0 for a free port."""
    origins: tuple[str, ...] = ()
    """The origins of pages that may connect, such as `https://desk.example`; programs that are no
    browsers send no origin, and may always. `*` is any page."""
    tls: ssl.SSLContext | None = None

    def admits(self, origin: str | None) -> bool:
        """Whether a page of an origin may connect.

        >>> WebSocketSettings(origins=("https://a.example",)).admits("https://b.example")
        False
        """
        return origin is None or origin in self.origins or "*" in self.origins
