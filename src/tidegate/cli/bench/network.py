"""`tidegate bench network`: brokers over sockets, their clients in other processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tidegate.cli.status import print_status

if TYPE_CHECKING:
    from tidegate.experiments.network.scenarios import NetworkCase, Row

SCENARIOS = ("throughput", "latency", "updates", "confirmed", "line", "idle", "others")


@click.command("network")
@click.option("--scenario", "scenarios", type=click.Choice(SCENARIOS), multiple=True,
              help="Run only this scenario; may be repeated.")  # fmt: skip
@click.option("--subscriptions", type=click.IntRange(min=10), default=10_000, show_default=True,
              help="Number of subscriptions, of the workload market.")  # fmt: skip
@click.option("--connections", type=click.IntRange(min=1), multiple=True,
              help="Connections that share them; may be repeated.  "
              "[default: 10, 100 and 1,000]")  # fmt: skip
@click.option("--events", type=click.IntRange(min=1), default=50_000, show_default=True,
              help="Events of a round.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True,
              help="Rounds, whose median is printed.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0.1), default=4.0, show_default=True,
              help="Duration of what runs at a steady rate.")  # fmt: skip
@click.option("--idle", type=click.IntRange(min=1), default=10_000, show_default=True,
              help="Number of idle connections.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_network(
    scenarios: tuple[str, ...],
    subscriptions: int,
    connections: tuple[int, ...],
    events: int,
    rounds: int,
    seconds: float,
    idle: int,
    as_json: bool,
) -> None:
    """Throughput, latency, updates, confirmed publishing and memory of brokers over sockets.

    `others` measures NATS and Mosquitto where they are installed: the Debian package mosquitto, and
    `go install github.com/nats-io/nats-server/v2@latest`.

    Brokers and subscribers run in processes of their own, all on this machine. What is delivered
    is compared with what the embedded engine says; if something is wrong, the exit code is 1.

    \b
    Examples:
      tidegate bench network --scenario throughput --connections 10
      tidegate bench network --json
    """
    from tidegate.experiments.network.scenarios import NetworkCase

    case = NetworkCase(subscriptions, events, rounds, seconds, idle=idle)
    wrong = 0
    for row in _rows(case, scenarios or SCENARIOS, connections or (10, 100, 1_000)):
        click.echo(json.dumps(asdict(row)) if as_json else line_of(row))
        wrong += row.wrong
    if wrong:
        print_status(f"error: {wrong:,} deliveries or matches are wrong")
        sys.exit(1)


def _rows(
    case: NetworkCase, scenarios: Iterable[str], connections: tuple[int, ...]
) -> Iterable[Row]:
    from tidegate.experiments.network import scenarios as run

    for scenario in scenarios:
        if scenario == "others":
            yield from _others(case, connections)
        elif scenario == "idle":
            yield run.idle(case, print_status)
        elif scenario == "confirmed":
            yield from run.confirmed(case, connections[0], print_status)
        elif scenario == "line":
            yield run.line_of_three(case, connections[0], print_status)
        else:
            measure: Callable[..., Row] = {
                "throughput": run.throughput, "latency": run.latency, "updates": run.with_updates,
            }[scenario]  # fmt: skip
            for each in connections if scenario != "updates" else connections[:1]:
                yield measure(case, each, print_status)


def _others(case: NetworkCase, connections: tuple[int, ...]) -> Iterable[Row]:
    from tidegate.experiments.network.others import SYSTEMS

    for system in SYSTEMS:
        for each in connections:
            row = system.measure(case, each, print_status)
            if row is None:
                print_status(f"{system.name} is not installed: no {system.program} in the PATH")
                break
            yield row


def line_of(row: Row) -> str:
    """A row as a line of text."""
    parts = [f"{row.system:<10}{row.scenario:<38}{row.connections:>7,} connections"]
    if row.median_per_s:
        parts.append(f"{row.median_per_s:>11,.0f}/s")
    if row.fastest_per_s:
        parts.append(f"({row.slowest_per_s:,.0f}, {row.fastest_per_s:,.0f})")
    if row.broker_us:
        parts.append(f"{row.broker_us:.1f} µs of processor an event")
    if row.p99_ms:
        parts.append(f"p50 {row.p50_ms:.2f} ms, p99 {row.p99_ms:.2f} ms")
    if row.updates_per_s:
        parts.append(f"{row.updates_per_s:,.0f} updates/s")
    if row.subscribed_per_s:
        parts.append(f"{row.subscribed_per_s:,.0f} subscriptions/s")
    if row.megabytes:
        parts.append(f"{row.megabytes:,.0f} MB")
    parts += [each for each in (row.note, f"{row.wrong:,} wrong" if row.wrong else "") if each]
    return "  ".join(parts)
