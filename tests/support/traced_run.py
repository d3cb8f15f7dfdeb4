"""A traced simulation, for the tests of traces and of their replay."""

from __future__ import annotations

from tidegate.simulation.faults import Fault
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.scenario import Scenario, Simulation
from tidegate.simulation.trace import Trace
from tidegate.simulation.workloads import Demand
from tidegate.simulation.world import Weather

DEMAND = Demand(publishers=4, subscribers=20, rate_per_s=50.0, duration_s=3.0)


def traced(routing: str, topology: str = "random-graph") -> list[str]:
    """The trace of a run with churn, faults, random delays and duplicates."""
    lines: list[str] = []
    overlay = generate(topology, 8, 4)
    link = overlay.links[0]
    faults = (
        Fault((overlay.brokers[1],), 500_000, 1_500_000),
        Fault((link.a, link.b), 200_000, 2_000_000),
    )
    scenario = Scenario(
        overlay, routing, "churn", 4, DEMAND,
        processor_us=300, semantics="advertisement", weather=Weather(5_000, 0.1), faults=faults,
    )  # fmt: skip
    trace = Trace(lines.append)
    simulation = Simulation(scenario, trace)
    trace.begin(simulation.world, {"workload": "churn"})
    simulation.run()
    return lines
