"""`tidegate bench links`: link matching with the search tree and with the columnar index."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.links import LinkSpeed

# Written again here, because the experiment imports Numba; a test compares them.
WORKLOADS = ("gryphon", "gryphon-rare", "ranges", "market")
LOCALITIES = ("spread", "regional")


@click.command("links")
@click.option("--workload", type=click.Choice(WORKLOADS), help="Run only this workload.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10, max=1_000_000),
    multiple=True,
    help="Number of subscriptions; may be repeated.  [default: 1,000, 10,000 and 100,000]",
)
@click.option(
    "--links",
    type=click.IntRange(min=1, max=1_000),
    multiple=True,
    help="Number of links of the broker; may be repeated.  [default: 3 and 10]",
)
@click.option(
    "--locality",
    type=click.Choice(LOCALITIES),
    help="Only with subscriptions that are spread over the links at random, or that ask for "
    "similar values behind the same link.",
)
@click.option(
    "--own",
    "own_percent",
    type=click.FloatRange(min=0, max=100),
    default=100 / 39,
    show_default="100/39",
    help="Percentage of the subscriptions that are the broker's own.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Rounds, whose median is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_links(
    workload: str | None,
    subscriptions: tuple[int, ...],
    links: tuple[int, ...],
    locality: str | None,
    own_percent: float,
    rounds: int,
    as_json: bool,
) -> None:
    """Finding the links of one event, beside matching it in full; processor time of an event.

    Both with the search tree and with the columnar index, which have the same subscriptions and
    take turns with the same events. If answers differ, the exit code is 1.
    """
    from tidegate.experiments import links as experiment  # imports Numba, which takes a second

    differ = 0
    for name in [workload] if workload else WORKLOADS:
        for row in experiment.measure(
            name,
            subscriptions or experiment.SIZES,
            links or experiment.LINKS,
            [locality] if locality else LOCALITIES,
            own_share=own_percent / 100,
            rounds=rounds,
            progress=print_status,
        ):
            click.echo(json.dumps(asdict(row)) if as_json else _line(row))
            if not row.is_same:
                print_status(f"error: {row.method}: answers differ from those of a full match")
                differ += 1
    if differ:
        sys.exit(1)


def _line(row: LinkSpeed) -> str:
    steps = "" if row.steps is None else f"{row.steps:,.0f}"
    return (
        f"{row.workload:<13}{row.subscriptions:>8,} {row.links:>3} {row.locality:<9} "
        f"{row.method:<15}{row.median_us:>8.1f} µs ({row.fastest_us:.1f}, {row.slowest_us:.1f})"
        f"{steps:>8} steps{row.matches:>9.1f} matches{row.found:>6.2f} links"
    )
