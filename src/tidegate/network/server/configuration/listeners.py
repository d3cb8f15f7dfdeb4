"""The tables [admin] and [websocket] of a broker's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tidegate.errors import SettingsError
from tidegate.network.server.configuration.addresses import is_loopback, listen_address


def check_admin_address(text: str) -> str:
    """The address of an admin port, which has no TLS; raises SettingsError.

    >>> check_admin_address("127.0.0.1:7080")
    '127.0.0.1:7080'
    """
    host, _ = listen_address(text)
    if not is_loopback(host):
        raise SettingsError(
            f"the admin port has no TLS, and {host} can be reached from other machines; listen at "
            "127.0.0.1, and put a proxy in front of it"
        )
    return text


def check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """The origins of pages; raises SettingsError for one that is none."""
    for origin in origins:
        scheme, separator, rest = origin.partition("://")
        is_one = separator and scheme in ("http", "https") and rest and "/" not in rest
        if origin != "*" and not is_one:
            raise SettingsError(
                f"an origin is scheme://host[:port] without a path, or *, not {origin!r}"
            )
    return origins


def _address(text: str) -> str:
    listen_address(text)
    return text


@dataclass(frozen=True, slots=True)
class AdminTable:
    """The table `[admin]`: the HTTP port for operators."""

    listen: Annotated[str, check_admin_address] = "127.0.0.1:7080"
    token_file: Path | None = None
    """By default TIDEGATE_ADMIN_TOKEN, or a token that is made in the folder of the store."""
    identity: str = "http"
    """The publisher of events that come over HTTP."""


@dataclass(frozen=True, slots=True)
class WebSocketTable:
    """The table `[websocket]`: the listener for browsers, with the TLS of the broker."""

    listen: Annotated[str, _address] = "127.0.0.1:7090"
    origins: Annotated[tuple[str, ...], check_origins] = ()
    """The origins of pages that may connect; programs need none."""
