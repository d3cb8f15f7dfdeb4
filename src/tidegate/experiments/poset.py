"""Benchmark of the covering poset: inserting, updating and removing a filter.

Two workloads: `market` of ``workloads.py``, in which hardly a filter covers another, and `airlines`
after the examples of Siena, in which most do: few attributes, any of which may be left free, and
upper bounds on prices.

A poset is filled; then new filters are inserted, as many others are updated (one number changes by
up to 1 %), and as many are removed, each operation timed separately. Parsing is not counted; the
normal forms and boxes that the poset computes are counted. The plain method, for comparison, calls
`covers` for a new filter and every other, in both directions, without any index.
"""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import WORKLOADS
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import underlying_filter

SIZES = (1_000, 10_000, 100_000)
TIMED = 1_000
"""Number of insertions, of updates and of removals that are timed."""
PLAIN_TIMED = 5
"""Number of filters that the plain method compares."""
PLAIN_SIZE_MAX = 10_000
"""The plain method is left out above this size, where it takes about a second per filter."""


@dataclass(frozen=True, slots=True)
class PosetSpeed:
    """Microseconds per operation, and the size of the poset after the insertions.

    Equal filters share a node. ``plain_p50_us`` is None if the plain method was left out.
    """

    workload: str
    filters: int
    nodes: int
    roots: int
    edges: int
    insert_p50_us: float
    insert_p99_us: float
    update_p50_us: float
    update_p99_us: float
    remove_p50_us: float
    remove_p99_us: float
    plain_p50_us: float | None


def airline_filters(count: int, seed: int = 1) -> Iterator[str]:
    """Filters of subscriptions to flights, after the examples of Siena.

    >>> next(airline_filters(1))
    "airline = 'A2' and orig = 'O63' and price < 270"
    """
    rng = random.Random(seed)
    for _ in range(count):
        parts = []
        if rng.random() < 0.5:
            parts.append(f"airline = 'A{rng.randrange(20)}'")
        if rng.random() < 0.5:
            parts.append(f"orig = 'O{rng.randrange(100)}'")
        if rng.random() < 0.5:
            parts.append(f"dest = 'D{rng.randrange(100)}'")
        if rng.random() < 0.3:
            parts.append(f"stops <= {rng.randrange(4)}")
        if rng.random() < 0.8 or not parts:
            parts.append(f"price < {rng.randrange(10, 1000, 10)}")
        yield " and ".join(parts)


def market_filters(count: int, seed: int = 1) -> list[str]:
    """The filters of the workload `market`."""
    texts = WORKLOADS["market"].subscriptions(count, seed)["filter"].to_pylist()
    return [str(text) for text in texts]


WORKLOAD_TEXTS: dict[str, Callable[[int, int], Iterable[str]]] = {
    "market": market_filters,
    "airlines": airline_filters,
}


def measure(workload: str, size: int, seed: int = 1, progress: Progress = silent) -> PosetSpeed:
    """Measure a poset of one size."""
    progress(f"{workload}: parsing and inserting {size:,} filters")
    timed = min(TIMED, size)
    texts = WORKLOAD_TEXTS[workload](size + timed, seed)
    filters = [Filter.of_shape(*shape_row) for shape_row in BulkParser().read_many(texts)]
    for filter in filters:
        assert filter.node is not None  # makes the tree, which is lazy and part of parsing
    poset = Poset(FILTERS)
    for filter in filters[:size]:
        poset.insert(filter)
    gc.collect()  # so that no collection of the garbage from filling falls into the timed calls
    new_filters = filters[size:]
    plain_p50_us = None
    if size <= PLAIN_SIZE_MAX:
        others = [underlying_filter(node.item) for node in poset]
        # Copies: a filter keeps its normal form, which the insertion has to compute itself.
        copies = [Filter(filter.node) for filter in new_filters[:PLAIN_TIMED]]
        plain_p50_us = _median(_timed(lambda filter: _compare_with_all(filter, others), copies))
    insert_us = _timed(poset.insert, new_filters)
    nodes, roots = len(poset), len(poset.roots())
    edges = sum(len(node.children) for node in poset)
    rng = random.Random(seed)
    updates = [
        (node, changed)
        for node in rng.sample(list(poset), min(timed, nodes))
        if (changed := _changed(underlying_filter(node.item), rng)) is not None
    ]
    update_us = _timed(lambda update: poset.rebind(*update), updates)
    removed_nodes = rng.sample(list(poset), min(timed, len(poset)))
    remove_us = _timed(poset.remove, removed_nodes)
    return PosetSpeed(
        workload,
        size,
        nodes,
        roots,
        edges,
        insert_p50_us=_median(insert_us),
        insert_p99_us=_p99(insert_us),
        update_p50_us=_median(update_us),
        update_p99_us=_p99(update_us),
        remove_p50_us=_median(remove_us),
        remove_p99_us=_p99(remove_us),
        plain_p50_us=plain_p50_us,
    )


def _changed(filter: Filter, rng: random.Random) -> Filter | None:
    """The filter with one of its numbers changed by up to 1 %; None if it has no number."""
    _, row = filter.shape_and_row
    numbers = {index: cell for index, cell in enumerate(row) if isinstance(cell, int | float)}
    if not numbers:
        return None
    index, value = rng.choice(list(numbers.items()))
    return filter.with_cells({index: type(value)(value * rng.uniform(0.99, 1.01))})


def _compare_with_all(filter: Filter, others: Sequence[Filter]) -> int:
    return sum(filter.covers(other) + other.covers(filter) for other in others)


def _timed(call: Callable[..., object], arguments: Iterable[object]) -> list[float]:
    """The duration of each call, in microseconds."""
    durations_us = []
    for argument in arguments:
        start = perf_counter()
        call(argument)
        durations_us.append((perf_counter() - start) * 1e6)
    return durations_us


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]
