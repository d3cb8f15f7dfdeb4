"""`tidegate update`: change a durable subscription."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from tidegate.cli.network.client_options import connection_options, new_client
from tidegate.cli.network.parameter_values import parse_values
from tidegate.cli.status import print_status
from tidegate.errors import SubscriptionError


@click.command()
@click.argument("name")
@click.argument("values", nargs=-1, metavar="[PARAM=VALUE]...")
@connection_options
@click.option("--filter", metavar="FILTER", help="Another filter, in the same step.")
def update(name: str, values: tuple[str, ...], filter: str | None, **connection: Any) -> None:
    """Change parameters of a durable subscription; null unsets one.

    Ends when the change is in force in the whole network: every event published from then on is
    matched by the new values. The identity is that of the subscriber, which must not be connected
    meanwhile: a broker has one connection for each identity.

    \b
    Examples:
      tidegate update cheap limit=30 --identity desk-7
      tidegate update cheap --identity desk-7 --filter "price < :limit and volume > 5"
    """
    if connection["identity"] is None:
        raise click.UsageError("--identity is needed: that of the subscriber")
    parsed = parse_values(values)
    if not parsed and filter is None:
        raise click.UsageError("give PARAM=VALUE, --filter, or both")

    async def run() -> None:
        async with new_client(durable=True, **connection) as client:
            subscription = client.subscriptions.get(name)
            if subscription is None:
                known = ", ".join(client.subscriptions) or "none"
                raise SubscriptionError(
                    f"{client.identity!r} has no subscription {name!r}; it has {known}"
                )
            await subscription.change(filter, parsed)
            print_status(f"{name!r} is in force as version {subscription.version}")

    asyncio.run(run())
