"""`tidegate demo`: static, parametric and evolving filters, in one process and on Spark."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import click

from tidegate.language.filters import Filter, parse

SECONDS = 60
SYMBOLS = {"IBM": 100.0, "SUN": 40.0, "OTE": 8.4}
"""The symbols of the market, and their first prices."""


@dataclass(slots=True)
class DemoSubscriber:
    """A subscriber of the demo."""

    name: str
    filter: Filter
    parameters: dict[str, object] = field(default_factory=dict)
    received: int = 0


@click.command()
@click.option(
    "--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Seed of the market."
)
@click.option(
    "--events",
    type=click.IntRange(min=100),
    default=60_000,
    show_default=True,
    help="Quotes per minute in the pipeline.",
)
@click.option("--no-spark", is_flag=True, help="Show only the half in this process.")
def demo(seed: int, events: int, no_spark: bool) -> None:
    """Show static, parametric and evolving filters on generated quotes.

    First a minute of quotes in this process, then three minutes of a larger market in a pipeline on
    Spark, with a change that comes late.
    """
    _show_minute(seed)
    if not no_spark:
        # Spark is imported only here: it takes seconds, and the first half does without.
        from tidegate.cli.demo_pipeline import show_pipeline
        from tidegate.cli.pipeline import Reporter

        show_pipeline(events, seed, Reporter(with_lag=False).batch)


def _show_minute(seed: int) -> None:
    """Match one quote a second, and print the quotes that some subscriber receives."""
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
    receivers: list[str] = []
    for subscriber in subscribers:
        if not subscriber.filter.matches(event, subscriber.parameters, t=float(second)):
            continue
        subscriber.received += 1
        receiver = subscriber.name
        if "last" in subscriber.parameters:
            subscriber.parameters["last"] = event["price"]
            receiver += f" (now price < {event['price']})"
        receivers.append(receiver)
    if receivers:
        quote = f"{event['symbol']} at {event['price']}, volume {event['volume']}"
        click.echo(f"  {second:>3}s  {quote:<38}  {', '.join(receivers)}")
