"""Verification: many random runs (`random_run.py`), and the command that repeats each of them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice, product

from tidegate.routing.strategies import STRATEGIES
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate
from tidegate.simulation.overlays.json_file import read_overlay
from tidegate.simulation.scenario import strategy_name
from tidegate.simulation.verifying.random_run import RandomRun

VERIFIED_TOPOLOGIES = (
    "centralized",
    "random-tree",
    "random-graph",
    "hierarchy",
    "hierarchies-in-graph",
    "graphs-in-tree",
)
"""One of each architecture and hybrid of Siena, 4.1."""
BROKERS_MAX = 10
"""Unless a number of brokers is given, the seed determines it: from 1 to this."""


@dataclass(frozen=True, slots=True)
class VerificationCase:
    """One random run, on an overlay that is generated from the same seed or read from a file."""

    routing: str
    seed: int
    topology: str | None = None
    brokers: int | None = None
    overlay: str | None = None

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        if self.overlay is not None:
            where = f"--overlay {self.overlay}"
        else:
            where = f"--topology {self.topology}"
            if self.brokers is not None:
                where += f" --brokers {self.brokers}"
        return f"tidegate simulate --verify {where} --routing {self.routing} --seed {self.seed}"

    def problems(self) -> list[str]:
        """Run the case; returns the problems found."""
        if self.overlay is not None:
            topology = read_overlay(self.overlay)
        else:
            topology = generate(self.topology or "", self.brokers, self.seed)
        run = RandomRun(topology, strategy_name(self.routing, topology), self.seed)
        try:
            return run.problems()
        except Exception as error:  # noqa: BLE001 - an exception is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            return [f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"]


def cases(
    seeds: Sequence[int],
    topologies: Sequence[str] = VERIFIED_TOPOLOGIES,
    routings: Sequence[str] = tuple(STRATEGIES),
    brokers: int | None = None,
) -> Iterator[VerificationCase]:
    """A case for each seed, topology and routing.

    >>> next(cases([12])).command
    'tidegate simulate --verify --topology centralized --routing flooding --seed 12'
    """
    for seed, topology, routing in product(seeds, topologies, routings):
        count = None
        if not TOPOLOGIES[topology].fixed:
            count = 1 + seed % BROKERS_MAX if brokers is None else brokers
        yield VerificationCase(routing, seed, topology, count)


def outcomes(
    chosen: Iterator[VerificationCase], jobs: int = 1, chunk: int = 16
) -> Iterator[tuple[VerificationCase, list[str]]]:
    """Run cases in ``jobs`` processes; yields each with its problems, in order."""
    if jobs == 1:
        for case in chosen:
            yield case, case.problems()
        return
    with ProcessPoolExecutor(jobs) as pool:
        while batch := list(
            islice(chosen, jobs * chunk * 8)
        ):  # in batches, so that a caller can stop early
            yield from zip(
                batch, pool.map(VerificationCase.problems, batch, chunksize=chunk), strict=True
            )
