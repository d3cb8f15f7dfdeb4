"""Benchmark of changing a subscription: an update against re-subscription.

The two scenarios of "Parametric Subscriptions", 5.4 and 5.5, in the simulated world. The processing
time of a broker for a message is not assumed but measured: a short run beforehand, with the same
clients, times the real brokers by kind of message; the measured run charges the mean of each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import mean

from tidegate.experiments.progress import Progress, silent
from tidegate.routing.messages import Message
from tidegate.simulation.costs import Costs, kind_of
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.parametric_run import (
    HIGHWAY,
    TRADING,
    ChangeMethod,
    Outcome,
    ParametricRun,
    ParametricScenario,
)

TIMED_S = 1.0
"""Length of the run that times the brokers, in simulated seconds."""


@dataclass(frozen=True, slots=True)
class ParametricSpeed:
    """Figures of one method of changing subscriptions at one rate."""

    scenario: str
    substrate: str
    method: str
    changes_per_s: float
    """Changes of all subscribers of one broker together."""
    outcome: Outcome
    costs_us: dict[str, int]
    """Mean processing time of a message, by its kind."""


def highway(
    changes_per_s: float, method: ChangeMethod, substrate: str, duration_s: float
) -> ParametricScenario:
    """Cars on highways: 20 brokers in a general graph, 10 publishers and 100 cars at each."""
    topology = generate("highway20")
    return ParametricScenario(
        HIGHWAY,
        topology,
        topology.brokers * 10,
        topology.brokers * 100,
        changes_per_s,
        events_per_s=1_000.0,
        method=method,
        substrate=substrate,
        duration_s=duration_s,
    )


def trading(
    changes_per_s: float, method: ChangeMethod, substrate: str, duration_s: float
) -> ParametricScenario:
    """Traders: a hierarchy of 20 brokers, 5 publishers at the top, 150 subscribers at firms."""
    topology = generate("trading20")
    firms = tuple(name for name in topology.brokers if name.startswith("firm"))
    return ParametricScenario(
        TRADING,
        topology,
        ("market",) * 5,
        firms * (150 // len(firms)),
        changes_per_s,
        events_per_s=500.0,
        method=method,
        routing="subscription",
        substrate=substrate,
        duration_s=duration_s,
    )


SCENARIOS: dict[str, Callable[[float, ChangeMethod, str, float], ParametricScenario]] = {
    "highway": highway,
    "trading": trading,
}


RATES = {"highway": (100.0, 300.0), "trading": (100.0, 1_000.0)}
"""Changes per second at each broker with subscribers: the highest rate of the paper, and one at
which re-subscription overloads the brokers. Each broker of `trading` has 15 traders."""


def measure(
    name: str,
    method: ChangeMethod,
    changes_per_s: float,
    substrate: str = "poset",
    duration_s: float = 3.0,
    progress: Progress = silent,
) -> ParametricSpeed:
    """Run the scenario of a name with one method at one rate."""
    progress(f"{name}: {method.value}, {changes_per_s:g} changes a second, {substrate}")
    scenario = SCENARIOS[name](changes_per_s, method, substrate, duration_s)
    costs_us = timed_costs(scenario)
    outcome = ParametricRun(replace(scenario, costs=Costs(by_kind_us=costs_us))).outcome()
    return ParametricSpeed(name, substrate, method.value, changes_per_s, outcome, costs_us)


def timed_costs(scenario: ParametricScenario) -> dict[str, int]:
    """Mean processing time of a broker for each kind of message, in microseconds."""
    seconds_by_kind: dict[str, list[float]] = {}

    def record(message: Message, seconds: float) -> None:
        seconds_by_kind.setdefault(kind_of(message), []).append(seconds)

    ParametricRun(replace(scenario, duration_s=TIMED_S), record).outcome()
    # Rounded up to 1: no message is free.
    return {
        kind: max(1, round(mean(seconds) * 1e6))
        for kind, seconds in sorted(seconds_by_kind.items())
    }


def row(speed: ParametricSpeed) -> dict[str, object]:
    """The figures of a run as one flat JSON object."""
    figures = asdict(speed)
    outcome = figures.pop("outcome")
    return {**figures, **outcome}
