"""`tidegate broker`: a broker that clients and other brokers connect to."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from tidegate.cli.network.addresses import check_reach, parse_address
from tidegate.cli.network.admin_client import AdminClient, admin_options
from tidegate.cli.network.listeners import listener_options, listener_settings, listening
from tidegate.cli.network.logs import set_up_logs
from tidegate.routing.strategies import STRATEGIES

if TYPE_CHECKING:
    from tidegate.network.admin.settings import AdminSettings
    from tidegate.network.server.settings import BrokerSettings, PeerAddress
    from tidegate.network.websocket.settings import WebSocketSettings

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
@click.option("--without-authentication", is_flag=True,
              help="Let anyone connect who reaches an address beyond this machine.")  # fmt: skip
@listener_options
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="Log lines for people, or a JSON object each.")  # fmt: skip
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]),
              default="info", show_default=True, help="What the log has at least.")  # fmt: skip
@click.pass_context
def broker(
    context: click.Context,
    /,
    name: str | None,
    listen: str,
    data: Path | None,
    routing: str,
    architecture: str,
    peers: tuple[str, ...],
    without_authentication: bool,
    log_format: str,
    log_level: str,
    **listeners: Any,
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
    set_up_logs(log_format, log_level, broker=name)
    settings = settings_class(
        name, host, port, data, routing, architecture, peers=_peer_addresses(peers)
    )
    asyncio.run(
        _run(
            settings,
            *listener_settings(data, without_authentication=without_authentication, **listeners),
        )
    )


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


async def _run(
    settings: BrokerSettings, admin: AdminSettings | None, websocket: WebSocketSettings | None
) -> None:
    from tidegate.network.server.broker_server import BrokerServer

    server = BrokerServer(settings)
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    await server.start()
    try:
        async with listening(server, admin, websocket) as lines:
            click.echo(f"broker {settings.name} listens at {settings.host}:{server.port}")
            for line in lines:
                click.echo(line)
            sys.stdout.flush()
            waiting = [asyncio.create_task(server.wait()), asyncio.create_task(stopped.wait())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            server.is_draining = True  # before the admin port is gone, so that /ready says it
    finally:
        await server.stop()
    waiting[1].cancel()
    await waiting[0]  # raises what has ended the broker, if it was an error


@broker.command("forget")
@click.argument("neighbour")
@admin_options
def forget(neighbour: str, **admin: Any) -> None:
    """Remove a neighbour that is gone for good, at a broker that runs.

    Its filters are withdrawn in the whole network, and the events that wait for it are lost. A
    neighbour that is connected is not removed.
    """
    answer = AdminClient(**admin).post(f"/neighbours/{quote(neighbour, safe='')}/forget")
    click.echo(
        f"{neighbour} is forgotten: {answer['filters']:,} filters withdrawn, "
        f"{answer['stored_events']:,} stored events and {answer['messages']:,} messages given up"
    )


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
