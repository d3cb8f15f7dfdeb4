"""The first part of the demo: a minute of quotes, matched in this process."""

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


def show_minute(seed: int) -> None:
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
