"""`tidegate bench matchers`: matchers side by side, with the same subscriptions and events."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.matchers import MatcherSpeed

# Written again here, because the experiment imports Numba; a test compares them.
WORKLOADS = ("market", "ranges", "equalities", "wide", "moving")
ENGINES = ("columnar", "tree")
SIZES = (10_000, 100_000)


@click.command("matchers")
@click.option("--workload", type=click.Choice(WORKLOADS), help="Run only this workload.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10, max=5_000_000),
    multiple=True,
    help="Number of subscriptions; may be repeated.  [default: 10,000 and 100,000]",
)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    help="Matcher to compare; to be repeated.  [default: columnar and tree]",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Rounds, whose median is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_matchers(
    workload: str | None,
    subscriptions: tuple[int, ...],
    engines: tuple[str, ...],
    rounds: int,
    as_json: bool,
) -> None:
    """Matchers side by side: they have the same subscriptions and match the same events in turns.

    With the workload `moving`, updates of a parameter are timed too. If answers differ, the exit
    code is 1.
    """
    from tidegate.experiments import matchers  # imports Numba, which takes a second

    differ = 0
    for name in [workload] if workload else WORKLOADS:
        for size in subscriptions or SIZES:
            for row in matchers.measure(
                name, size, engines or ENGINES, rounds, progress=print_status
            ):
                click.echo(json.dumps(asdict(row)) if as_json else _line(row))
                if not row.is_same:
                    print_status(f"error: {row.engine}: answers differ from the first engine's")
                    differ += 1
    if differ:
        sys.exit(1)


def _line(row: MatcherSpeed) -> str:
    update = "" if row.update_us is None else f"{row.update_us:>9.1f} µs/update"
    return (
        f"{row.workload:<11}{row.subscriptions:>9,}  {row.engine:<9}{row.median_us:>8.2f} µs/event "
        f"({row.fastest_us:.2f}, {row.slowest_us:.2f}){row.matches:>10.1f} matches"
        f"{row.build_s:>8.1f} s to build{update}"
    )
