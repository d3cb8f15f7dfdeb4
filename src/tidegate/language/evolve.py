"""When a filter that moves is evaluated: at each event, every so often, or now and then.

These are the three engines of "Self-Evolving Subscriptions", 4: lazy evaluation (LEES), periodic
evolution (PES) and cached lazy evaluation (CLEES). A subscriber chooses one for each subscription.
In files they are texts: `lazy`, `periodic 1 s`, `cached 500 ms`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from tidegate.errors import BadValueError
from tidegate.language.durations import format_duration, parse_duration

SECONDS_MIN = 1e-6
SECONDS_MAX = 1e9
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Lazy:
    """Evaluate the filter at each event: exact at every moment."""

    def __str__(self) -> str:
        return "lazy"


@dataclass(frozen=True, slots=True)
class Periodic:
    """Evaluate the filter every ``interval`` seconds since the subscription began."""

    interval: float

    def __post_init__(self) -> None:
        _check_seconds("the interval of Periodic", self.interval)

    @property
    def interval_us(self) -> int:
        """The interval in microseconds, which is how finely times are told."""
        return timedelta(seconds=self.interval) // _MICROSECOND

    def __str__(self) -> str:
        return f"periodic {format_duration(timedelta(seconds=self.interval))}"


@dataclass(frozen=True, slots=True)
class Cached:
    """Evaluate the filter at an event, and go by that for ``threshold`` seconds."""

    threshold: float

    def __post_init__(self) -> None:
        _check_seconds("the threshold of Cached", self.threshold)

    @property
    def threshold_us(self) -> int:
        """The threshold in microseconds."""
        return timedelta(seconds=self.threshold) // _MICROSECOND

    def __str__(self) -> str:
        return f"cached {format_duration(timedelta(seconds=self.threshold))}"


Evolve = Lazy | Periodic | Cached


@lru_cache(maxsize=1_024)
def parse_evolve(text: str) -> Evolve:
    """Read when a filter is evaluated; raises BadValueError.

    >>> parse_evolve("periodic 500 ms")
    Periodic(interval=0.5)
    """
    word, _, duration = text.strip().partition(" ")
    match word:
        case "lazy" if not duration:
            return Lazy()
        case "periodic" if duration:
            return Periodic(parse_duration(duration).total_seconds())
        case "cached" if duration:
            return Cached(parse_duration(duration).total_seconds())
    raise BadValueError(
        f"{text!r} does not say when a filter evolves; write 'lazy', 'periodic 1 s' or 'cached 1 s'"
    )


def check_evolve(evolve: object) -> None:
    """Refuse what does not say when a filter is evaluated."""
    if not isinstance(evolve, Evolve | None):
        raise BadValueError(
            f"evolve must be tidegate.Lazy(), Periodic(seconds) or Cached(seconds), not {evolve!r}"
        )


_LAZY = -(2**63)


def number_of_evolve(evolve: Evolve | None) -> int:
    """When a filter is evaluated as a number of 64 bits, for columns of them.

    An interval is its microseconds, a threshold minus its microseconds; nothing said is 0.
    """
    match evolve:
        case None:
            return 0
        case Lazy():
            return _LAZY
        case Periodic():
            return evolve.interval_us
        case Cached():
            return -evolve.threshold_us


def evolve_of_number(number: int) -> Evolve | None:
    """What ``number_of_evolve`` gave a number for."""
    if number == _LAZY:
        return Lazy()
    if number == 0:
        return None
    return Periodic(number / 1e6) if number > 0 else Cached(-number / 1e6)


def _check_seconds(what: str, seconds: object) -> None:
    number = seconds if isinstance(seconds, int | float) and seconds is not True else math.nan
    if not SECONDS_MIN <= number <= SECONDS_MAX:
        raise BadValueError(
            f"{what} must be from {SECONDS_MIN:g} to {SECONDS_MAX:g} seconds, not {seconds!r}"
        )
