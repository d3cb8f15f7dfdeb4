"""The options with which commands connect to a broker."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.errors import NetworkError, TidegateError

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
                 help="What the broker asks for; better given as TIDEGATE_TOKEN or in a file."),
    click.option("--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", envvar="TIDEGATE_TOKEN_FILE", help="File with the token."),
    click.option("--ca", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="Certificate authority of the broker, for TLS."),
    click.option("--cert", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="Certificate of this client, for mutual TLS."),
    click.option("--key", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="Its key, if it is not in the same file."),
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
    token_file: Path | None = None,
    key: Path | None = None,
    **more: Any,
) -> Client:
    """A client with these options, not yet connected."""
    try:
        from tidegate.network.client.connect import connect
    except ImportError as error:
        raise TidegateError(
            f"this needs the extra `network`: pip install 'tidegate[network]' ({error})"
        ) from None
    if token is not None and token_file is not None:
        raise click.UsageError("give one of --token (or TIDEGATE_TOKEN) and --token-file")
    if token_file is not None:
        token = token_of(token_file)
    tls = _context(broker, ca, cert, key) if ca or cert or key else None
    return connect(broker, identity=identity, token=token, tls=tls, timeout=timeout, **more)


def _context(broker: str, ca: Path | None, cert: Path | None, key: Path | None) -> ssl.SSLContext:
    if not broker.startswith(("tidegates:", "wss:")):
        raise click.UsageError("--ca, --cert and --key are for TLS: use tidegates:// or wss://")
    if key is not None and cert is None:
        raise click.UsageError("--key needs --cert, the certificate that it belongs to")
    from tidegate.network.client.tls import tls_context

    try:
        return tls_context(ca, cert, key)
    except NetworkError as error:
        raise TidegateError(f"--ca, --cert or --key cannot be used: {error}") from None


def token_of(file: Path) -> str:
    """The token in a file; says so if others may read it."""
    try:
        token = file.read_text(encoding="utf-8").strip()
        is_open = bool(file.stat().st_mode & 0o044)
    except (OSError, UnicodeDecodeError) as error:
        raise TidegateError(f"--token-file: {file} cannot be read: {error}") from None
    if not token or "\n" in token:
        raise TidegateError(f"--token-file: {file} must have one line with a token")
    if is_open:
        click.echo(f"warning: others may read {file}: chmod 600 {file}", err=True)
    return token
