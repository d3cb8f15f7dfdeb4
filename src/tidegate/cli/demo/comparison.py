"""Whether the network and the pipeline have delivered the same."""

from __future__ import annotations

from collections import Counter

import click

from tidegate.cli.demo.market import EVOLVING, PARAMETRIC, STATIC
from tidegate.cli.demo.network_run import Delivery, NetworkRun
from tidegate.cli.demo.spark_run import SparkRun

GROUPS = (STATIC, PARAMETRIC, EVOLVING)


def show_comparison(network: NetworkRun, pipeline: SparkRun) -> bool:
    """Print the deliveries of both by group, and the rates; returns whether they are the same."""
    events = sum(report.events for report in pipeline.reports)
    seconds = sum(report.seconds for report in pipeline.reports)
    click.echo(
        f"\nSpark     {events:,} quotes from broker b, in {len(pipeline.reports)} micro-batches in "
        f"{seconds:.1f} s{_later_rate(pipeline)}"
    )
    click.echo(
        f"\n{'':<12}{'subscriptions':>14}{'updates':>9}{'network':>10}{'Spark':>10}"
        f"{'only network':>14}{'only Spark':>12}{'doubled':>9}"
    )
    subscriptions = Counter(_group(str(each["id"])) for each in network.changes if _is_new(each))
    updates = Counter(_group(str(each["id"])) for each in network.changes if not _is_new(each))
    for name in GROUPS:
        rows = _of_group(network.deliveries, name), _of_group(pipeline.deliveries, name)
        _show_row(name, subscriptions[name], updates[name], *rows)
    _show_row(
        "all", subscriptions.total(), updates.total(), network.deliveries, pipeline.deliveries
    )
    is_same = network.deliveries == pipeline.deliveries and not (
        _doubled(network.deliveries) or events != network.market.events or network.dropped
    )
    click.echo(
        "\nThe network and the pipeline have delivered exactly the same, nothing missed or doubled."
        if is_same
        else "\nThe network and the pipeline have NOT delivered the same."
    )
    if network.dropped:
        click.echo(f"Brokers have dropped {network.dropped:,} deliveries to slow subscribers.")
    return is_same


def _later_rate(pipeline: SparkRun) -> str:
    """The rate without the first micro-batch, in which workers start and compile."""
    later = pipeline.reports[1:]
    seconds = sum(each.seconds for each in later)
    if not seconds:
        return ""
    return f"; after the first one {sum(each.events for each in later) / seconds:,.0f}/s"


def _show_row(
    name: str,
    subscriptions: int,
    updates: int,
    network: Counter[Delivery],
    pipeline: Counter[Delivery],
) -> None:
    doubled = _doubled(network) + _doubled(pipeline)
    click.echo(
        f"{name:<12}{subscriptions:>14,}{updates:>9,}{network.total():>10,}"
        f"{pipeline.total():>10,}{len(network.keys() - pipeline.keys()):>14,}"
        f"{len(pipeline.keys() - network.keys()):>12,}{doubled:>9,}"
    )


def _is_new(change: dict[str, object]) -> bool:
    return change["op"] == "subscribe"


def _group(id: str) -> str:
    return id.rpartition("-")[0]


def _of_group(deliveries: Counter[Delivery], name: str) -> Counter[Delivery]:
    return Counter({each: count for each, count in deliveries.items() if _group(each[1]) == name})


def _doubled(deliveries: Counter[Delivery]) -> int:
    """How many deliveries came more than once."""
    return sum(count != 1 for count in deliveries.values())
