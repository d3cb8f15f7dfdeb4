"""`tidegate broker`: a broker that clients and other brokers connect to."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli.network.logs import set_up_logs
from tidegate.errors import TidegateError
from tidegate.matching.space_file import read_spaces
from tidegate.routing.strategies import STRATEGIES

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.settings import BrokerSettings, PeerAddress

_log = logging.getLogger(__name__)

DEFAULT_PORT = 7070


@click.group(invoke_without_command=True)
@click.option("--name", metavar="NAME", help="Name of the broker in its network.")
@click.option("--listen", default=f"127.0.0.1:{DEFAULT_PORT}", metavar="HOST:PORT",
              show_default=True, help="Where to listen; port 0 takes a free one.")  # fmt: skip
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Folder of the store. Without it nothing is durable.")  # fmt: skip
@click.option("--routing", type=click.Choice(list(STRATEGIES)), default="subscription",
              show_default=True, help="How events find their way between brokers.")  # fmt: skip
@click.option("--architecture", type=click.Choice(["acyclic", "general", "hierarchical"]),
              default="acyclic", show_default=True,
              help="How brokers are connected, the same at all of them.")  # fmt: skip
@click.option("--peer", "peers", multiple=True, metavar="URL",
              help="Broker to link with; in a hierarchy the master.")  # fmt: skip
@click.option("--space", "space_files", multiple=True, metavar="FILE",
              help="Space that events and filters must fit; may be repeated. SIGHUP reads the "
                   "files again, for more attributes.")  # fmt: skip
@click.option("--without-authentication", is_flag=True,
              help="Let anyone connect who reaches an address beyond this machine.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write the log as JSON, a line each.")
@click.option("--verbose", is_flag=True, help="Log more.")
@click.pass_context
def broker(
    context: click.Context,
    name: str | None,
    listen: str,
    data: Path | None,
    routing: str,
    architecture: str,
    peers: tuple[str, ...],
    space_files: tuple[str, ...],
    without_authentication: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Run a broker.

    It runs until it is interrupted or gets SIGTERM; then it drains.

    \b
    Examples:
      tidegate broker --name a --data ./a
      tidegate broker --name b --listen 127.0.0.1:7071 --data ./b --peer tidegate://127.0.0.1:7070
    """
    if context.invoked_subcommand is not None:
        return
    if name is None:
        raise click.UsageError("give the broker a --name")
    host, port = parse_address(listen)
    check_reach(host, without_authentication)
    settings_class = _settings_class()
    set_up_logs(as_json=as_json, is_verbose=verbose)
    settings = settings_class(
        name, host, port, data, routing, architecture, peers=_peer_addresses(peers),
        spaces=read_spaces(space_files),
    )  # fmt: skip
    asyncio.run(_run(settings, space_files))


def _peer_addresses(urls: tuple[str, ...]) -> tuple[PeerAddress, ...]:
    from tidegate.network.server.settings import PeerAddress

    return tuple(PeerAddress(*_peer_address(url)) for url in urls)


def _peer_address(url: str) -> tuple[str, int]:
    scheme, separator, address = url.partition("://")
    if not separator or scheme != "tidegate":
        raise click.UsageError(f"--peer takes tidegate://HOST:PORT, not {url!r}")
    return parse_address(address, "--peer")


def _settings_class() -> type[BrokerSettings]:
    """The settings of a broker, if the packages that the network needs are there."""
    try:
        from tidegate.network.server.settings import BrokerSettings
    except ImportError as error:
        raise click.ClickException(
            f"a broker needs the extra `network`: pip install 'tidegate[network]' ({error})"
        ) from error
    return BrokerSettings


async def _run(settings: BrokerSettings, space_files: Sequence[str]) -> None:
    from tidegate.network.server.broker_server import BrokerServer

    server = BrokerServer(settings)
    await server.start()
    click.echo(f"broker {settings.name} listens at {settings.host}:{server.port}")
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    if hasattr(signal, "SIGHUP"):  # Windows has none
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGHUP, read_spaces_again, server, space_files
        )
    waiting = [asyncio.create_task(server.wait()), asyncio.create_task(stopped.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await server.stop()
    waiting[1].cancel()
    await waiting[0]  # raises what has ended the broker, if it was an error


def read_spaces_again(server: BrokerServer, space_files: Sequence[str]) -> None:
    """Declare what the files of the spaces have now beyond what they had; or say what is wrong."""
    try:
        server.extend_spaces(read_spaces(space_files))
    except TidegateError as error:
        _log.error("the spaces stay as they were: %s", error)
        return
    for each in server.broker.spaces:
        _log.info("space %s has %d attributes", each.name, len(each.attributes))


def parse_address(text: str, option: str = "--listen") -> tuple[str, int]:
    """Host and port of an address; an IPv6 host is in brackets.

    >>> parse_address("127.0.0.1:7070"), parse_address("[::1]:7071")
    (('127.0.0.1', 7070), ('::1', 7071))
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise click.UsageError(f"{option} takes HOST:PORT, such as 127.0.0.1:7070, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_reach(host: str, without_authentication: bool) -> None:
    """Refuse a listener that anyone on the network could use, unless it was asked for by name."""
    if is_loopback(host) or without_authentication:
        return
    raise TidegateError(
        f"{host} can be reached from other machines, and this broker asks nobody who they are; "
        "listen at 127.0.0.1, or say --without-authentication"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name, which may stand for any address


@broker.command("repair")
@click.option("--data", required=True, metavar="FOLDER",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder of the store of a broker that does not run.")  # fmt: skip
def repair_store(data: Path) -> None:
    """Replace a damaged store by a new one with all that can be read.

    The damaged files are kept in a folder beside it. Exits with 1 if something was lost.
    """
    _settings_class()
    from tidegate.network.store.repair import repair

    report = repair(data)
    for table, count in report.saved.items():
        click.echo(f"{table:<12} {count:>10,} saved, {report.damaged.get(table, 0):,} damaged")
    for what in report.unreadable:
        click.echo(f"unreadable: {what}")
    click.echo(f"{report.lost:,} deliveries lost; the damaged files are in {report.kept_in}")
    if report.lost or report.damaged or report.unreadable:
        raise click.exceptions.Exit(1)
