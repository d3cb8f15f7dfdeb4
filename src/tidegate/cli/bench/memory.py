"""`tidegate bench memory`: what subscriptions and events that are gone leave behind."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.memory_growth import Footing, MemoryGrowth


@click.command("memory")
@click.option(
    "--engine",
    multiple=True,
    help="Matcher of the engine; may be repeated.  [default: columnar, tree, rete and poset]",
)
@click.option(
    "--cycles",
    type=click.IntRange(min=1),
    help="Cycles in each half.  [default: 5,000 to 20,000, by matcher]",
)
@click.option(
    "--subscriptions",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Subscriptions that stay.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_memory(
    engine: tuple[str, ...], cycles: int | None, subscriptions: int, as_json: bool
) -> None:
    """Memory and speed before and after many subscriptions and strings have come and gone.

    A cycle subscribes with new attributes and patterns, updates with new strings, matches an event
    with new strings, and cancels. Measured before, after the cycles and after as many again. A
    million cycles take some 20 minutes.
    """
    from tidegate.experiments import memory_growth

    if not as_json:
        click.echo(
            f"{'matcher':<10}{'cycles':>10}{'MB':>9}{'match µs':>10}{'batch µs':>10}"
            f"{'bytes a cycle':>15}{'cycle µs':>10}{'peak MB':>9}"
        )
    for name in engine or memory_growth.MATCHERS:
        growth = memory_growth.measure_apart(name, cycles, subscriptions, print_status)
        if as_json:
            click.echo(json.dumps({**asdict(growth), "growth_bytes": growth.growth_bytes}))
        else:
            for line in _lines(growth):
                click.echo(line)


def _lines(growth: MemoryGrowth) -> list[str]:
    first, second, last = (
        f"{growth.matcher:<10}{_footing(each)}"
        for each in (growth.before, growth.after, growth.after_twice)
    )
    figures = f"{growth.growth_bytes:>15,.0f}{growth.cycle_us:>10,.0f}{growth.peak_mb:>9,.0f}"
    return [first, second, last + figures]


def _footing(footing: Footing) -> str:
    return (
        f"{footing.cycles:>10,}{footing.resident_mb:>9,.1f}"
        f"{footing.match_us:>10.1f}{footing.batch_us:>10.2f}"
    )
