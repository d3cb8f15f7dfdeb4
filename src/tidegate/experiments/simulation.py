"""Benchmark of the simulation: broker messages per second of wall time, by overlay and routing.

A case is an overlay, a routing, and a number of subscribers and events of the workload `zipf`. Each
runs in a process of its own, because the peak memory of a process includes that of all earlier
cases.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter

from tidegate.experiments.process_memory import peak_resident_bytes
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.scenario import Scenario, Simulation
from tidegate.simulation.workloads import Demand


@dataclass(frozen=True, slots=True)
class SimulationCase:
    """An overlay, its routing, and the size of the workload."""

    topology: str
    brokers: int
    routing: str
    subscribers: int
    events: int


CASES = (
    SimulationCase("tree", 10_000, "subscription", subscribers=30, events=60_000),
    SimulationCase("hierarchy", 10_000, "hierarchy", subscribers=200, events=5_000),
    SimulationCase("random-graph", 100, "subscription", subscribers=300, events=10_000),
    SimulationCase("random-graph", 1_000, "subscription", subscribers=100, events=10_000),
    SimulationCase("transit-stub", 100, "advertisement", subscribers=300, events=10_000),
)


@dataclass(frozen=True, slots=True)
class SimulationSpeed:
    """Figures of one case."""

    topology: str
    brokers: int
    routing: str
    subscribers: int
    events: int
    build_s: float
    messages: int
    wall_s: float
    messages_per_s: float
    delivered: int
    wanted: int
    peak_mb: float


def measure(case: SimulationCase, seed: int = 1) -> SimulationSpeed:
    """Run one case in this process."""
    start = perf_counter()
    demand = Demand(
        publishers=min(100, case.brokers),
        subscribers=case.subscribers,
        rate_per_s=1_000.0,
        duration_s=case.events / 1_000.0,
    )
    topology = generate(case.topology, case.brokers, seed)
    simulation = Simulation(Scenario(topology, case.routing, "zipf", seed, demand))
    build_s = perf_counter() - start
    report = simulation.run()
    return SimulationSpeed(
        case.topology,
        case.brokers,
        case.routing,
        case.subscribers,
        report.published,
        build_s,
        report.messages,
        report.wall_s,
        report.messages_per_s,
        report.delivered,
        report.wanted,
        peak_resident_bytes() / 2**20,
    )


def measure_apart(case: SimulationCase) -> SimulationSpeed:
    """Run one case in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, case).result()
