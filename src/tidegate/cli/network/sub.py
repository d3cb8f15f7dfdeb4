"""`tidegate sub`: subscribe, and print the events that match."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.network.client_options import connection_options, new_client
from tidegate.cli.network.parameter_values import parse_values
from tidegate.cli.option_errors import naming_option
from tidegate.cli.status import print_status
from tidegate.errors import TidegateError
from tidegate.language.evolve import parse_evolve
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.values import Value, format_value, parse_timestamp

if TYPE_CHECKING:
    from tidegate.network.client.events import ReceivedEvent
    from tidegate.network.client.subscription import PatternSubscription, Subscription


@click.command()
@click.argument("filter")
@connection_options
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True,
              help="Value of a parameter of the filter; may be repeated.")  # fmt: skip
@click.option("--name", metavar="NAME",
              help="Name of the subscription, by which --durable finds it again.")  # fmt: skip
@click.option("--durable", is_flag=True,
              help="Keep the subscription, and events for it, while this is away.")  # fmt: skip
@click.option("--evolve", metavar="MODE",
              help="Evaluate an evolving filter: lazy, periodic 1 s, cached 1 s.")  # fmt: skip
@click.option("--since", metavar="TIME",
              help="First print what the broker has kept from this time on.")  # fmt: skip
@click.option("--space", metavar="NAME", help="Space of the subscription.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End after N events.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a JSON object.")
def sub(
    filter: str,
    params: tuple[str, ...],
    name: str | None,
    durable: bool,
    evolve: str | None,
    since: str | None,
    space: str | None,
    count: int | None,
    as_json: bool,
    **connection: Any,
) -> None:
    """Print the events that match a filter, or the sequences that match a pattern, as they come.

    Ends with Ctrl-C, or after --count events.

    \b
    Examples:
      tidegate sub "symbol = 'IBM' and price < :limit" --param limit=10
      tidegate sub "price < 10" --durable --identity desk-7 --name cheap --json
      tidegate sub "alarm = 'a' then file = 'b' within 30 s"
    """
    if durable and (name is None or connection["identity"] is None):
        raise click.UsageError("--durable needs --identity and --name, to be found again")
    with naming_option("--param"):
        values = parse_values(params)
    with naming_option("--evolve"):
        mode = None if evolve is None else parse_evolve(evolve)
    with naming_option("--since"):
        begin = None if since is None else parse_timestamp(since)
    is_pattern = len(parse_pattern(filter).steps) > 1
    if is_pattern and (values or name or durable or mode or begin):
        raise click.UsageError(
            "a pattern takes no --param, --name, --durable, --evolve and --since"
        )

    async def run() -> None:
        async with new_client(durable=durable, **connection) as client:
            subscription: Subscription | PatternSubscription
            if is_pattern:
                subscription = await client.subscribe_pattern(filter, space=space)
            else:
                subscription = await client.subscribe(
                    filter, name=name, evolve=mode, space=space, parameters=values, since=begin
                )
            print_status(f"subscribed at {client.broker}; Ctrl-C ends")
            await _print_events(subscription, count, as_json)

    asyncio.run(run())


async def _print_events(
    subscription: Subscription | PatternSubscription, count: int | None, as_json: bool
) -> None:
    """Print what comes, until it is enough or a signal ends it."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.set)
    stopping = loop.create_task(stopped.wait())
    printed = 0
    try:
        while count is None or printed < count:
            coming = loop.create_task(subscription.next())
            either: list[asyncio.Future[Any]] = [coming, stopping]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                return
            item = coming.result()
            if item is None:
                raise TidegateError("the subscription has ended")
            click.echo(_line(item, as_json))
            sys.stdout.flush()
            printed += 1
            if not isinstance(item, tuple):
                item.ack()  # it is printed, so it need not come again
    finally:
        stopping.cancel()


def _line(item: ReceivedEvent | tuple[ReceivedEvent, ...], as_json: bool) -> str:
    if isinstance(item, tuple):
        if as_json:
            return json.dumps([_json(each) for each in item], ensure_ascii=False)
        return "  then  ".join(_text(each) for each in item)
    return json.dumps(_json(item), ensure_ascii=False) if as_json else _text(item)


def _text(event: ReceivedEvent) -> str:
    time = "" if event.time is None else event.time.isoformat(timespec="milliseconds")
    values = ", ".join(f"{name} = {format_value(event[name])}" for name in event)
    return f"{time.removesuffix('+00:00')}  {values}"


def _json(event: ReceivedEvent) -> dict[str, object]:
    return {
        "event": {name: _json_value(value) for name, value in event.attributes.items()},
        "time": None if event.time is None else _json_value(event.time),
        "version": event.version,
        "publisher": event.publisher,
        "id": f"{event.id.broker}/{event.id.begun_us}/{event.id.number}",
    }


def _json_value(value: Value) -> object:
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return format_value(value)
    return value
