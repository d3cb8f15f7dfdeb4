"""Random arrival times: a Poisson process, or one that is switched on and off (bursts)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Bursts:
    """The mean lengths of active and silent periods, which are exponentially distributed."""

    on_s: float = 0.2
    off_s: float = 1.8


def arrivals(random: Random, rate_per_s: float, bursts: Bursts | None = None) -> Iterator[int]:
    """Arrival times in microseconds from 0 on, without end.

    ``rate_per_s`` is the mean over active and silent periods.

    >>> from itertools import islice
    >>> list(islice(arrivals(Random(1), 100.0), 3))
    [1443, 20244, 34674]
    """
    if rate_per_s <= 0:
        return
    if bursts is None:
        yield from _poisson(random, rate_per_s)
    else:
        yield from _on_and_off(random, rate_per_s, bursts)


def _poisson(random: Random, rate_per_s: float) -> Iterator[int]:
    time_s = 0.0
    while True:
        time_s += random.expovariate(rate_per_s)
        yield round(time_s * 1e6)


def _on_and_off(random: Random, rate_per_s: float, bursts: Bursts) -> Iterator[int]:
    """A Poisson process in active time, to which the silent periods so far are added."""
    active_rate_per_s = rate_per_s * (bursts.on_s + bursts.off_s) / bursts.on_s
    off_s = random.expovariate(1 / bursts.off_s)
    on_until_s = random.expovariate(1 / bursts.on_s)
    time_s = 0.0
    while True:
        time_s += random.expovariate(active_rate_per_s)
        while time_s > on_until_s:
            off_s += random.expovariate(1 / bursts.off_s)
            on_until_s += random.expovariate(1 / bursts.on_s)
        yield round((time_s + off_s) * 1e6)
