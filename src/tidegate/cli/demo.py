"""`tidegate demo`: filters that move, first in one process, then in a pipeline on Spark."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import click

from tidegate.language.filters import Filter, parse

SECONDS = 60
SYMBOLS = {"IBM": 100.0, "SUN": 40.0, "OTE": 8.4}


@dataclass(slots=True)
class DemoSubscriber:
    """Someone who wants some of the quotes."""

    name: str
    filter: Filter
    parameters: dict[str, object] = field(default_factory=dict)
    received: int = 0


@click.command()
@click.option(
    "--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Another market."
)
@click.option(
    "--events",
    type=click.IntRange(min=100),
    default=60_000,
    show_default=True,
    help="Quotes in each minute of the pipeline.",
)
@click.option("--no-spark", is_flag=True, help="The first half only, without a pipeline.")
def demo(seed: int, events: int, no_spark: bool) -> None:
    """Show static, parametric and evolving filters on generated quotes.

    First on a minute of quotes in this process, then on three minutes of a larger market in a
    pipeline on Spark, where one of the changes comes late.
    """
    _show_minute(seed)
    if not no_spark:
        from tidegate.cli.demo_pipeline import show_pipeline  # takes a while to import
        from tidegate.cli.pipeline import Reporter

        show_pipeline(events, seed, Reporter(with_lag=False).batch)


def _show_minute(seed: int) -> None:
    subscribers = [
        DemoSubscriber("static", parse("symbol in ('IBM', 'SUN') and volume > 9000")),
        DemoSubscriber("parametric", parse("symbol = 'IBM' and price < :last"), {"last": 99.0}),
        DemoSubscriber("evolving", parse("symbol = 'SUN' and price > 39 + t / 30")),
        DemoSubscriber("tidal", parse("symbol = 'OTE' and price > 8.4 + 0.3 * sin(t / 5)")),
    ]
    for subscriber in subscribers:
        click.echo(f"{subscriber.name:<12}{subscriber.filter}")
    click.echo("\n     t  event                                   delivered to")
    rng = random.Random(seed)
    prices = dict(SYMBOLS)
    for second in range(SECONDS):
        symbol = rng.choice(list(SYMBOLS))
        prices[symbol] = round(prices[symbol] * (1 + rng.gauss(0, 0.01)), 2)
        event = {"symbol": symbol, "price": prices[symbol], "volume": rng.randrange(10_000)}
        _deliver(second, event, subscribers)
    click.echo()
    for subscriber in subscribers:
        click.echo(f"{subscriber.name:<12}received {subscriber.received} of {SECONDS} events")


def _deliver(second: int, event: dict[str, object], subscribers: list[DemoSubscriber]) -> None:
    names: list[str] = []
    for subscriber in subscribers:
        if not subscriber.filter.matches(event, subscriber.parameters, t=float(second)):
            continue
        subscriber.received += 1
        note = subscriber.name
        if "last" in subscriber.parameters:
            subscriber.parameters["last"] = event["price"]
            note += f" (now price < {event['price']})"
        names.append(note)
    if names:
        quote = f"{event['symbol']} at {event['price']}, volume {event['volume']}"
        click.echo(f"  {second:>3}s  {quote:<38}  {', '.join(names)}")
