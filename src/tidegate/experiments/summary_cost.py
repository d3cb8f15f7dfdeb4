"""Benchmark of summaries: what a change and a match cost by the number of subscriptions held.

Subscriptions are like those of a market: most name one of many symbols, some a prefix or several
symbols; all have a range of prices or a bound on one, and half a least volume. Changes are made one
by one to a summary that holds ``size`` subscriptions and holds as many afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import mean, median
from time import thread_time

from tidegate.experiments.progress import Progress, silent
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.matching.summary.summary import Summary

OWNER = "home"


@dataclass(frozen=True, slots=True)
class SummaryCost:
    """Processor time of one operation on a summary of a size."""

    operation: str
    size: int
    """Subscriptions held."""
    median_us: float
    mean_us: float
    slowest_us: float


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


def summary_of(wanted: Iterable[Filter]) -> Summary:
    """A summary of filters, numbered from 0."""
    summary = Summary()
    for number, filter in enumerate(wanted):
        summary.add(OWNER, number, filter)
    return summary


def costs(
    sizes: Iterable[int], count: int, *, progress: Progress = silent
) -> Iterator[SummaryCost]:
    """Time each operation ``count`` times, at each size."""
    for size in sizes:
        progress(f"summary, {size:,} subscriptions")
        drawn = filters()
        held = [next(drawn) for _ in range(size)]
        new = [next(drawn) for _ in range(count)]
        for filter in new:
            filter.resolved_form()  # what parsing and the normal form cost is not of the summary
        summary = summary_of(held)
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
            yield SummaryCost(name, size, median(times), mean(times), max(times))


def _timed(operation: Callable[[int], object], count: int) -> Iterator[float]:
    """The processor time of calls, in microseconds."""
    for index in range(count):
        start = thread_time()
        operation(index)
        yield (thread_time() - start) * 1e6
