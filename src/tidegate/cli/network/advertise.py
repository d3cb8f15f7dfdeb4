"""`tidegate advertise`: announce which events a client will publish."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from tidegate.cli.network.client_options import connection_options, new_client
from tidegate.cli.status import print_status


@click.command()
@click.argument("advertisement")
@connection_options
@click.option("--withdraw", is_flag=True,
              help="Take back the advertisements that this one covers.")  # fmt: skip
@click.option("--space", metavar="NAME", help="Space of the events.")
def advertise(advertisement: str, withdraw: bool, space: str | None, **connection: Any) -> None:
    """Announce the events that a durable client will publish, or take that back.

    Several constraints on one attribute are alternatives, and every attribute of an event must be
    allowed.

    \b
    Examples:
      tidegate advertise "symbol is not null and price > 0" --identity feed
      tidegate advertise "price > 0" --identity feed --withdraw
    """
    if connection["identity"] is None:
        raise click.UsageError(
            "--identity is needed: that of the publisher, whose advertisement stays at the broker"
        )

    async def run() -> None:
        async with new_client(durable=True, **connection) as client:
            if withdraw:
                await client.unadvertise(advertisement, space=space)
            else:
                await client.advertise(advertisement, space=space)
            print_status(f"{'withdrawn' if withdraw else 'advertised'} at {client.broker}")

    asyncio.run(run())
