"""What it costs to change a subscription: an update against subscribing anew.

The two scenarios of "Parametric Subscriptions", 5.4 and 5.5, in the simulated world. How long a
broker takes for a message is not assumed but measured: a short run beforehand, with the same
clients, times the real brokers by the kind of message; the run that counts goes by the means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import mean

from tidegate.experiments.progress import Progress
from tidegate.routing.messages import Message
from tidegate.simulation.costs import Costs, kind_of
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.parametric import (
    HIGHWAY,
    TRADING,
    Adaptation,
    ChangeMethod,
    Outcome,
    ParametricRun,
)

TIMED_S = 1.0
"""How long, in simulated time, brokers are timed."""


@dataclass(frozen=True, slots=True)
class AdaptationSpeed:
    """How one way to change subscriptions did at one rate."""

    scenario: str
    substrate: str
    way: str
    changes_per_s: float
    """At each broker that has subscribers."""
    outcome: Outcome
    costs_us: dict[str, int]
    """What brokers took for a message, by its kind."""


def highway(
    changes_per_s: float, way: ChangeMethod, substrate: str, duration_s: float
) -> Adaptation:
    """Cars on highways: 20 brokers in a general graph, 10 publishers and 100 cars at each."""
    topology = generate("highway20")
    return Adaptation(
        HIGHWAY,
        topology,
        topology.brokers * 10,
        topology.brokers * 100,
        changes_per_s,
        events_per_s=1_000.0,
        way=way,
        substrate=substrate,
        duration_s=duration_s,
    )


def trading(
    changes_per_s: float, way: ChangeMethod, substrate: str, duration_s: float
) -> Adaptation:
    """Traders: a hierarchy of 20 brokers, 5 publishers at the top, 150 subscribers at firms."""
    topology = generate("trading20")
    firms = tuple(name for name in topology.brokers if name.startswith("firm"))
    return Adaptation(
        TRADING,
        topology,
        ("market",) * 5,
        firms * (150 // len(firms)),
        changes_per_s,
        events_per_s=500.0,
        way=way,
        routing="subscription",
        substrate=substrate,
        duration_s=duration_s,
    )


SCENARIOS: dict[str, Callable[[float, ChangeMethod, str, float], Adaptation]] = {
    "highway": highway,
    "trading": trading,
}


RATES = {"highway": (100.0, 300.0), "trading": (100.0, 1_000.0)}
"""Changes a second at each broker with subscribers: the most of the paper, and a rate at which
subscribing anew is more than brokers can do. Of traders there are 15 at a broker."""


def measure(
    scenario: str,
    way: ChangeMethod,
    changes_per_s: float,
    substrate: str = "poset",
    duration_s: float = 3.0,
    progress: Progress = str,
) -> AdaptationSpeed:
    """Run one way at one rate."""
    progress(f"{scenario}: {way.value}, {changes_per_s:g} changes a second, {substrate}")
    adaptation = SCENARIOS[scenario](changes_per_s, way, substrate, duration_s)
    costs = timed_costs(adaptation)
    outcome = ParametricRun(replace(adaptation, costs=Costs(by_kind_us=costs))).outcome()
    return AdaptationSpeed(scenario, substrate, way.value, changes_per_s, outcome, costs)


def timed_costs(adaptation: Adaptation) -> dict[str, int]:
    """How many microseconds a broker takes for each kind of message, in the mean."""
    taken: dict[str, list[float]] = {}

    def note(message: Message, seconds: float) -> None:
        taken.setdefault(kind_of(message), []).append(seconds)

    ParametricRun(replace(adaptation, duration_s=TIMED_S), note).outcome()
    return {kind: max(1, round(mean(each) * 1e6)) for kind, each in sorted(taken.items())}


def row(speed: AdaptationSpeed) -> dict[str, object]:
    """The figures of a run, flat."""
    rest = asdict(speed)
    outcome = rest.pop("outcome")
    return {**rest, **outcome}
