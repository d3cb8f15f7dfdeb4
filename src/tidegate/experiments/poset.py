"""What it costs to put a filter into the covering poset, to change it and to take one out.

Two workloads: `market` of ``workloads.py``, in which hardly a filter covers another, and `airlines`
after the examples of Siena, in which most do: few attributes, any of which may be left free, and
upper bounds on prices.

A poset is filled, then filters that it has not seen are put in, then a number in as many others is
changed a little, then as many are taken out, each timed by itself. Filters are parsed before; what
the poset needs of them is counted. Beside it stands the plain way, which compares a new filter with
every other, both ways, and does nothing else.
"""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from tidegate.experiments.progress import Progress
from tidegate.experiments.workloads import WORKLOADS
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import filter_of

SIZES = (1_000, 10_000, 100_000)
TIMED = 1_000
"""The filters that are put in and taken out under the clock."""
PLAIN_TIMED = 5
PLAIN_SIZE_MAX = 10_000
"""The plain way is left out above this size: there a filter takes it about a second."""


@dataclass(frozen=True, slots=True)
class PosetSpeed:
    """Microseconds for each filter, and what the poset looked like in between.

    ``plain_p50_us`` is None where the plain way was left out.
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
    """Subscriptions to flights.

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
    """The subscriptions of the workload `market`."""
    texts = WORKLOADS["market"].subscriptions(count, seed)["filter"].to_pylist()
    return [str(text) for text in texts]


WORKLOAD_TEXTS: dict[str, Callable[[int, int], Iterable[str]]] = {
    "market": market_filters,
    "airlines": airline_filters,
}


def measure(workload: str, size: int, seed: int = 1, progress: Progress = str) -> PosetSpeed:
    """Measure a poset of one size."""
    progress(f"{workload}: reading and inserting {size:,} filters")
    timed = min(TIMED, size)
    texts = WORKLOAD_TEXTS[workload](size + timed, seed)
    filters = [Filter.of_shape(*each) for each in BulkParser().read_many(texts)]
    for filter in filters:
        assert filter.node is not None  # made now, because it is part of parsing
    poset = Poset(FILTERS)
    for filter in filters[:size]:
        poset.insert(filter)
    gc.collect()
    new = filters[size:]
    plain = None
    if size <= PLAIN_SIZE_MAX:
        others = [filter_of(node.item) for node in poset]
        some = [Filter(filter.node) for filter in new[:PLAIN_TIMED]]
        plain = _median(_timed(lambda filter: _compare_with_all(filter, others), some))
    inserted = _timed(poset.insert, new)
    nodes, roots = len(poset), len(poset.roots())
    edges = sum(len(node.children) for node in poset)
    chosen = random.Random(seed)
    changed = [
        (node, item)
        for node in chosen.sample(list(poset), min(timed, nodes))
        if (item := _changed(filter_of(node.item), chosen)) is not None
    ]
    updated = _timed(lambda pair: poset.rebind(*pair), changed)
    gone = chosen.sample(list(poset), min(timed, len(poset)))
    removed = _timed(poset.remove, gone)
    return PosetSpeed(
        workload,
        size,
        nodes,
        roots,
        edges,
        insert_p50_us=_median(inserted),
        insert_p99_us=_p99(inserted),
        update_p50_us=_median(updated),
        update_p99_us=_p99(updated),
        remove_p50_us=_median(removed),
        remove_p99_us=_p99(removed),
        plain_p50_us=plain,
    )


def _changed(filter: Filter, chosen: random.Random) -> Filter | None:
    """A filter with another value for one of its numbers; None if it has none."""
    _, row = filter.shape_and_row
    numbers = {i: each for i, each in enumerate(row) if isinstance(each, int | float)}
    if not numbers:
        return None
    index, value = chosen.choice(list(numbers.items()))
    return filter.with_cells({index: type(value)(value * chosen.uniform(0.99, 1.01))})


def _compare_with_all(filter: Filter, others: Sequence[Filter]) -> int:
    return sum(filter.covers(other) + other.covers(filter) for other in others)


def _timed(call: Callable[..., object], arguments: Iterable[object]) -> list[float]:
    """How long each call takes, in microseconds."""
    taken = []
    for each in arguments:
        start = perf_counter()
        call(each)
        taken.append((perf_counter() - start) * 1e6)
    return taken


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]
