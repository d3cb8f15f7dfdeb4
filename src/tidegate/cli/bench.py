"""`tidegate bench`: how fast is Tidegate on this machine?"""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from tidegate.experiments import parsing


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure speed on this machine; without a name, everything that is measured."""
    if context.invoked_subcommand is None:
        for command in bench.commands.values():
            context.invoke(command)


@bench.command("parsing")
@click.option("--filters", type=click.IntRange(min=50), default=100_000, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_parsing(filters: int, rounds: int, as_json: bool) -> None:
    """Filters read in a second, in bulk and one by one."""
    speeds = parsing.measure(filters, rounds)
    if as_json:
        for speed in speeds:
            click.echo(json.dumps(asdict(speed)))
        return
    click.echo(f"parsing: {speeds[0].shapes} shapes, median of {rounds} rounds (slowest, fastest)")
    for speed in speeds:
        click.echo(
            f"  {speed.way:<12}{speed.median_per_s:>12,.0f} filters/s"
            f"   ({speed.slowest_per_s:,.0f}, {speed.fastest_per_s:,.0f})"
        )
