"""Benchmark of slow corners: `in` lists, patterns and disjunctions, and updates of any of them.

Ten thousand subscriptions of one kind are loaded, of those that a matcher finds hardest. Events are
matched one by one, each with strings that no event had before, so that nothing is remembered of
them. Then single parameters are updated, and after each update an event is matched.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from tidegate.errors import TidegateWarning
from tidegate.experiments.progress import Progress, silent
from tidegate.language.values import Value
from tidegate.matching.engine import Engine

SUBSCRIPTIONS = 10_000
EVENTS = 300
UPDATES = 300
LETTERS = 30
"""The length of a string of an event."""

Values = dict[str, Value]


class Corner(NamedTuple):
    """A kind of filter: its text, the values of its parameters, and what an update changes."""

    text: Callable[[random.Random], str]
    parameters: Callable[[random.Random], Values]
    update: Callable[[random.Random], Values]


@dataclass(frozen=True, slots=True)
class CornerCost:
    """The cost of single calls with many subscriptions of one kind, in microseconds.

    ``matched`` is how many subscriptions an event matches on average: each costs something.
    """

    kind: str
    subscriptions: int
    matched: float
    match_p50_us: float
    match_p99_us: float
    update_p50_us: float
    update_p99_us: float
    update_and_match_p50_us: float


def _word(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(ascii_lowercase, k=length))


def _number(chance: random.Random) -> int:
    return chance.randrange(20_000)


def _numbers(chance: random.Random, names: str) -> Values:
    return {name: _number(chance) for name in names}


def _range(chance: random.Random) -> Values:
    low = _number(chance)
    return {"a": low, "b": low + 20}


def _pattern(text: str, length: int) -> Corner:
    """A filter with one pattern, whose text ``:p`` has so many letters."""

    def values(chance: random.Random) -> Values:
        return {"p": _word(chance, length)}

    def all_values(chance: random.Random) -> Values:
        return {**values(chance), **(_numbers(chance, "k") if ":k" in text else {})}

    return Corner(lambda _: text, all_values, values)


def _like(letters: int, runs: int) -> Corner:
    def values(chance: random.Random) -> Values:
        return {"p": "%" + "".join(_word(chance, letters) + "%" for _ in range(runs))}

    return Corner(lambda _: "s like :p", values, values)


def _list(length: int) -> Callable[[random.Random], str]:
    return lambda chance: ", ".join(str(_number(chance)) for _ in range(length))


def corners() -> dict[str, Corner]:
    """The kinds of filters, by name."""
    more = " or ".join(f"x{number} between {number} and :b" for number in range(7))
    fourteen = _list(14)
    return {
        "in of 16 numbers": Corner(
            lambda chance: f"x in (:a, :b, {fourteen(chance)})",
            lambda chance: _numbers(chance, "ab"),
            lambda chance: _numbers(chance, "a"),
        ),
        "2 lists of 4 and a bound": Corner(
            lambda _: "x in (:a, :b, :c, :d) and y in (1, 2, 3, :e) and z < :f",
            lambda chance: _numbers(chance, "abcdef"),
            lambda chance: _numbers(chance, "f"),
        ),
        "not in of 16 numbers": Corner(
            lambda chance: f"x = :a and y not in (:b, {fourteen(chance)})",
            lambda chance: _numbers(chance, "ab"),
            lambda chance: _numbers(chance, "a"),
        ),
        "unequal": Corner(
            lambda _: "x = :a and y != :b",
            lambda chance: _numbers(chance, "ab"),
            lambda chance: _numbers(chance, "b"),
        ),
        "2 ranges": Corner(
            lambda _: "x between :a and :b or y between :a and :b",
            _range,
            _range,
        ),
        "8 ranges": Corner(
            lambda _: f"x between :a and :b or {more}",
            lambda chance: {"a": _number(chance), "b": 0},
            lambda chance: {"a": _number(chance)},
        ),
        "2 keys": Corner(
            lambda _: "x = :a and z > 5 or y = :b",
            lambda chance: _numbers(chance, "ab"),
            lambda chance: _numbers(chance, "b"),
        ),
        "starts with": _pattern("s starts with :p", 3),
        "ends with": _pattern("s ends with :p and x > :k", 3),
        "contains": _pattern("s contains :p", 4),
        "not contains": _pattern("s not contains :p and x = :k", 2),
        "like of 3 runs of 3 letters": _like(3, 3),
        "like of 4 letters": _like(1, 4),
    }


def measure(
    kinds: dict[str, Corner] | None = None,
    subscriptions: int = SUBSCRIPTIONS,
    *,
    processor_time: bool = False,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[CornerCost]:
    """Measure all kinds, or some; by the clock, or by the processor time of the thread."""
    clock = time.thread_time if processor_time else time.perf_counter
    for name, corner in (corners() if kinds is None else kinds).items():
        progress(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TidegateWarning)
            yield _measure(name, corner, subscriptions, clock, seed)


def _measure(
    name: str, corner: Corner, subscriptions: int, clock: Callable[[], float], seed: int
) -> CornerCost:
    chance = random.Random(f"{seed} {name}")
    engine = Engine(clock=lambda: None)
    for number in range(subscriptions):
        engine.subscribe(corner.text(chance), id=f"s{number}", parameters=corner.parameters(chance))
    matched = 0
    for _ in range(20):  # compiles, and lays out
        engine.match(_event(chance))
        engine.update(f"s{chance.randrange(subscriptions)}", corner.update(chance))
    match_us: list[float] = []
    for _ in range(EVENTS):
        event = _event(chance)
        start = clock()
        matched += len(engine.match(event))
        match_us.append((clock() - start) * 1e6)
    update_us: list[float] = []
    both_us: list[float] = []
    for _ in range(UPDATES):
        id, values, event = (
            f"s{chance.randrange(subscriptions)}",
            corner.update(chance),
            _event(chance),
        )
        start = clock()
        engine.update(id, values)
        update_us.append((clock() - start) * 1e6)
        engine.match(event)
        both_us.append((clock() - start) * 1e6)
    p50_us, p99_us = np.percentile(match_us, [50, 99]).tolist()
    update_p50_us, update_p99_us = np.percentile(update_us, [50, 99]).tolist()
    return CornerCost(
        name,
        subscriptions,
        matched / EVENTS,
        p50_us,
        p99_us,
        update_p50_us,
        update_p99_us,
        float(np.median(both_us)),
    )


def _event(chance: random.Random) -> Values:
    numbers = {f"x{number}": _number(chance) for number in range(7)}
    return {**numbers, **_numbers(chance, "xyz"), "s": _word(chance, LETTERS)}
