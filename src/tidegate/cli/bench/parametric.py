"""`tidegate bench parametric`: the cost of changing a subscription, in a simulated network."""

from __future__ import annotations

import json

import click

from tidegate.cli.status import print_status
from tidegate.experiments import parametric
from tidegate.experiments.parametric import SCENARIOS, ParametricSpeed
from tidegate.routing.substrates import SUBSTRATES
from tidegate.simulation.parametric_run import ChangeMethod


@click.command("parametric")
@click.option("--scenario", type=click.Choice(list(SCENARIOS)), help="Run only this scenario.")
@click.option(
    "--changes",
    type=click.FloatRange(min=0.1),
    multiple=True,
    help="Changes per second at each broker with subscribers; may be repeated.  "
    "[default: highway 100 and 300, trading 100 and 1,000]",
)
@click.option(
    "--substrate",
    type=click.Choice(SUBSTRATES),
    default="poset",
    show_default=True,
    help="Matcher of the brokers.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Simulated time of each run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each run.")
def bench_parametric(
    scenario: str | None, changes: tuple[float, ...], substrate: str, seconds: float, as_json: bool
) -> None:
    """Updates of subscriptions against re-subscription, in a simulated network.

    Two scenarios, cars on a highway and traders with limits, each on 20 brokers. The time that
    brokers take for messages is measured first, on this machine. At many changes a second the
    highway takes minutes.
    """
    if not as_json:
        click.echo(
            f"{'scenario':<9}{'changes/s':>10}  {'method':<24}{'delay ms':>9}{'spurious/s':>11}"
            f"{'delivered/s':>12}{'missed':>7}{'twice':>8}{'messages':>9}{'a change':>9}"
            f"{'busiest':>8}"
        )
    for name in [scenario] if scenario else SCENARIOS:
        for rate in changes or parametric.RATES[name]:
            for method in ChangeMethod:
                speed = parametric.measure(name, method, rate, substrate, seconds, print_status)
                click.echo(json.dumps(parametric.row(speed)) if as_json else _line(speed))


def _line(speed: ParametricSpeed) -> str:
    outcome = speed.outcome
    delay = "" if outcome.delay_ms is None else f"{outcome.delay_ms:,.0f}"
    return (
        f"{speed.scenario:<9}{speed.changes_per_s:>10,.0f}  {speed.method:<24}{delay:>9}"
        f"{outcome.spurious_per_s:>11.3f}{outcome.delivered_per_s:>12.2f}{outcome.missed:>7,}"
        f"{outcome.twice:>8,}{outcome.messages:>9,}"
        f"{outcome.messages / max(1, outcome.changes):>9.1f}{outcome.busiest:>8.2f}"
    )
