"""`tidegate broker`: a broker that clients and other brokers connect to."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from tidegate.cli.example_file import write_example
from tidegate.cli.network.admin_client import AdminClient, admin_options
from tidegate.cli.network.listeners import (
    listener_options,
    listeners_of,
    listening,
    split_options,
    with_options,
)
from tidegate.cli.network.logs import set_up_logs
from tidegate.errors import SettingsError, StoreError, TidegateError
from tidegate.routing.strategies import STRATEGIES
from tidegate.routing.substrates import SUBSTRATES

if TYPE_CHECKING:
    from tidegate.network.admin.settings import AdminSettings
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.settings import BrokerSettings
    from tidegate.network.websocket.settings import WebSocketSettings

_log = logging.getLogger(__name__)

EXAMPLE = Path(__file__).with_name("broker.toml")
"""The commented file that `init` writes."""


@click.group(invoke_without_command=True)
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="TOML file with the settings of the broker; the options override it.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="Name of the broker in its network.")
@click.option("--listen", metavar="HOST:PORT",
              help="Where to listen; port 0 takes a free one.  [default: 127.0.0.1:7070]",
)  # fmt: skip
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Folder of the store. Without it nothing is durable.")  # fmt: skip
@click.option("--routing", type=click.Choice(list(STRATEGIES)),
              help="How events find their way between brokers.  [default: subscription]",
)  # fmt: skip
@click.option("--architecture", type=click.Choice(["acyclic", "general", "hierarchical"]),
              help="How brokers are connected, the same at all of them.  [default: acyclic]",
)  # fmt: skip
@click.option("--substrate", type=click.Choice(SUBSTRATES),
              help="What finds the filters that an event matches.  [default: columnar]",
)  # fmt: skip
@click.option("--peer", "peers", multiple=True, metavar="URL",
              help="Broker to link with; in a hierarchy the master.")  # fmt: skip
@click.option("--space", "spaces", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Space whose schema events and filters must fit; may be repeated. SIGHUP reads "
                   "the files again, for more attributes.")  # fmt: skip
@click.option("--without-authentication", is_flag=True, default=None,
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
    config: Path | None,
    log_format: str,
    log_level: str,
    **options: Any,
) -> None:
    """Run a broker.

    It runs until it is interrupted or gets SIGTERM; then it drains.

    \b
    Examples:
      tidegate broker --name a --data ./a
      tidegate broker --name b --listen 127.0.0.1:7071 --data ./b --peer tidegate://127.0.0.1:7070
      tidegate broker --config broker.toml
    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if context.invoked_subcommand is not None:
        if config is not None or given:
            raise click.UsageError(
                f"the options of a broker that runs are not for `{context.invoked_subcommand}`"
            )
        return
    _need_network()
    of_listeners, given = split_options(given)
    settings = with_options(_settings(config, given), of_listeners)
    set_up_logs(log_format, log_level, broker=settings.name)
    asyncio.run(_run(settings, *listeners_of(settings), lambda: _settings(config, given)))


def _settings(config: Path | None, given: Mapping[str, Any]) -> BrokerSettings:
    """The settings of a broker: those of the file, and the options instead of some of them."""
    from tidegate.network.server.configuration.addresses import listen_address
    from tidegate.network.server.configuration.broker_file import read_broker_file, settings_from
    from tidegate.network.server.settings import PeerAddress

    if config is None and "name" not in given:
        raise click.UsageError("give the broker a --name, or a --config file that has one")
    try:
        listen_address(given.get("listen", "127.0.0.1:0"))
    except SettingsError as error:
        raise click.UsageError(f"--listen: {error}") from None
    try:
        for url in given.get("peers", ()):
            PeerAddress.parse(url)
    except SettingsError as error:
        raise click.UsageError(f"--peer: {error}") from None
    return settings_from(given) if config is None else read_broker_file(config, given)


def _need_network() -> None:
    """Raise an error that helps unless the packages that the network needs are there."""
    try:
        import tidegate.network.server.settings  # noqa: F401
    except ImportError as error:
        raise click.ClickException(
            f"a broker needs the extra `network`: pip install 'tidegate[network]' ({error})"
        ) from error


@broker.command("init")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="broker.toml")
def init(file: Path) -> None:
    """Write a commented FILE of settings to start from; by default `broker.toml`."""
    write_example(EXAMPLE, file)
    click.echo(f"wrote {file}; now `tidegate broker check {file}`")


@broker.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check_file(file: Path) -> None:
    """Check the settings in FILE; says everything that is wrong in it."""
    _need_network()
    from tidegate.network.server.access.exposure import exposures

    settings = _settings(file, {})
    click.echo(f"broker   {settings.name}, {settings.architecture}, routing {settings.routing}")
    click.echo(f"listens  {settings.host}:{settings.port}")
    for peer in settings.peers:
        click.echo(f"peer     {peer.host}:{peer.port}")
    click.echo(f"store    {settings.data or 'none: nothing is durable'}")
    if settings.admin is not None:
        click.echo(f"admin    http://{settings.admin.listen}")
    if settings.websocket is not None:
        click.echo(f"browsers ws://{settings.websocket.listen}")
    for space in settings.spaces:
        click.echo(f"space    {space.name}")
    click.echo(f"TLS      {settings.tls.certificate if settings.tls else 'none'}")
    who = "anyone" if settings.auth is None else f"{len(settings.auth.identities)} identities"
    click.echo(f"admits   {who}")
    for warning in exposures(settings):
        click.echo(f"warning: {warning}", err=True)


async def _run(
    settings: BrokerSettings,
    admin: AdminSettings | None,
    websocket: WebSocketSettings | None,
    read_again: Callable[[], BrokerSettings],
) -> None:
    from tidegate.network.server.broker_server import BrokerServer

    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    server = BrokerServer(settings)
    await server.start()
    collect_garbage_rarely()
    if hasattr(signal, "SIGHUP"):  # Windows has none
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGHUP, extend_spaces, server, read_again
        )
    try:
        async with listening(server, admin, websocket) as lines:
            # Only now: who reads this may send a signal at once.
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


def collect_garbage_rarely() -> None:
    """Let the collector of cycles look at new objects only, and not often.

    A broker holds millions of objects that stay. With Python's defaults the collector goes through
    them again and again while subscriptions come: half of the time of a bulk subscription.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


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


def extend_spaces(server: BrokerServer, read_again: Callable[[], BrokerSettings]) -> None:
    """Declare what the files of the spaces have now beyond what they had; or log what is wrong."""
    try:
        server.extend_spaces(read_again().spaces)
    except StoreError as error:
        _log.error("the spaces hold now, but could not be stored: %s", error)
        return
    except TidegateError as error:
        _log.error("the spaces stay as they were: %s", error)
        return
    for each in server.broker.spaces:
        _log.info("space %s has %d attributes", each.name, len(each.attributes))


@broker.command("token")
@click.argument("name")
@click.option("--peer", "is_peer", is_flag=True, help="For a neighbouring broker of this name.")
def make_token(name: str, is_peer: bool) -> None:
    """Make a token for the identity NAME.

    Prints it, and the lines for the file of the broker, which has only its hash.
    """
    _need_network()
    from tidegate.network.server.access.settings import IdentitySettings, check_name
    from tidegate.network.server.access.tokens import HashedToken, new_token

    try:
        check_name(name)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    token = new_token()
    entry = IdentitySettings(name, "peer" if is_peer else "client", str(HashedToken.of(token)))
    lines = ["[[auth.identities]]", f"name = {json.dumps(entry.name, ensure_ascii=False)}"]
    lines += ['role = "peer"'] if is_peer else []
    lines += [f'token = "{entry.token}"']
    click.echo("\n".join([token, "", *lines]))


@broker.command("repair")
@click.option("--data", required=True, metavar="FOLDER",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder of the store of a broker that does not run.")  # fmt: skip
def repair_store(data: Path) -> None:
    """Replace a damaged store by a new one with all that can be read.

    The damaged files are kept in a folder beside it. Exits with 1 if something was lost.
    """
    _need_network()
    from tidegate.network.store.repair import repair

    report = repair(data)
    for table, count in report.saved.items():
        click.echo(f"{table:<12} {count:>10,} saved, {report.damaged.get(table, 0):,} damaged")
    for what in report.unreadable:
        click.echo(f"unreadable: {what}")
    click.echo(f"{report.lost:,} deliveries lost; the damaged files are in {report.kept_in}")
    if report.lost or report.damaged or report.unreadable:
        raise click.exceptions.Exit(1)
