"""Evolve modes: when an evolving filter is evaluated.

These are the three engines of "Self-Evolving Subscriptions", 4: lazy evaluation (LEES), periodic
evolution (PES) and cached lazy evaluation (CLEES). A subscriber chooses a mode for each
subscription. In files a mode is a text: `lazy`, `periodic 1 s`, `cached 500 ms`. What each mode
means is in docs/filters.md; `matching/evolving` implements them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from tidegate.errors import BadValueError
from tidegate.language.durations import format_duration, parse_duration

SECONDS_MIN = 1e-6  # timestamps have whole microseconds
SECONDS_MAX = 1e9  # 30 years; in microseconds it is far from the ends of 64 bits
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Lazy:
    """Evaluate the filter at each event: exact at every time."""

    def __str__(self) -> str:
        return "lazy"


@dataclass(frozen=True, slots=True)
class Periodic:
    """Evaluate the filter every ``interval`` seconds from the start of the subscription."""

    interval: float

    def __post_init__(self) -> None:
        _check_seconds("the interval of Periodic", self.interval)

    @property
    def interval_us(self) -> int:
        """The interval in whole microseconds, the resolution of timestamps."""
        return timedelta(seconds=self.interval) // _MICROSECOND

    def __str__(self) -> str:
        return f"periodic {format_duration(timedelta(seconds=self.interval))}"


@dataclass(frozen=True, slots=True)
class Cached:
    """Evaluate the filter at an event, and use the result for ``threshold`` seconds."""

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
    """Parse an evolve mode; raises BadValueError.

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
        f"{text!r} is not an evolve mode; write 'lazy', 'periodic 1 s' or 'cached 1 s'"
    )


def check_evolve(evolve: object) -> None:
    """Raise BadValueError unless ``evolve`` is an evolve mode or None."""
    if not isinstance(evolve, Evolve | None):
        raise BadValueError(
            f"evolve must be tidegate.Lazy(), Periodic(seconds) or Cached(seconds), not {evolve!r}"
        )


_LAZY = -(2**63)  # no threshold is that long, so the number is free


def evolve_to_int(evolve: Evolve | None) -> int:
    """An evolve mode as a 64-bit integer, for a column of a subscription table.

    `Periodic` is its interval in microseconds, `Cached` the negative of its threshold, None is 0.
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


def evolve_from_int(number: int) -> Evolve | None:
    """The evolve mode that ``evolve_to_int`` encoded as ``number``."""
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
