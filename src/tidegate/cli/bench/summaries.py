"""`tidegate bench summaries`: the evaluation of subscription summaries, on real code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.summaries import PropagationCost, StorageCost
    from tidegate.experiments.summary_cost import SummaryCost
    from tidegate.experiments.summary_precision import MatchingTime, Precision
    from tidegate.experiments.summary_runs import EventHops, SimulatedCost


@dataclass(frozen=True, slots=True)
class PartSizes:
    """How large a part is where the user does not say."""

    subscriptions: int
    """Of each broker."""
    new: tuple[int, ...] = ()
    subsumptions: tuple[float, ...] = (0.5,)
    events: int = 0


SIZES = {
    "bandwidth": PartSizes(50, (10, 50), (0.1, 0.5, 0.9)),
    "simulated": PartSizes(10, (5,)),
    "events": PartSizes(1, events=3),
    "storage": PartSizes(50, subsumptions=(0.1, 0.9)),
    "matching": PartSizes(100, events=100),
    "precision": PartSizes(50, events=200),
    "changes": PartSizes(1_000, events=100),
}


@click.command("summaries")
@click.option("--part", type=click.Choice(list(SIZES)), help="Run only this part.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=1, max=100_000),
    help="Subscriptions of each broker, the paper's S; it has 1,000.  "
    "[default: 10 to 100, by part]",
)
@click.option(
    "--new",
    type=click.IntRange(min=1, max=100_000),
    multiple=True,
    help="New subscriptions of each broker in a period, the paper's sigma; may be repeated. It has "
    "10 to 1,000.  [default: 10 and 50]",
)
@click.option(
    "--subsumption",
    type=click.FloatRange(0, 1),
    multiple=True,
    help="Share of the subscriptions that others cover; may be repeated. The paper has 0.1 to "
    "0.9.  [default: 0.5; bandwidth 0.1, 0.5, 0.9; storage 0.1, 0.9]",
)
@click.option(
    "--events",
    type=click.IntRange(min=1, max=100_000),
    help="Events; in the part events, of each broker.  [default: 3 to 200, by part]",
)
@click.option(
    "--chart",
    type=click.Path(file_okay=False, path_type=Path),
    help="Draw the part precision in this folder: summary-precision.png.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_summaries(
    part: str | None,
    subscriptions: int | None,
    new: tuple[int, ...],
    subsumption: tuple[float, ...],
    events: int | None,
    chart: Path | None,
    as_json: bool,
) -> None:
    """Subscription summaries beside covering and broadcast, on a backbone of 24 brokers.

    \b
    bandwidth  bytes and messages for the new subscriptions of a period, beside the formulas
    simulated  the same, as brokers send it in a simulated network
    events     hops of an event by its popularity, and loads by virtual degree; also on another
               backbone and on the tree of the paper's example
    storage    bytes that all brokers hold
    matching   time of an event in the summary of all brokers and in the columnar index
    precision  bytes and events that come in vain, by the budget of rows
    changes    time to change and to match the summary of one broker, by its size, in three steps

    \b
    Example:
      tidegate bench summaries --part bandwidth --subscriptions 1000 --new 10 --new 1000
    """
    if chart and part not in (None, "precision"):
        raise click.UsageError("--chart draws the part precision")
    for name in [part] if part else SIZES:
        defaults = SIZES[name]
        sizes = PartSizes(
            subscriptions or defaults.subscriptions,
            new or defaults.new,
            subsumption or defaults.subsumptions,
            events or defaults.events,
        )
        drawn: list[Precision] = []
        for row, line in PARTS[name](sizes, drawn):
            click.echo(json.dumps(row) if as_json else line)
        if chart and drawn:
            _draw(drawn, chart)


Rows = Iterator[tuple[dict[str, object], str]]
"""Each row as an object and as a line."""


def _bandwidth(sizes: PartSizes, _drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summaries  # imports Numba, which takes a second

    for row in summaries.bandwidth(
        sizes.subscriptions, sizes.new, sizes.subsumptions, progress=print_status
    ):
        yield asdict(row), _bandwidth_line(row)


def _bandwidth_line(row: PropagationCost) -> str:
    return (
        f"{row.method:<28}{row.covered_share:>7.1%} covered{row.new:>7,} new"
        f"{row.bytes:>14,} bytes{_formula(row.formula_bytes)}{row.messages:>7,} messages"
    )


def _formula(size: int | None) -> str:
    return f"{'' if size is None else f'{size:,}':>14} by formula"


def _simulated(sizes: PartSizes, _drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summary_runs

    for new in sizes.new:
        for row in summary_runs.simulated(
            sizes.subscriptions, new, sizes.subsumptions, progress=print_status
        ):
            yield asdict(row), _simulated_line(row)


def _simulated_line(row: SimulatedCost) -> str:
    return (
        f"{row.method:<28}{row.new:>7,} new{row.bytes:>14,} bytes sent"
        f"{row.computed_bytes:>14,} computed{row.messages:>9,} messages sent"
        f"{row.computed_messages:>7,} computed"
    )


def _events(sizes: PartSizes, _drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summary_runs
    from tidegate.simulation.overlays.paper_networks import cwix24, isp24, summaries13

    for topology in isp24(), cwix24(), summaries13():
        for row in summary_runs.event_hops(sizes.events, topology=topology, progress=print_status):
            yield asdict(row), _events_line(row)


def _events_line(row: EventHops) -> str:
    ways = "" if row.degree_max is None else f"degree {row.degree_max}"
    ways = "to hubs" if row.to_hubs else ways
    return (
        f"{row.overlay:<13}{row.routing:<14}{ways:<10}{row.popularity:>5.0%} popular"
        f"{row.hops:>7.1f} hops{row.link_hops:>7.1f} on links{row.matched:>7.1f} match it"
        f"{row.matched_busiest:>6.2f} at the busiest,{row.handled_busiest:>6.2f} messages there"
    )


def _storage(sizes: PartSizes, _drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summaries

    for row in summaries.storage((sizes.subscriptions,), sizes.subsumptions, progress=print_status):
        yield asdict(row), _storage_line(row)


def _storage_line(row: StorageCost) -> str:
    return (
        f"{row.method:<28}{row.covered_share:>7.1%} covered{row.bytes:>14,} bytes"
        f"{_formula(row.formula_bytes)}{row.home_bytes:>12,} at home beside them"
    )


def _matching(sizes: PartSizes, _drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summary_precision

    for row in summary_precision.matching_times(
        sizes.subscriptions, sizes.events, sizes.subsumptions, progress=print_status
    ):
        yield asdict(row), _matching_line(row)


def _matching_line(row: MatchingTime) -> str:
    return (
        f"{row.method:<28}{row.subscriptions:>8,} subscriptions{row.entries:>8,} held"
        f"{row.us:>9.1f} us ({row.fastest_us:.1f}, {row.slowest_us:.1f})"
        f"{row.found:>8.1f} found an event"
    )


def _precision(sizes: PartSizes, drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summary_precision

    for row in summary_precision.precision(
        sizes.subscriptions, sizes.events, sizes.subsumptions, progress=print_status
    ):
        drawn.append(row)
        yield asdict(row), _precision_line(row)


def _precision_line(row: Precision) -> str:
    left_out = "covered left out" if row.covered_left_out else "all"
    return (
        f"{row.budget:<10}{left_out:<18}{row.bytes:>12,} bytes{row.brokers_found:>7.2f} brokers "
        f"an event,{row.in_vain:>7.1%} in vain"
    )


def _changes(sizes: PartSizes, _drawn: list[Precision]) -> Rows:
    from tidegate.experiments import summary_cost

    largest = sizes.subscriptions
    steps = sorted({max(1, largest // 100), max(1, largest // 10), largest})
    for row in summary_cost.costs(steps, sizes.events, progress=print_status):
        yield asdict(row), _changes_line(row)


def _changes_line(row: SummaryCost) -> str:
    return (
        f"{row.operation:<12}{row.size:>9,} subscriptions held{row.median_us:>10.1f} us median"
        f"{row.mean_us:>10.1f} mean{row.slowest_us:>12.1f} slowest"
    )


PARTS: dict[str, Callable[[PartSizes, list[Precision]], Rows]] = {
    "bandwidth": _bandwidth,
    "simulated": _simulated,
    "events": _events,
    "storage": _storage,
    "matching": _matching,
    "precision": _precision,
    "changes": _changes,
}


def _draw(rows: list[Precision], folder: Path) -> None:
    try:
        from tidegate.experiments import charts
    except ImportError as error:
        raise click.ClickException(f"charts need the extra `bench`: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "summary-precision.png"
    charts.draw_precision(rows, path)
    print_status(f"drew {path}")
