"""`tidegate bench`: how fast is Tidegate on this machine?

The benchmarks themselves are in `experiments/`; here their rows are printed. Experiments are
imported inside of functions, because Numba and Spark take seconds to import.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli.bench.corners import bench_corners
from tidegate.cli.bench.evolving import bench_evolving
from tidegate.cli.bench.gryphon import bench_gryphon
from tidegate.cli.bench.hostile import bench_hostile
from tidegate.cli.bench.links import bench_links
from tidegate.cli.bench.matchers import bench_matchers
from tidegate.cli.bench.memory import bench_memory
from tidegate.cli.bench.parametric import bench_parametric
from tidegate.cli.bench.pauses import bench_pauses
from tidegate.cli.bench.predicates import bench_predicates
from tidegate.cli.bench.summaries import bench_summaries
from tidegate.cli.bench.tree import bench_tree
from tidegate.cli.status import print_status
from tidegate.experiments import parsing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from tidegate.experiments.matching import MatchingCase, MatchingSpeed

# Written again here, because `experiments.workloads` imports NumPy and Arrow; a test compares them.
WORKLOADS = ("market", "ranges", "equalities", "wide", "moving")

ROUNDS_HELP = "Rounds, whose median is printed."


@click.group(invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure speed on this machine; without a command, run all benchmarks."""
    if context.invoked_subcommand is None:
        for command in bench.commands.values():
            context.invoke(command)


@bench.command("parsing")
@click.option(
    "--filters",
    type=click.IntRange(min=50),
    default=500_000,
    show_default=True,
    help="Number of filters.",
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=5, show_default=True, help=ROUNDS_HELP
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_parsing(filters: int, rounds: int, as_json: bool) -> None:
    """Filters parsed per second, in bulk and one by one."""
    speeds = parsing.measure(filters, rounds)
    if not as_json:
        shapes = speeds[0].shapes
        click.echo(f"parsing: {shapes} shapes, median of {rounds} rounds (slowest, fastest)")
    for speed in speeds:
        line = (
            f"  {speed.method:<12}{speed.median_per_s:>12,.0f} filters/s"
            f"   ({speed.slowest_per_s:,.0f}, {speed.fastest_per_s:,.0f})"
        )
        _print(speed, [line], as_json)


@bench.command("matching")
@click.option("--workload", type=click.Choice(WORKLOADS), help="Run only this workload.")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10),
    help="Number of subscriptions, with --chart the largest.  "
    "[default: 10,000, with --chart 1,000,000]",
)
@click.option(
    "--events",
    type=click.IntRange(min=1),
    help="Events in a round.  [default: as many as take 0.5 s]",
)
@click.option(
    "--engine", help="Matcher of the engine.  [default: columnar, with --chart every matcher]"
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=5, show_default=True, help=ROUNDS_HELP
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Number of threads to compare with one thread.",
)
@click.option("--all", "goals", is_flag=True, help="Run the cases that have goals, and compare.")
@click.option(
    "--chart",
    type=click.Path(file_okay=False, path_type=Path),
    help="Measure growing sizes and draw them in this folder: matching.png, updates.png.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_matching(
    workload: str | None,
    subscriptions: int | None,
    events: int | None,
    engine: str | None,
    rounds: int,
    threads: int,
    goals: bool,
    chart: Path | None,
    as_json: bool,
) -> None:
    """Events matched per second; cost of single events and updates; build time and memory.

    A baseline, brute force in NumPy, is measured in the same rounds. If the answers of the engine
    differ from those of the baseline, the exit code is 1.

    \b
    Examples:
      tidegate bench matching --workload market --subscriptions 10000
      tidegate bench matching --all --json
      tidegate bench matching --chart charts
    """
    from tidegate.experiments.matching import MatchingCase, measure

    if goals and (workload or subscriptions or chart):
        raise click.UsageError("--all has its own workloads and sizes")
    if chart and workload:
        raise click.UsageError("--chart has its own workloads")
    case = MatchingCase("", subscriptions or 10_000, engine or "columnar", events, rounds, threads)
    if chart:
        size = subscriptions or 1_000_000
        speeds = _chart(replace(case, subscriptions=size), engine, chart, as_json)
    elif goals:
        speeds = _compare_with_goals(case, as_json)
    else:
        speeds = []
        for name in [workload] if workload else WORKLOADS:
            speeds.append(measure(replace(case, workload=name), print_status))
            _print_speed(speeds[-1], rounds, as_json)
    wrong = [speed for speed in speeds if speed.wrong_pairs]
    for speed in wrong:
        print_status(
            f"error: {speed.workload}, {speed.subscriptions:,} subscriptions, {speed.engine}: "
            f"{speed.wrong_pairs} pairs of an event and a subscription are wrong"
        )
    if wrong:
        sys.exit(1)


@bench.command("poset")
@click.option(
    "--workload", type=click.Choice(["market", "airlines"]), help="Run only this workload."
)
@click.option(
    "--filters",
    type=click.IntRange(min=10),
    multiple=True,
    help="Number of filters; may be repeated.  [default: 1,000, 10,000 and 100,000]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_poset(workload: str | None, filters: tuple[int, ...], as_json: bool) -> None:
    """Cost of inserting, updating and removing filters in the covering poset.

    Up to 10,000 filters, also the cost of the plain method, which compares with every filter.
    """
    from tidegate.experiments import poset

    if not as_json:
        click.echo(
            f"{'workload':<10}{'filters':>9}{'nodes':>9}{'roots':>9}{'edges':>9}"
            f"{'insert µs':>11}{'p99':>8}{'update µs':>11}{'p99':>8}{'remove µs':>11}{'p99':>8}"
            f"{'plain µs':>10}"
        )
    for name in [workload] if workload else poset.WORKLOAD_TEXTS:
        for size in filters or poset.SIZES:
            speed = poset.measure(name, size, progress=print_status)
            if as_json:
                click.echo(json.dumps(asdict(speed)))
                continue
            plain = "" if speed.plain_p50_us is None else f"{speed.plain_p50_us:,.0f}"
            click.echo(
                f"{speed.workload:<10}{speed.filters:>9,}{speed.nodes:>9,}{speed.roots:>9,}"
                f"{speed.edges:>9,}{speed.insert_p50_us:>11,.0f}{speed.insert_p99_us:>8,.0f}"
                f"{speed.update_p50_us:>11,.0f}{speed.update_p99_us:>8,.0f}"
                f"{speed.remove_p50_us:>11,.0f}{speed.remove_p99_us:>8,.0f}{plain:>10}"
            )


@bench.command("simulation")
@click.option(
    "--brokers",
    type=click.IntRange(min=1),
    help="Run only cases with at most this number of brokers; the largest have 10,000 and take "
    "some minutes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_simulation(brokers: int | None, as_json: bool) -> None:
    """Broker messages per second of the simulated world."""
    from tidegate.experiments import simulation

    if not as_json:
        click.echo(
            f"{'topology':<14}{'brokers':>8}  {'routing':<14}{'subscribers':>11}{'events':>9}"
            f"{'messages':>11}{'seconds':>9}{'messages/s':>12}{'MB':>7}"
        )
    for case in simulation.CASES:
        if brokers is not None and case.brokers > brokers:
            continue
        print_status(f"{case.topology}, {case.brokers:,} brokers, {case.routing}")
        speed = simulation.measure_apart(case)
        line = (
            f"{speed.topology:<14}{speed.brokers:>8,}  {speed.routing:<14}{speed.subscribers:>11,}"
            f"{speed.events:>9,}{speed.messages:>11,}{speed.wall_s:>9.1f}"
            f"{speed.messages_per_s:>12,.0f}{speed.peak_mb:>7,.0f}"
        )
        _print(speed, [line], as_json)


@bench.command("spark")
@click.option(
    "--subscriptions",
    type=click.IntRange(min=10),
    multiple=True,
    help="Number of subscriptions; may be repeated.  [default: 10,000 and 100,000]",
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=3, show_default=True, help=ROUNDS_HELP
)
@click.option("--ours", is_flag=True, help="Leave out the joins in Spark SQL and DuckDB.")
@click.option(
    "--part",
    type=click.Choice(["tables", "stream", "building"]),
    help="Run only this part of the benchmark; `building` runs only if it is named.",
)
@click.option(
    "--memory", default="4g", show_default=True, help="Memory of the JVM, in the part building."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_spark(
    subscriptions: tuple[int, ...],
    rounds: int,
    ours: bool,
    part: str | None,
    memory: str,
    as_json: bool,
) -> None:
    """Events matched per second on Spark, beside joins in Spark SQL and in DuckDB.

    Then a stream of events over 100,000 subscriptions that are updated all the time. The joins take
    minutes at 100,000 subscriptions; --ours leaves them out. The part building has workers index
    large tables, by default of a million, and measures time and memory of all processes.
    """
    if part == "building":
        _bench_building(subscriptions or (1_000_000,), memory, as_json)
        return
    if part != "stream":
        for count in subscriptions or (10_000, 100_000):
            _bench_tables(count, rounds, ours, as_json)
    if part != "tables":
        _bench_stream(as_json)


# `tidegate bench` without a command runs all in the order of their registration.
bench.add_command(bench_parametric)
bench.add_command(bench_evolving)
bench.add_command(bench_pauses)
bench.add_command(bench_gryphon)
bench.add_command(bench_summaries)
bench.add_command(bench_tree)
bench.add_command(bench_links)
bench.add_command(bench_matchers)
bench.add_command(bench_corners)
bench.add_command(bench_hostile)
bench.add_command(bench_predicates)
bench.add_command(bench_memory)


def _bench_tables(subscriptions: int, rounds: int, ours: bool, as_json: bool) -> None:
    from tidegate.experiments import spark_matching

    if not as_json:
        click.echo(f"market: {subscriptions:,} subscriptions, median of {rounds} rounds")
    for speed in spark_matching.measure(subscriptions, rounds, print_status, only_ours=ours):
        line = (
            f"  {speed.method:<20}{speed.median_per_s:>12,.0f} events/s"
            f"   ({speed.slowest_per_s:,.0f}, {speed.fastest_per_s:,.0f})"
            f", {speed.matches / speed.events:,.1f} matches an event"
        )
        _print(speed, [line], as_json)


def _bench_building(subscriptions: tuple[int, ...], memory: str, as_json: bool) -> None:
    from tidegate.experiments import spark_building

    for speed in spark_building.measure(subscriptions, memory, print_status):
        lines = [
            f"building: {speed.subscriptions:,} subscriptions in {speed.build_s:.0f} s, "
            f"{speed.build_us:.1f} µs each",
            f"  memory: driver {speed.driver_mb:,} MB, JVM {speed.jvm_mb:,} MB, workers "
            f"{speed.workers_mb:,} MB, all together {speed.all_mb:,} MB",
            f"  matching {speed.events:,} events {speed.match_s:.1f} s, "
            f"{speed.matches / speed.events:,.1f} matches an event",
        ]
        _print(speed, lines, as_json)


def _bench_stream(as_json: bool) -> None:
    from tidegate.experiments import spark_streaming

    speed = spark_streaming.measure(spark_streaming.StreamCase(), print_status)
    lines = [
        f"stream: {speed.subscriptions:,} subscriptions, {speed.events_per_batch:,} events and "
        f"{speed.changes_per_batch:,} changes a micro-batch, {speed.batches} of them",
        f"  {speed.events_per_s:,.0f} events/s, {speed.matches_per_event:,.1f} matches an event; "
        f"a micro-batch {speed.batch_s:.2f} s ({speed.fastest_s:.2f}, {speed.slowest_s:.2f})",
        f"  an empty micro-batch {speed.empty_batch_s:.2f} s, the matching alone "
        f"{speed.matching_s:.2f} s",
    ]
    _print(speed, lines, as_json)


def _print(speed: DataclassInstance, lines: Iterable[str], as_json: bool) -> None:
    """Print a result, as a JSON object or as lines of text."""
    for line in [json.dumps(asdict(speed))] if as_json else lines:
        click.echo(line)


def _print_speed(speed: MatchingSpeed, rounds: int, as_json: bool) -> None:
    title = (
        f"{speed.workload}: {speed.subscriptions:,} subscriptions, {speed.events:,} events, "
        f"{speed.engine}, median of {rounds} rounds (slowest, fastest)"
    )
    rows = (f"  {name:<15}{text}" for name, text in _described_rows(speed))
    _print(speed, [title, *rows], as_json)


def _described_rows(speed: MatchingSpeed) -> Iterator[tuple[str, str]]:
    """The figures of a case, as (name, text)."""
    yield (
        "batches",
        f"{speed.median_per_s:>12,.0f} events/s"
        f"   ({speed.slowest_per_s:,.0f}, {speed.fastest_per_s:,.0f})"
        f", {speed.matches_per_event:,.1f} matches an event"
        f", a core {speed.cpu_share:.0%} of the time",
    )
    if speed.threads > 1:
        yield (
            f"{speed.threads} threads",
            f"{speed.threads_ratio:>12.2f} times that"
            f"   for {speed.threads_cpu_ratio:.2f} times the processor time",
        )
    yield (
        "baseline",
        f"{speed.baseline_per_s:>12,.0f} events/s   by brute force in NumPy; "
        f"batches are {speed.baseline_ratio:,.1f} times as fast",
    )
    single, update, memory = speed.single, speed.update, speed.memory
    yield (
        "one at a time",
        f"{single.per_s:>12,.0f} events/s   p50 {single.p50_us:.1f} µs, p99 {single.p99_us:.1f} µs",
    )
    if update is not None:
        yield (
            "updates",
            f"{update.per_s:>12,.0f} a second   p50 {update.p50_us:.1f} µs, "
            f"p99 {update.p99_us:.1f} µs; {speed.update_share:.0%} of the time of batches",
        )
    yield "build", f"{speed.build_s:>12.2f} s"
    yield (
        "memory",
        f"{memory.bytes_per_subscription:>12,.0f} bytes a subscription   "
        f"{memory.resident_mb:,.0f} MB resident, {memory.peak_mb:,.0f} MB at the peak",
    )


def _compare_with_goals(case: MatchingCase, as_json: bool) -> list[MatchingSpeed]:
    """Measure every case that has a goal, and print a row for each."""
    from tidegate.experiments.matching import GOALS, measure

    if not as_json:
        click.echo(
            f"{'workload':<12}{'subscriptions':>13}{'events/s':>12}{'goal':>10}{'ratio':>7}"
            f"{'x NumPy':>9}{f'{case.threads} threads':>11}{'matches':>9}{'single/s':>10}"
            f"{'update µs':>11}{'build s':>9}{'bytes':>7}{'MB':>7}"
        )
    speeds: list[MatchingSpeed] = []
    for goal in GOALS:
        goal_case = replace(case, workload=goal.workload, subscriptions=goal.subscriptions)
        speed = measure(goal_case, print_status)
        goal_per_s = goal.events_per_s_given(speeds)
        speeds.append(speed)
        ratio = None if goal_per_s is None else speed.median_per_s / goal_per_s
        if as_json:
            row = {**asdict(speed), "goal_per_s": goal_per_s, "goal_ratio": ratio}
            click.echo(json.dumps(row))
            continue
        update = "" if speed.update is None else f"{speed.update.p50_us:.1f}"
        click.echo(
            f"{speed.workload:<12}{speed.subscriptions:>13,}{speed.median_per_s:>12,.0f}"
            f"{goal_per_s or 0:>10,.0f}{ratio or 0:>7.2f}{speed.baseline_ratio:>9.1f}"
            f"{speed.threads_ratio:>11.2f}{speed.matches_per_event:>9.1f}{speed.single.per_s:>10,.0f}"
            f"{update:>11}{speed.build_s:>9.1f}"
            f"{speed.memory.bytes_per_subscription:>7,.0f}{speed.memory.resident_mb:>7,.0f}"
        )
    return speeds


def _chart(
    case: MatchingCase, engine: str | None, folder: Path, as_json: bool
) -> list[MatchingSpeed]:
    """Measure growing sizes, and draw the cost of matching and of updates."""
    from tidegate.experiments.matching import sweep
    from tidegate.matching.registry import MATCHERS

    try:
        from tidegate.experiments import charts
    except ImportError as error:
        raise click.ClickException(f"charts need the extra `bench`: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)

    def measure_all(workload: str) -> Iterator[MatchingSpeed]:
        for name in [engine] if engine else MATCHERS:
            largest = replace(case, workload=workload, engine=name, threads=1)
            for speed in sweep(largest, print_status):
                _print_speed(speed, case.rounds, as_json)
                yield speed

    matching, updates = list(measure_all("market")), list(measure_all("moving"))
    charts.draw_matching(matching, folder / "matching.png")
    charts.draw_updates(updates, folder / "updates.png")
    print_status(f"drew {folder / 'matching.png'} and {folder / 'updates.png'}")
    return matching + updates
