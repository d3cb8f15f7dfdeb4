"""The market of the demo: quotes, subscriptions, and when parameters change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidegate.experiments.workloads import WORKLOADS
from tidegate.language.events import Event

MINUTES = 3
STATIC, PARAMETRIC, EVOLVING = "static", "parametric", "evolving"
LIMITS = (200, 100, 25)
"""The value of the parameter in each minute."""
_COUNTS = {STATIC: 2_000, PARAMETRIC: 200, EVOLVING: 100}

FilterWithValues = tuple[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Market:
    """Three minutes of quotes; they pass in less, because an event has the time that it is given.

    >>> [len(group) for group in Market(300, seed=7).groups().values()]
    [2000, 200, 100]
    """

    events: int
    seed: int

    def groups(self) -> dict[str, list[FilterWithValues]]:
        """The subscriptions: filters and values of parameters, by group."""
        static = WORKLOADS["market"].subscriptions(_COUNTS[STATIC]).column("filter").to_pylist()
        return {
            STATIC: [(str(text), {}) for text in static],
            PARAMETRIC: [
                (f"symbol = 'S{number % 50}' and price < :limit", {"limit": LIMITS[0] + number})
                for number in range(_COUNTS[PARAMETRIC])
            ],
            EVOLVING: [_evolving(number) for number in range(_COUNTS[EVOLVING])],
        }

    def limit(self, number: int, minute: int) -> int:
        """The value of a parametric subscription in a minute."""
        return LIMITS[minute] + number

    def minute(self, minute: int, start: datetime) -> Iterator[Event]:
        """The quotes of a minute, numbered over all minutes by the attribute ``n``."""
        first, end = (self.events * each // MINUTES for each in (minute, minute + 1))
        begin = start + timedelta(minutes=minute)
        rows = WORKLOADS["market"].events(end - first, seed=self.seed * 100 + minute).to_pylist()
        for index, row in enumerate(rows):
            time = begin + timedelta(minutes=1) * index / len(rows)
            yield Event.of({"n": first + index, **row}, time)


def _evolving(number: int) -> FilterWithValues:
    """Bounds that rise with the time, or that come and go."""
    symbol, low = f"symbol = 'S{number % 10}'", number // 10 * 40
    if number % 2:
        return f"{symbol} and price > 500 + 400 * sin(t / {10 + number})", {}
    return f"{symbol} and price between {low} + 3 * t and {low + 50} + 3 * t", {}
