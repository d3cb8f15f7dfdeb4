"""Benchmark of the search tree: its speed and steps, by size and by optimization.

Two schemas of "An Efficient Multicast Protocol": the prototype's of 4.2, 30 attributes of 30 values
of which a subscription cares about 35 %, and that of chart 3, 10 attributes of 3 values, where it
cares about the first with a probability of 98 % and about each further one with 82 % of that.
Values are uniform. Variants of the tree and the columnar matcher have the same subscriptions and
take turns with the same events, and their answers are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from random import Random
from statistics import median
from time import perf_counter

from tidegate.experiments.progress import Progress, silent
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.subscription import Subscription
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import DEFAULT_TUNING, PLAIN

SIZES = (1_000, 25_000)
GROWTH_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
EVENTS = 4_000
PLAIN_MAX = 10_000
"""Largest size at which the plain tree is measured; it has a node for each level of each path."""


@dataclass(frozen=True, slots=True)
class TreeSchema:
    """Attributes, how many values each has, and with which probability a subscription cares."""

    name: str
    values: int
    cares: tuple[float, ...]
    factored: int


PROTOTYPE = TreeSchema("30 attributes of 30 values", 30, (0.35,) * 30, 1)
CHART_3 = TreeSchema("10 attributes of 3 values", 3, tuple(0.98 * 0.82**i for i in range(10)), 3)
SCHEMAS = {"prototype": PROTOTYPE, "chart-3": CHART_3}


@dataclass(frozen=True, slots=True)
class TreeSpeed:
    """Figures of one variant: time and steps for each event of a batch."""

    schema: str
    subscriptions: int
    variant: str
    median_us: float
    slowest_us: float
    fastest_us: float
    steps: float | None
    """Matching steps an event; None for a matcher that does not count them."""
    nodes: int | None
    matches: float
    """Matches an event."""
    is_same: bool
    """Whether the answers are those of the columnar matcher."""


def matchers(schema: TreeSchema, size: int) -> dict[str, Matcher]:
    """The variants to compare, by name, without subscriptions."""
    tuned = DEFAULT_TUNING
    variants: dict[str, Matcher] = {
        "columnar": ColumnarMatcher(),
        "tree": TreeMatcher(tuned),
        "no elimination": TreeMatcher(replace(tuned, eliminates_trivial_tests=False)),
        "no delayed branching": TreeMatcher(replace(tuned, delays_branching=False)),
        "factored": TreeMatcher(replace(tuned, factored=schema.factored)),
    }
    if size <= PLAIN_MAX:
        variants["plain tree"] = TreeMatcher(PLAIN)
    return variants


def subscriptions(schema: TreeSchema, count: int, seed: int = 1) -> Iterator[Subscription]:
    """Random subscriptions; fewer of them are the first of more.

    >>> print(next(subscriptions(CHART_3, 1)).filter)
    a0 = 0 and a1 = 1 and a3 = 1 and a5 = 0
    """
    random, parser = Random(seed), BulkParser()
    for number in range(count):
        wanted = [
            f"a{index} = {random.randrange(schema.values)}"
            for index, care in enumerate(schema.cares)
            if random.random() < care
        ]
        filter = Filter.of_shape(*parser.read(" and ".join(wanted) or "true"))
        yield Subscription(str(number), filter)


def events(schema: TreeSchema, count: int, seed: int = 2) -> EventBatch:
    """Random events that have all attributes."""
    random = Random(seed)
    names = [f"a{index}" for index in range(len(schema.cares))]
    return EventBatch.of_events(
        [Event.of({name: random.randrange(schema.values) for name in names}) for _ in range(count)]
    )


def measure(
    schema: TreeSchema,
    sizes: Iterable[int] = SIZES,
    rounds: int = 5,
    count: int = EVENTS,
    *,
    only: Sequence[str] | None = None,
    progress: Progress = silent,
) -> Iterator[TreeSpeed]:
    """Measure the variants, or ``only`` some of them, at several sizes."""
    batch = events(schema, count)
    for size in sizes:
        variants = matchers(schema, size)
        if only is not None:
            variants = {name: each for name, each in variants.items() if name in only}
        for name, matcher in variants.items():
            progress(f"{schema.name}, {size:,} subscriptions: building {name}")
            matcher.add(subscriptions(schema, size))
        yield from _measured(schema, size, variants, batch, rounds)


def _measured(
    schema: TreeSchema, size: int, variants: dict[str, Matcher], batch: EventBatch, rounds: int
) -> Iterator[TreeSpeed]:
    answers = {name: _pairs(matcher, batch) for name, matcher in variants.items()}
    trees = {name: each for name, each in variants.items() if isinstance(each, TreeMatcher)}
    steps = {name: tree.steps / batch.length for name, tree in trees.items()}
    times_us: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, matcher in variants.items():
            start = perf_counter()
            matcher.match_batch(batch)
            times_us[name].append((perf_counter() - start) * 1e6 / batch.length)
    expected = next(iter(answers.values()))
    for name in variants:
        yield TreeSpeed(
            schema.name,
            size,
            name,
            median(times_us[name]),
            max(times_us[name]),
            min(times_us[name]),
            steps.get(name),
            trees[name].nodes if name in trees else None,
            len(expected) / batch.length,
            answers[name] == expected,
        )


def _pairs(matcher: Matcher, batch: EventBatch) -> set[tuple[int, str]]:
    found = matcher.match_batch(batch)
    return set(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True))


def growth(rows: Iterable[TreeSpeed]) -> float:
    """The exponent with which the steps of the tree grow with the number of subscriptions.

    That of the power law that fits best, by least squares of the logarithms; less than linear
    growth is an exponent below 1.
    """
    points = [
        (log(each.subscriptions), log(each.steps))
        for each in rows
        if each.variant == "tree" and each.steps
    ]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return covariance / sum((x - mean_x) * (x - mean_x) for x in xs)
