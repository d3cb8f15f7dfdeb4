"""The settings of the admin port."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

TOKEN_CHARS_MIN = 16


def token_digest(token: str) -> bytes:
    """What is kept of a token.

    A fast hash is enough: tokens are long and random, so none can be found by trying.
    """
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """Where the admin port listens, and how much it takes."""

    token_digest: bytes
    """The SHA-256 of the token that requests have to give."""
    host: str = "127.0.0.1"
    port: int = 7080
    """0 for a free port."""
    identity: str = "http"
    """The publisher of events that come over HTTP."""
    body_bytes_max: int = 4 << 20
    events_max: int = 10_000
    """Events of one request."""
    request_s: float = 30.0
    """How long a request may take, its body included."""
    connections_max: int = 100

    def admits(self, token: str) -> bool:
        """Whether a token is the right one."""
        return hmac.compare_digest(token_digest(token), self.token_digest)
