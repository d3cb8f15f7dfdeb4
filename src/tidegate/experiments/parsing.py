"""Benchmark of parsing: filters one by one, and in bulk, where shapes of texts repeat."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegate.language.filters import parse
from tidegate.language.parsing.bulk import BulkParser

EXCHANGES = ["NYSE", "NASDAQ", "LSE", "TSE"]
FIELDS = [f"f{index}" for index in range(6)]


@dataclass(frozen=True, slots=True)
class ParsingSpeed:
    """Filters parsed per second: median of the rounds, and the slowest and fastest round."""

    method: str
    filters: int
    shapes: int
    median_per_s: float
    slowest_per_s: float
    fastest_per_s: float


def market_filters(count: int, seed: int = 1) -> Iterator[str]:
    """Filters of subscriptions to a stock market, of a few hundred shapes, with random values.

    The same seed gives the same filters on every machine, so that runs can be compared.
    """
    rng = random.Random(seed)
    for _ in range(count):
        price, volume = rng.randrange(100_000) / 100, rng.randrange(1_000_000)
        limit = rng.choice([f"between {price} and {price + 50:.2f}", f"< {price}", f"> {price}"])
        parts = [f"price {limit}", f"volume {rng.choice(['>', '>='])} {volume}"]
        if rng.random() < 0.8:
            parts.insert(0, f"symbol = 'S{rng.randrange(5000)}'")
        if rng.random() < 0.5:
            parts.append(f"exchange = '{rng.choice(EXCHANGES)}'")
        for field in rng.sample(FIELDS, rng.randint(1, 2)):
            low = round(rng.random() * 0.7, 4)
            parts.append(f"{field} >= {low} and {field} <= {low + 0.3:.4f}")
        yield " and ".join(parts)


def measure(count: int = 500_000, rounds: int = 5, seed: int = 1) -> list[ParsingSpeed]:
    """Parse ``count`` filters in bulk, and a 250th of them one by one.

    Both methods run in each round, so that a slow moment of the machine hits both.
    """
    texts = list(market_filters(count, seed))
    few = texts[: max(1, count // 250)]
    shapes = len({shape for shape, _ in BulkParser().read_many(texts)})

    def in_bulk() -> None:
        # A new parser each time: it remembers shapes, and a round must include learning them.
        for _ in BulkParser().read_many(texts):
            pass

    def one_by_one() -> None:
        for text in few:
            parse(text)

    seconds: dict[str, list[float]] = {"bulk": [], "one by one": []}
    for _ in range(rounds):
        seconds["bulk"].append(_timed(in_bulk))
        seconds["one by one"].append(_timed(one_by_one))
    return [
        _speed("bulk", len(texts), shapes, seconds["bulk"]),
        _speed("one by one", len(few), shapes, seconds["one by one"]),
    ]


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _speed(method: str, filters: int, shapes: int, seconds: list[float]) -> ParsingSpeed:
    return ParsingSpeed(
        method,
        filters,
        shapes,
        median_per_s=filters / statistics.median(seconds),
        slowest_per_s=filters / max(seconds),
        fastest_per_s=filters / min(seconds),
    )
