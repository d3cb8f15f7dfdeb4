"""The options with which commands connect to a broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.network.client.client import Client

TIMEOUT_S = 10.0

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--broker", metavar="URL", default="tidegate://localhost:7070", show_default=True,
                 envvar="TIDEGATE_BROKER",
                 help="Where the broker listens: tidegate://, tidegates:// (TLS), ws:// or wss://."),
    click.option("--identity", metavar="NAME",
                 help="Identity by which the broker knows this client."),
    click.option("--token", metavar="TOKEN", envvar="TIDEGATE_TOKEN",
                 help="What the broker asks for; better given as TIDEGATE_TOKEN."),
    click.option("--ca", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="Certificate authority of the broker, for TLS."),
    click.option("--cert", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="Certificate of this client and its key, for mutual TLS."),
    click.option("--timeout", type=click.FloatRange(0.1, 3600), default=TIMEOUT_S,
                 show_default=True, metavar="SECONDS", help="How long to try to connect."),
]  # fmt: skip


def connection_options(command: _Command) -> _Command:
    """Add the options for a connection to a command, which takes them as ``**connection``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def new_client(
    broker: str,
    identity: str | None,
    token: str | None,
    ca: Path | None,
    cert: Path | None,
    timeout: float,
    **more: Any,
) -> Client:
    """A client with these options, not yet connected."""
    try:
        from tidegate.network.client.connect import connect
        from tidegate.network.client.tls import tls_context
    except ImportError as error:
        raise TidegateError(
            f"this needs the extra `network`: pip install 'tidegate[network]' ({error})"
        ) from None
    tls = tls_context(ca, cert)
    return connect(broker, identity=identity, token=token, tls=tls, timeout=timeout, **more)
