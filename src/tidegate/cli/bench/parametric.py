"""`tidegate bench parametric`: what does it cost to change a subscription, in a network?"""

from __future__ import annotations

import json
from functools import partial

import click

from tidegate.experiments import parametric
from tidegate.experiments.parametric import SCENARIOS, AdaptationSpeed
from tidegate.routing.substrates import SUBSTRATES
from tidegate.simulation.parametric import ChangeMethod

_tell = partial(click.echo, err=True)


@click.command("parametric")
@click.option("--scenario", type=click.Choice(list(SCENARIOS)), help="One of them, not both.")
@click.option(
    "--changes",
    type=click.FloatRange(min=0.1),
    multiple=True,
    help="In a second, at each broker with subscribers; may be repeated. "
    "100 and 300 on the highway, 100 and 1,000 in trading if not said.",
)
@click.option(
    "--substrate",
    type=click.Choice(SUBSTRATES),
    default="poset",
    show_default=True,
    help="What matches events, in brokers.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Simulated."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.")
def bench_parametric(
    scenario: str | None, changes: tuple[float, ...], substrate: str, seconds: float, as_json: bool
) -> None:
    """Updates of subscriptions against subscribing anew, in a simulated network.

    Two scenarios, cars on a highway and traders with limits, each on 20 brokers. How long brokers
    take for messages is measured here before. At many changes a second the highway takes minutes.
    """
    if not as_json:
        click.echo(
            f"{'scenario':<9}{'changes/s':>10}  {'way':<24}{'delay ms':>9}{'spurious/s':>11}"
            f"{'delivered/s':>12}{'missed':>7}{'twice':>8}{'messages':>9}{'a change':>9}"
            f"{'busiest':>8}"
        )
    for name in [scenario] if scenario else SCENARIOS:
        for rate in changes or parametric.RATES[name]:
            for way in ChangeMethod:
                speed = parametric.measure(name, way, rate, substrate, seconds, _tell)
                click.echo(json.dumps(parametric.row(speed)) if as_json else _line(speed))


def _line(speed: AdaptationSpeed) -> str:
    outcome = speed.outcome
    delay = "" if outcome.delay_ms is None else f"{outcome.delay_ms:,.0f}"
    return (
        f"{speed.scenario:<9}{speed.changes_per_s:>10,.0f}  {speed.way:<24}{delay:>9}"
        f"{outcome.spurious_per_s:>11.3f}{outcome.delivered_per_s:>12.2f}{outcome.missed:>7,}"
        f"{outcome.twice:>8,}{outcome.messages:>9,}"
        f"{outcome.messages / max(1, outcome.changes):>9.1f}{outcome.busiest:>8.2f}"
    )
