"""Benchmark of memory over time: what stays behind of subscriptions and events that are gone.

Beside subscriptions that stay, each cycle adds subscriptions with attributes, strings, patterns and
shapes that never were before, updates them with strings that never were before, matches an event
with other such strings, and cancels the subscriptions. Before the first cycle (some cycles that
warm up do not count), after all and after as many again, the resident memory and the time of
matching the same events are measured. What grows from the second to the third is what never comes
back.

Each matcher is measured in a process of its own.
"""

from __future__ import annotations

import gc
import statistics
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter

import numpy as np
import pyarrow as pa

from tidegate.errors import UnsetParameterWarning
from tidegate.experiments.process_memory import peak_resident_bytes, resident_bytes
from tidegate.experiments.progress import Progress, silent
from tidegate.matching.engine import Engine
from tidegate.matching.rows.memory import release_memory

MATCHERS = ("columnar", "tree", "rete", "poset")
"""Those that are measured by default. The oracle has no structures that could grow."""

SUBSCRIPTIONS = 1_000
CYCLES = {"columnar": 20_000, "tree": 10_000, "rete": 10_000, "poset": 5_000}
CYCLES_OF_OTHERS = 1_000
TEXT_CHARS = 2_000
"""Length of the string that an event of a cycle has where patterns look for theirs."""
BATCH_EVENTS = 8_192
SINGLE_EVENTS = 500
ROUNDS = 5
WARM_UP_SHARE = 20
"""One of so many cycles is done before memory is measured for the first time."""
WARM_UP_MIN = 200


@dataclass(frozen=True, slots=True)
class Footing:
    """How an engine stands at a moment: memory, and the time for an event alone and in a batch."""

    cycles: int
    resident_mb: float
    match_us: float
    batch_us: float


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """A matcher before all cycles, after them, and after as many again.

    ``peak_mb`` includes the batches that are matched to measure it.
    """

    matcher: str
    subscriptions: int
    before: Footing
    after: Footing
    after_twice: Footing
    cycle_us: float
    peak_mb: float

    @property
    def growth_bytes(self) -> float:
        """Memory that a cycle of the second half has left behind."""
        grown = self.after_twice.resident_mb - self.after.resident_mb
        return grown * 2**20 / max(1, self.after_twice.cycles - self.after.cycles)


def measure(
    matcher: str,
    cycles: int | None = None,
    subscriptions: int = SUBSCRIPTIONS,
    progress: Progress = silent,
) -> MemoryGrowth:
    """Run cycles in this process, twice as many as are given."""
    count = cycles or CYCLES.get(matcher, CYCLES_OF_OTHERS)
    engine = _engine(matcher, subscriptions)
    done = max(WARM_UP_MIN, count // WARM_UP_SHARE)
    for number in range(done):
        cycle(engine, number)
    footings = [_footing(engine, 0)]
    spent_s = 0.0
    for half in (1, 2):
        progress(f"{matcher}: cycle {(half - 1) * count:,} of {2 * count:,}")
        start = perf_counter()
        for number in range(done, done + count):
            cycle(engine, number)
        spent_s += perf_counter() - start
        done += count
        footings.append(_footing(engine, half * count))
    before, after, after_twice = footings
    return MemoryGrowth(
        matcher,
        subscriptions,
        before,
        after,
        after_twice,
        spent_s / (2 * count) * 1e6,
        peak_resident_bytes() / 2**20,
    )


def measure_apart(
    matcher: str, cycles: int | None, subscriptions: int, progress: Progress
) -> MemoryGrowth:
    """As ``measure``, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, matcher, cycles, subscriptions, progress).result()


def _engine(matcher: str, subscriptions: int) -> Engine:
    engine = Engine(matcher=matcher)
    for number in range(subscriptions):
        engine.subscribe(
            f"symbol = 'S{number % 100}' and price < :limit and venue contains 'v{number % 50}'",
            id=f"stays{number}",
            limit=float(number),
        )
    return engine


def cycle(engine: Engine, number: int) -> None:
    """Add, update, match and cancel what was never there before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsetParameterWarning)
        named = engine.subscribe(f"a{number} = 1 and b{number} > :low and c = :name", low=1.0)
        pattern = engine.subscribe(f"venue contains :part or venue like '%{number}_%x'", part="?")
    named.update(low=2.0, name=f"name {number}")
    pattern.update(part=f"part {number}")
    text = f"{number} ".ljust(TEXT_CHARS, "-")
    engine.match({f"a{number}": 1, "c": f"name {number}", "venue": text, "symbol": text})
    named.update(name=f"another name {number}")
    named.cancel()
    pattern.cancel()


def _footing(engine: Engine, cycles: int) -> Footing:
    """Measure memory and speed; the batch before, so that its memory is given back."""
    rng = np.random.default_rng(1)
    symbols = [f"S{number}" for number in rng.integers(0, 100, BATCH_EVENTS).tolist()]
    venues = [f"v{number} of all" for number in rng.integers(0, 1000, BATCH_EVENTS).tolist()]
    prices = pa.array(rng.uniform(0, 1000, BATCH_EVENTS))
    table = pa.table({"symbol": pa.array(symbols), "price": prices, "venue": pa.array(venues)})
    batch_us = _median_us(lambda: engine.match_batch(table), BATCH_EVENTS)
    events = table.slice(0, SINGLE_EVENTS).to_pylist()

    def one_by_one() -> None:
        for event in events:
            engine.match(event)

    match_us = _median_us(one_by_one, len(events))
    gc.collect()
    release_memory()
    return Footing(cycles, resident_bytes() / 2**20, match_us, batch_us)


def _median_us(run: Callable[[], object], events: int) -> float:
    """The median time of some rounds, in microseconds an event."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return statistics.median(times) / events * 1e6
