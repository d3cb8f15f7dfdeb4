"""Benchmark of kinds of predicates: what an event costs if filters ask for something unusual.

All kinds have the same subscriptions but for one predicate: a range of `x` that one in fifty events
satisfies, and a predicate of the kind that half of the events do. `numbers`, the first one, is what
the others are compared with. Events come one by one and in a batch; before the rounds, answers are
compared with those of the oracle.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

import numpy as np
import pyarrow as pa

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import EVENT_TIME
from tidegate.matching.engine import Engine
from tidegate.matching.records import SubscriptionRecord

NOW = datetime(2026, 1, 2, tzinfo=UTC)
VERIFIED_EVENTS = 5
"""Events whose answers are compared with those of the oracle."""

Draw = Callable[[np.random.Generator, int], list[object]]


def _numbers(rng: np.random.Generator, count: int) -> list[object]:
    return list(rng.random(count).tolist())


def _words(rng: np.random.Generator, count: int) -> list[object]:
    return [f"customers/europe/{number:08}" for number in rng.integers(0, 10**8, count).tolist()]


def _long(rng: np.random.Generator, count: int) -> list[object]:
    return [2**60 + number for number in rng.integers(0, 10**9, count).tolist()]


def _seconds(rng: np.random.Generator, count: int) -> list[object]:
    return [float(number) for number in rng.integers(0, 100_000, count).tolist()]


def _times(rng: np.random.Generator, count: int) -> list[object]:
    return [NOW - timedelta(seconds=number) for number in rng.integers(0, 100_000, count).tolist()]


def _far_times(rng: np.random.Generator, count: int) -> list[object]:
    far = datetime(2500, 1, 1, tzinfo=UTC)
    drawn = rng.integers(0, 10**9, count).tolist()
    return [far + timedelta(microseconds=number) for number in drawn]


@dataclass(frozen=True, slots=True)
class PredicateKind:
    """A predicate on `y`; values of its parameter, and of `y` in events."""

    predicate: str
    parameters: Draw
    events: Draw


KINDS: Mapping[str, PredicateKind] = {
    "numbers": PredicateKind("y < :p", _numbers, _numbers),
    "strings": PredicateKind("y < :p", _words, _words),
    "long integers": PredicateKind("y < :p", _long, _long),
    "far timestamps": PredicateKind("y < :p", _far_times, _far_times),
    "a variable": PredicateKind("y < @middle and z < :p", _numbers, _words),
    "now()": PredicateKind("y > now() - 50000 and z < :p", _numbers, _times),
    "seconds ago": PredicateKind("y > now() - :p", _seconds, _times),
    "a time of constants": PredicateKind("y < :p + 3600", _times, _times),
}
"""The kinds by name."""

VARIABLES = {"middle": "customers/europe/5"}


@dataclass(frozen=True, slots=True)
class PredicateSpeed:
    """Figures of a kind: microseconds an event, the medians of all rounds, and the extremes."""

    kind: str
    subscriptions: int
    engine: str
    matches_per_event: float
    batch_us: float
    batch_fastest_us: float
    batch_slowest_us: float
    single_us: float
    wrong_events: int


def measure(
    kinds: Mapping[str, PredicateKind],
    subscriptions: int,
    rounds: int,
    engine: str = "columnar",
    events: int = 1_000,
    progress: Progress = silent,
) -> Iterator[PredicateSpeed]:
    """Measure kinds of predicates, one after the other."""
    for name, kind in kinds.items():
        progress(f"{name}, {subscriptions:,} subscriptions")
        yield _measure(name, kind, subscriptions, rounds, engine, events)


def _measure(
    name: str, kind: PredicateKind, subscriptions: int, rounds: int, engine: str, events: int
) -> PredicateSpeed:
    rng = np.random.default_rng(1)
    low = rng.random(subscriptions)
    parameters = kind.parameters(rng, subscriptions)
    records = [
        SubscriptionRecord(
            f"s{row}",
            f"x >= :low and x <= :high and {kind.predicate}",
            {"low": lowest, "high": lowest + 0.02, "p": parameters[row]},
            since=NOW - timedelta(days=1),
        )
        for row, lowest in enumerate(low.tolist())
    ]
    points = rng.random((events, 2)).tolist()
    drawn: list[dict[str, object]] = [
        {"x": x, "y": y, "z": z} for (x, z), y in zip(points, kind.events(rng, events), strict=True)
    ]
    measured = Engine(matcher=engine)
    _fill(measured, records)
    wrong = _wrong_events(measured, records, drawn)
    table = pa.Table.from_pylist([{**event, EVENT_TIME: NOW} for event in drawn])
    measured.match_batch(table, event_time=EVENT_TIME)
    batch, single, matches = [], [], 0
    for _ in range(rounds):
        start = perf_counter()
        matches = len(measured.match_batch(table, event_time=EVENT_TIME))
        batch.append(perf_counter() - start)
        start = perf_counter()
        for event in drawn:
            measured.match(event, time=NOW)
        single.append(perf_counter() - start)
    scale = 1e6 / events
    return PredicateSpeed(
        name, subscriptions, engine, matches / events, scale * statistics.median(batch),
        scale * min(batch), scale * max(batch), scale * statistics.median(single), wrong,
    )  # fmt: skip


def _fill(engine: Engine, records: list[SubscriptionRecord]) -> None:
    engine.subscribe_records(records)
    engine.set_variables(**VARIABLES)


def _wrong_events(
    engine: Engine, records: list[SubscriptionRecord], events: list[dict[str, object]]
) -> int:
    """Of some events, how many are answered otherwise than by the oracle."""
    oracle = Engine(matcher="naive")
    _fill(oracle, records)
    return sum(
        sorted(engine.match(event, time=NOW)) != sorted(oracle.match(event, time=NOW))
        for event in events[:VERIFIED_EVENTS]
    )
