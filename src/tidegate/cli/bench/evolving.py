"""`tidegate bench evolving`: the cost of evolving filters, compared with static ones."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.evolving import EvolvingSpeed


@click.command("evolving")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10),
    multiple=True,
    help="Number of subscriptions; may be repeated.  "
    "[default: 1,000, 10,000, 100,000 and 1,000,000]",
)
@click.option(
    "--events",
    type=click.IntRange(min=1),
    help="Events in a round.  [default: as many as take 0.5 s]",
)
@click.option("--engine", default="columnar", show_default=True, help="Matcher of the engine.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Rounds, whose median is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_evolving(
    subscriptions: tuple[int, ...], events: int | None, engine: str, rounds: int, as_json: bool
) -> None:
    """Evolving filters against the same filters frozen.

    The modes static, lazy, periodic and cached take turns, the last two with one second. Every
    subscription has a price range that is a function of time. Events come at 10,000 a second of
    event time. A million subscriptions take some minutes and 6 GB. If answers are wrong, the exit
    code is 1.
    """
    from tidegate.experiments import evolving  # imports Numba, which takes a second

    wrong = 0
    for size in subscriptions or evolving.SIZES:
        speeds = evolving.measure(size, rounds, engine=engine, events=events, progress=print_status)
        if not as_json:
            click.echo(
                f"{size:,} subscriptions, {speeds[0].events:,} events, {engine}, "
                f"median of {rounds} rounds (slowest, fastest)"
            )
        for speed in speeds:
            click.echo(json.dumps(asdict(speed)) if as_json else _line(speed))
            if speed.wrong_pairs:
                print_status(
                    f"error: {size:,} subscriptions, {speed.mode}: {speed.wrong_pairs} pairs of an "
                    "event and a subscription are wrong"
                )
            wrong += speed.wrong_pairs
    if wrong:
        sys.exit(1)


def _line(speed: EvolvingSpeed) -> str:
    spread = f"({speed.slowest_per_s:,.0f}, {speed.fastest_per_s:,.0f})"
    return (
        f"  {speed.mode:<10}{speed.median_per_s:>10,.0f} events/s {spread:<20}"
        f"{speed.times_static:>6.2f} times the cost of static"
        f"{speed.matches_per_event:>9,.1f} matches an event"
        f"   update p50 {speed.update.p50_us:.1f} µs, p99 {speed.update.p99_us:.1f} µs"
    )
