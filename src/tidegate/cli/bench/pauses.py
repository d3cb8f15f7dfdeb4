"""`tidegate bench pauses`: the longest matches, updates and additions while time passes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.experiments.pauses import Pauses

# Written again here, because `experiments.pauses` imports Numba; a test compares them.
MODES = ("static", "lazy", "periodic", "cached")


@click.command("pauses")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10),
    multiple=True,
    help="Number of subscriptions; may be repeated.  "
    "[default: 10,000, 100,000, 300,000 and 1,000,000]",
)
@click.option(
    "--mode",
    "modes",
    type=click.Choice(MODES),
    multiple=True,
    help="Run only this evolve mode; may be repeated.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.001),
    default=20.0,
    show_default=True,
    help="Duration of each case.",
)
@click.option(
    "--matches",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Events that are matched in a second.",
)
@click.option("--engine", default="columnar", show_default=True, help="Matcher of the engine.")
@click.option("--processor", is_flag=True, help="Time calls by the processor, not by the clock.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_pauses(
    subscriptions: tuple[int, ...],
    modes: tuple[str, ...],
    seconds: float,
    matches: int,
    engine: str,
    processor: bool,
    as_json: bool,
) -> None:
    """The longest calls of a running engine, and what they waited for.

    Subscriptions of one evolve mode (static: those of the workload market, with parameters) get
    1,000 additions and 10,000 updates a second, one by one, and single matches in between; event
    time passes with the clock. A million subscriptions take some minutes to build, and 3 GB.
    """
    from tidegate.experiments import pauses  # imports Numba, which takes a second

    for size in subscriptions or pauses.SIZES:
        for mode in modes or MODES:
            case = pauses.PauseCase(
                mode, size, seconds, matches, engine=engine, processor_time=processor
            )
            rows = pauses.measure(case, print_status)
            if not as_json:
                click.echo(
                    f"{mode}: {size:,} subscriptions, {engine}, {seconds:g} s, "
                    f"{rows[0].late_s:.1f} s late"
                )
            for row in rows:
                if as_json:
                    click.echo(json.dumps(asdict(row)))
                    continue
                for line in _lines(row, pauses.EDGES_MS):
                    click.echo(line)


def _lines(row: Pauses, edges_ms: Sequence[float]) -> list[str]:
    named = ["below", *(f"{edge:g} ms" for edge in edges_ms)]
    counts = ", ".join(
        f"{name}: {count:,}" for name, count in zip(named, row.histogram, strict=True) if count
    )
    return [
        f"  {row.operation:<7}{row.calls:>9,} calls   p50 {row.p50_us:,.0f} µs, "
        f"p99 {row.p99_us:,.0f} µs, p99.9 {row.p999_us:,.0f} µs, longest {row.longest_ms:,.1f} ms",
        f"          from {counts}",
        *(
            f"          {cause.calls:,} over 1 ms by {cause.name}, "
            f"longest {cause.longest_ms:,.1f} ms"
            for cause in row.causes
        ),
    ]
