"""`tidegate bench tree`: speed and steps of the search tree, and what its optimizations save."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.search_tree import TreeSpeed

# Written again here, because the experiment imports Numba; a test compares them.
SCHEMAS = ("prototype", "chart-3")


@click.command("tree")
@click.option("--schema", type=click.Choice(SCHEMAS), help="Only this schema of the paper.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10, max=5_000_000),
    multiple=True,
    help="Number of subscriptions; may be repeated.  [default: 1,000 and 25,000]",
)
@click.option(
    "--growth",
    is_flag=True,
    help="Only the tree, from 100 to 1,000,000 subscriptions, with the exponent of its steps.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Rounds, whose median is printed.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON object for each row, and one for the exponent.",
)
def bench_tree(
    schema: str | None, subscriptions: tuple[int, ...], growth: bool, rounds: int, as_json: bool
) -> None:
    """The search tree of Gryphon: time and matching steps of an event, in batches.

    Variants without one of the optimizations, the plain tree and the columnar matcher take turns
    with the same subscriptions and events. If answers differ, the exit code is 1.
    """
    from tidegate.experiments import search_tree  # imports Numba, which takes a second

    sizes = subscriptions or (search_tree.GROWTH_SIZES if growth else search_tree.SIZES)
    only = ("tree",) if growth else None
    differ = 0
    for name in [schema] if schema else SCHEMAS:
        rows = []
        for row in search_tree.measure(
            search_tree.SCHEMAS[name], sizes, rounds, only=only, progress=print_status
        ):
            rows.append(row)
            click.echo(json.dumps(asdict(row)) if as_json else _line(row))
            if not row.is_same:
                print_status(f"error: {row.variant}: answers differ from the columnar matcher's")
                differ += 1
        if growth and len({row.subscriptions for row in rows}) > 1:
            click.echo(_growth_line(rows[0].schema, search_tree.growth(rows), as_json))
    if differ:
        sys.exit(1)


def _growth_line(schema: str, exponent: float, as_json: bool) -> str:
    if as_json:
        return json.dumps({"schema": schema, "exponent": exponent})
    return f"  steps grow with the power {exponent:.2f} of the size"


def _line(row: TreeSpeed) -> str:
    steps = "" if row.steps is None else f"{row.steps:>10,.0f} steps{row.nodes:>10,} nodes"
    return (
        f"{row.schema:<28}{row.subscriptions:>9,}  {row.variant:<22}{row.median_us:>9.2f} µs/event "
        f"({row.fastest_us:.2f}, {row.slowest_us:.2f}){steps}{row.matches:>9.2f} matches"
    )
