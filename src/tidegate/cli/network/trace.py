"""`tidegate trace`: the way of an event through the network, and where and why it stops."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from tidegate.cli.network.admin_client import AdminClient, admin_options, printable
from tidegate.cli.option_errors import naming_option
from tidegate.matching.records import decode_object

Report = Mapping[str, Any]


@click.command()
@click.argument("event", metavar="EVENT")
@admin_options
@click.option("--publish", is_flag=True,
              help="Publish the event too, right behind its trace.")  # fmt: skip
@click.option("--identity", metavar="NAME",
              help="Whose event it would be, where publishers have to advertise.")  # fmt: skip
@click.option("--space", metavar="NAME", help="Space of the event.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trace(
    event: str, publish: bool, identity: str | None, space: str | None, as_json: bool, **admin: Any
) -> None:
    """Show the way of an event through the network from a broker on.

    At each broker: who gets it by which filter, to which neighbours it is passed on and why, and
    where it stops and what would have to be different. It is not published. Exits with 1 if nobody
    gets it.

    \b
    Examples:
      tidegate trace '{"price": 9.5}' --token-file ./a/admin-token
      tidegate trace '{"price": 9.5}' --publish --json
    """
    if publish and identity is not None:
        raise click.UsageError("--identity is for an event that is not published")
    with naming_option("EVENT"):
        attributes = decode_object(event)
    request = {"event": attributes, "publish": publish, "identity": identity, "space": space}
    found = AdminClient(**admin).post(
        "/trace", {name: value for name, value in request.items() if value is not None}
    )
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        click.echo("\n".join(printable(line) for line in _lines(found)))
    sys.exit(0 if found["deliveries"] else 1)


def _lines(found: Report) -> Iterator[str]:
    for report in found["brokers"]:
        came = "" if report["from"] is None else f"  from {report['from']}"
        yield f"{report['broker']}{came}"
        yield from (f"  {line}" for line in _broker_lines(report))
    deliveries, brokers = found["deliveries"], len(found["brokers"])
    yield ""
    yield (
        f"{deliveries:,} deliver{'y' if deliveries == 1 else 'ies'}; "
        f"{brokers:,} broker{'' if brokers == 1 else 's'} had the event"
    )
    if found["unheard"]:
        yield f"no report came from {', '.join(found['unheard'])} in time"
    if found["published"]:
        yield "the event was published" + (", and confirmed" if found["confirmed"] else "")


def _broker_lines(report: Report) -> Iterator[str]:
    if report["refused"]:
        yield f"refuses it: {report['refused']}"
    if report["relayed"]:
        yield "relays it without matching"
    for each in report["delivered"]:
        yield f"delivers it to {each['client']}{_subscription(each)}: {each['filter']}"
        if each["parameters"]:
            values = (f"{name} = {value}" for name, value in each["parameters"].items())
            yield f"  with {', '.join(values)}"
    more = report["deliveries"] - len(report["delivered"])
    if more:
        yield f"delivers it to {more:,} more"
    if report["patterns"]:
        yield f"keeps it for {report['patterns']:,} pattern(s)"
    for each in report["undelivered"]:
        yield f"not to {each['client']}{_subscription(each)}: {each['filter']}"
        yield from (f"  no   {reason}" for reason in each["because"])
    others = report["others"] - len(report["undelivered"])
    if others > 0:
        yield f"nor to {others:,} other filters"
    for each in report["passed_on"]:
        waits = "" if each.get("connected", True) else " (it is not connected: the event waits)"
        yield f"passes it on to {each['to']}{waits}: {each['because']}"
    for each in report["stopped"]:
        yield f"not to {each['to']}: {each['because']}"
        for near in each["nearest"]:
            yield f"  nearest: {near['filter']}"
            yield from (f"    no   {reason}" for reason in near["because"])


def _subscription(each: Report) -> str:
    if each["subscription"] is None:
        return ""
    version = "" if each.get("version") is None else f", version {each['version']}"
    return f" ({each['subscription']}{version})"
