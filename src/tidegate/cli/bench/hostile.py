"""`tidegate bench hostile`: what the worst filters within the limits cost."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.hostile_filters import HostileCost

GOAL_MS = 50.0


@click.command("hostile")
@click.option("--kind", help="Only kinds of filters with this in their name.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Rounds, whose median is printed.",
)
@click.option("--all", "everything", is_flag=True, help="Print every row, not only the worst.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_hostile(kind: str | None, rounds: int, everything: bool, as_json: bool) -> None:
    """Cost of filters that are made to be slow: the worst kind for each operation.

    Milliseconds of processor time, and steps of the budget of work. Nothing should take over 50 ms.
    """
    from tidegate.experiments import hostile_filters

    kinds = {
        name: text
        for name, text in hostile_filters.hostile_texts().items()
        if kind is None or kind in name
    }
    if not kinds:
        raise click.UsageError(f"no kind of filter has {kind!r} in its name")
    costs: list[HostileCost] = []
    for cost in hostile_filters.measure(kinds, rounds, print_status):
        costs.append(cost)
        if as_json:
            click.echo(json.dumps(asdict(cost)))
        elif everything:
            click.echo(_line(cost))
    if not (as_json or everything):
        for operation in hostile_filters.OPERATIONS:
            of_operation = [each for each in costs if each.operation == operation]
            if of_operation:
                click.echo(_line(max(of_operation, key=lambda each: each.median_ms)))
    if not as_json:
        over = sum(each.median_ms > GOAL_MS for each in costs)
        click.echo(f"  {over} of {len(costs)} rows take over {GOAL_MS:g} ms")


def _line(cost: HostileCost) -> str:
    return (
        f"  {cost.operation:<24}{cost.median_ms:>9.1f} ms ({cost.slowest_ms:.1f})"
        f"{cost.steps:>9,} steps  {cost.outcome:<6} {cost.kind}"
    )
