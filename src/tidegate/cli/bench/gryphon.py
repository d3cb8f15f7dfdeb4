"""`tidegate bench gryphon`: Gryphon's evaluation of link matching, in a simulated network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.gryphon import HopSteps, OverloadRate, PremiseCost

DEGRADATIONS = (0.95, 0.85, 0.7, 0.5)
# Written again here, because the experiment imports Numba; a test compares them.
ROUTINGS = ("flooding", "match-first", "link-matching")
SUBSCRIPTIONS = {
    "rates": (500, 2_000),
    "bursts": (2_000,),
    "steps": (1_000, 4_000, 10_000),
    "premise": (2_000,),
}
EVENTS = 1_000
BURST_TRIAL_S = 20.0
"""Simulated time of a trial with bursts: long enough for about ten of them."""


@dataclass(frozen=True, slots=True)
class Cases:
    """What a part is run with."""

    sizes: Sequence[int]
    degradations: Sequence[float]
    """Those the user has named."""
    routings: Sequence[str]


@click.command("gryphon")
@click.option(
    "--part",
    type=click.Choice(list(SUBSCRIPTIONS)),
    help="Run only this part.",
)
@click.option(
    "--subscriptions",
    type=click.IntRange(min=39, max=100_000),
    multiple=True,
    help="Number of subscriptions; may be repeated.  "
    "[default: rates 500 and 2,000, steps 1,000, 4,000 and 10,000, others 2,000]",
)
@click.option(
    "--degradation",
    type=click.FloatRange(0, 1),
    multiple=True,
    help="The paper's D, in rates and bursts: less is more matches; may be repeated.  "
    "[default: rates 0.95, 0.85, 0.7 and 0.5, bursts 0.95]",
)
@click.option(
    "--routing",
    type=click.Choice(ROUTINGS),
    multiple=True,
    help="Only this routing, in rates and bursts; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_gryphon(
    part: str | None,
    subscriptions: tuple[int, ...],
    degradation: tuple[float, ...],
    routing: tuple[str, ...],
    as_json: bool,
) -> None:
    """Link matching against flooding and match-first, on Gryphon's 39 brokers.

    \b
    rates    the highest rate of publishing without an overloaded broker (chart 2)
    bursts   the same for publishers with bursts
    steps    matching steps on the way over 1 to 6 brokers (chart 3)
    premise  what it costs that all brokers have all subscriptions

    Time is simulated, so that the figures do not depend on this machine. The parts take minutes.
    """
    for name in [part] if part else SUBSCRIPTIONS:
        cases = Cases(subscriptions or SUBSCRIPTIONS[name], degradation, routing or ROUTINGS)
        for row, line in PARTS[name](cases):
            click.echo(json.dumps(row) if as_json else line)


Rows = Iterator[tuple[dict[str, object], str]]
"""Each row as an object and as a line."""


def _rates(cases: Cases) -> Rows:
    from tidegate.experiments import gryphon  # imports Numba, which takes a second

    degradations = cases.degradations or DEGRADATIONS
    for row in gryphon.overload_rates(
        cases.sizes, degradations, cases.routings, progress=print_status
    ):
        yield asdict(row), _rate_line(row)


def _bursts(cases: Cases) -> Rows:
    from tidegate.experiments import gryphon
    from tidegate.simulation.arrivals import Bursts

    for row in gryphon.overload_rates(
        cases.sizes,
        cases.degradations or DEGRADATIONS[:1],
        cases.routings,
        bursts=Bursts(),
        duration_s=BURST_TRIAL_S,
        progress=print_status,
    ):
        yield asdict(row), _rate_line(row)


def _rate_line(row: OverloadRate) -> str:
    return (
        f"{row.routing:<14}{row.subscriptions:>8,} subscriptions"
        f"{row.matched_share:>9.3%} matched{row.rate_per_s:>8,.0f} events/s at each publisher"
        f"{' in bursts' if row.bursts else ''}"
    )


def _steps(cases: Cases) -> Rows:
    from tidegate.experiments import gryphon

    for row in gryphon.steps_by_hops(cases.sizes, EVENTS, progress=print_status):
        yield asdict(row), _steps_line(row)


def _steps_line(row: HopSteps) -> str:
    way = "centralized" if row.hops is None else f"{row.hops} hop{'s' if row.hops > 1 else ''}"
    return (
        f"{way:<14}{row.subscriptions:>8,} subscriptions{row.steps:>9,.1f} steps"
        f"{row.samples:>9,} samples"
    )


def _premise(cases: Cases) -> Rows:
    from tidegate.experiments import gryphon

    for size in cases.sizes:
        for row in gryphon.premise_costs(size, EVENTS, progress=print_status):
            yield asdict(row), _premise_line(row)


def _premise_line(row: PremiseCost) -> str:
    return (
        f"{row.routing:<14}{row.subscriptions:>8,} subscriptions{row.filters_held:>10,} filters "
        f"held{row.filter_messages:>10,} messages,{row.filter_bytes:>13,} bytes of filters"
        f"{row.event_messages:>9,} messages,{row.event_bytes:>12,} bytes of events"
    )


PARTS: dict[str, Callable[[Cases], Rows]] = {
    "rates": _rates,
    "bursts": _bursts,
    "steps": _steps,
    "premise": _premise,
}
