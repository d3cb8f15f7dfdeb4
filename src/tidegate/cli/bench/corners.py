"""`tidegate bench corners`: lists, patterns and disjunctions, and updates of any of them."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from tidegate.cli.status import print_status

MATCH_GOAL_US = 100.0


@click.command("corners")
@click.option("--kind", help="Only kinds of filters with this in their name.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Number of subscriptions of each kind.",
)
@click.option("--processor", is_flag=True, help="Time calls by the processor, not by the clock.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_corners(kind: str | None, subscriptions: int, processor: bool, as_json: bool) -> None:
    """Single matches and updates where all filters are of a kind that is hard to match.

    An event should take at most 100 µs.
    """
    from tidegate.experiments import corners

    kinds = {
        name: corner for name, corner in corners.corners().items() if kind is None or kind in name
    }
    if not kinds:
        raise click.UsageError(f"no kind of filter has {kind!r} in its name")
    over = 0
    for cost in corners.measure(
        kinds, subscriptions, processor_time=processor, progress=print_status
    ):
        over += cost.match_p50_us > MATCH_GOAL_US
        if as_json:
            click.echo(json.dumps(asdict(cost)))
            continue
        click.echo(
            f"  {cost.kind:<28}"
            f" match p50 {cost.match_p50_us:>7.1f}, p99 {cost.match_p99_us:>8.1f} µs"
            f"   update p50 {cost.update_p50_us:>6.1f}, p99 {cost.update_p99_us:>8.1f} µs"
            f"   both {cost.update_and_match_p50_us:>7.1f} µs   {cost.matched:.1f} matches"
        )
    if not as_json:
        click.echo(f"  {over} of {len(kinds)} kinds take over {MATCH_GOAL_US:g} µs an event")
