"""Benchmark of summaries: what a change and a match cost by size, and precision against bytes.

Subscriptions are like those of a market: most name one of many symbols, some a prefix or several
symbols; all have a range of prices or a bound on one, and half a least volume. Changes are made one
by one to a summary that holds ``size`` subscriptions and holds as many afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import mean, median
from time import perf_counter

from tidegate.experiments.progress import Progress, silent
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.matching.summary.budget import (
    BOUND_BYTES,
    EXACT_ENOUGH,
    ID_BYTES,
    PAPER,
    SummaryBudget,
)
from tidegate.matching.summary.strings import text_bytes
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import SummaryTables

SIZES = (100, 1_000, 10_000)
BUDGETS = {
    "exact": EXACT_ENOUGH,
    "paper": PAPER,
    **{f"{rows} rows": SummaryBudget(rows_max=rows) for rows in (1024, 256, 64, 16, 4, 1)},
}
OWNER = "home"


@dataclass(frozen=True, slots=True)
class SummaryCost:
    """Time of one operation on a summary of a size; the mean includes joins of rows."""

    operation: str
    budget: str
    size: int
    median_us: float
    mean_us: float
    slowest_us: float


@dataclass(frozen=True, slots=True)
class SummaryPrecision:
    """How large a summary is under a budget, and how many subscriptions it finds for an event."""

    budget: str
    size: int
    rows: int
    ids: int
    bytes: int
    """By equations (1) and (2) of the paper."""
    found: float
    """Subscriptions found an event."""
    matching: float
    """Subscriptions that an event matches."""


def filters(seed: int = 1) -> Iterator[Filter]:
    """Random subscriptions without end; the first ones are always the same.

    >>> print(next(filters()))
    symbol in ('S1', 'S2', 'S3') and price between 76.61 and 91.48 and volume > 83000
    """
    random = Random(seed)
    while True:
        yield parse(_text(random))


def _text(random: Random) -> str:
    parts = []
    symbol = int(500 * random.random() ** 3)
    kind = random.random()
    if kind < 0.7:
        parts.append(f"symbol = 'S{symbol}'")
    elif kind < 0.8:
        parts.append(f"symbol starts with 'S{symbol % 50}'")
    elif kind < 0.9:
        parts.append(f"symbol in ('S{symbol}', 'S{symbol + 1}', 'S{symbol + 2}')")
    price = random.uniform(1, 100)
    if random.random() < 0.7:
        parts.append(f"price between {price:.2f} and {price + random.uniform(0, 30):.2f}")
    else:
        parts.append(f"price < {price:.2f}")
    if random.random() < 0.5:
        parts.append(f"volume > {random.randrange(100) * 1000}")
    return " and ".join(parts)


def events(count: int, seed: int = 2) -> list[Event]:
    """Random events that have all attributes."""
    random = Random(seed)
    return [
        Event.of(
            {
                "symbol": f"S{int(500 * random.random() ** 3)}",
                "price": round(random.uniform(1, 130), 2),
                "volume": random.randrange(100_000),
            }
        )
        for _ in range(count)
    ]


def summary_of(wanted: Iterable[Filter], budget: SummaryBudget) -> Summary:
    """A summary of filters, numbered from 0."""
    summary = Summary(budget)
    for number, filter in enumerate(wanted):
        summary.add(OWNER, number, filter)
    return summary


def costs(
    sizes: Iterable[int] = SIZES,
    count: int = 500,
    budget: str = "exact",
    *,
    progress: Progress = silent,
) -> Iterator[SummaryCost]:
    """Time each operation ``count`` times, at each size."""
    for size in sizes:
        progress(f"summary, {size:,} subscriptions, {budget}")
        drawn = filters()
        held = [next(drawn) for _ in range(size)]
        new = [next(drawn) for _ in range(count)]
        for filter in new:
            filter.resolved_form()  # what parsing and the normal form cost is not of the summary
        summary = summary_of(held, BUDGETS[budget])
        random = Random(3)
        chosen = [random.randrange(size) for _ in range(count)]
        given = events(count)
        operations: dict[str, Callable[[int], object]] = {
            "subscribe": lambda i: summary.add(OWNER, size + i, new[i]),  # noqa: B023
            "update": lambda i: summary.replace(OWNER, chosen[i], new[-1 - i]),  # noqa: B023
            "unsubscribe": lambda i: summary.remove(OWNER, size + i),  # noqa: B023
            "match": lambda i: summary.find(given[i].attributes),  # noqa: B023
        }
        summary.find(given[0].attributes)  # the first one indexes string patterns
        for name, operation in operations.items():
            times = list(_timed(operation, count))
            yield SummaryCost(name, budget, size, median(times), mean(times), max(times))


def _timed(operation: Callable[[int], object], count: int) -> Iterator[float]:
    """The durations of calls, in microseconds."""
    for index in range(count):
        start = perf_counter()
        operation(index)
        yield (perf_counter() - start) * 1e6


def precision(
    size: int, count: int = 500, *, progress: Progress = silent
) -> Iterator[SummaryPrecision]:
    """For each budget, the size of a summary and how many subscriptions it finds an event."""
    drawn = filters()
    held = [next(drawn) for _ in range(size)]
    given = events(count)
    exact = summary_of(held, EXACT_ENOUGH)
    candidates = [exact.matching(event) for event in given]
    matching = mean(
        sum(held[number].matches(event) for _, number in found)
        for event, found in zip(given, candidates, strict=True)
    )
    for name, budget in BUDGETS.items():
        progress(f"summary, {size:,} subscriptions, {name}")
        summary = summary_of(held, budget)
        tables = summary.tables()
        found = mean(len(summary.matching(event)) for event in given)
        yield SummaryPrecision(name, size, *_size(tables), found, matching)


def _size(tables: SummaryTables) -> tuple[int, int, int]:
    """Rows, ids, and bytes by equations (1) and (2): a bound for an equality, two for a range."""
    bounds = sum(int((1 + (t.lows < t.highs)).sum()) for t in tables.ranges)
    texts = sum(text_bytes(pattern) for t in tables.strings for pattern in t.patterns)
    rows = sum(len(table.starts) - 1 for table in tables.all_tables)
    ids = sum(len(table.members) for table in tables.all_tables)
    return rows, ids, BOUND_BYTES * bounds + texts + ID_BYTES * ids
