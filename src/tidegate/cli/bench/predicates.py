"""`tidegate bench predicates`: what kinds of predicates cost that floats cannot express."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.predicates import PredicateSpeed


@click.command("predicates")
@click.option("--kind", help="Only kinds with this in their name.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10),
    default=10_000,
    show_default=True,
    help="Number of subscriptions.",
)
@click.option(
    "--events", type=click.IntRange(min=1), default=1_000, show_default=True, help="In a round."
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Rounds, whose median is printed.",
)
@click.option("--engine", default="columnar", show_default=True, help="Matcher of the engine.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_predicates(
    kind: str | None, subscriptions: int, events: int, rounds: int, engine: str, as_json: bool
) -> None:
    """Cost of an event by kind of predicate: strings in order, long integers, variables, times.

    If an answer differs from the oracle's, the exit code is 1.
    """
    from tidegate.experiments import predicates  # imports NumPy

    kinds = {name: each for name, each in predicates.KINDS.items() if kind is None or kind in name}
    if not kinds:
        raise click.UsageError(f"no kind of predicate has {kind!r} in its name")
    wrong = 0
    for speed in predicates.measure(kinds, subscriptions, rounds, engine, events, print_status):
        wrong += speed.wrong_events
        click.echo(json.dumps(asdict(speed)) if as_json else _line(speed))
    if wrong:
        raise click.ClickException(f"{wrong} events were answered otherwise than by the oracle")


def _line(speed: PredicateSpeed) -> str:
    return (
        f"  {speed.kind:<20}{speed.subscriptions:>10,} subscriptions"
        f"{speed.batch_us:>10.1f} us an event ({speed.batch_fastest_us:.1f}, "
        f"{speed.batch_slowest_us:.1f}), one by one {speed.single_us:.1f}, "
        f"{speed.matches_per_event:.1f} matches"
    )
