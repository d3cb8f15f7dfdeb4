"""The workloads of the matching benchmarks: subscriptions, and events to match them with.

- `market`: quotes of 5,000 symbols, some of them much more popular than others. Four in five
  subscriptions name a symbol; all have a range of prices, a least volume and one or two ranges.
- `ranges`: no equality at all, five wide ranges on ten attributes.
- `equalities`: a symbol, an exchange, and one or two of eight attributes that have few values.
- `wide`: 100 attributes, of which a subscription names three to five: thousands of shapes.
- `moving`: `market`, but half of the price ranges are functions of time, and the least volume is a
  parameter that is updated all the time.

Two more compare evolve modes: `evolving` is `market` with a function of time in every price range,
`static` has the same ranges frozen after some seconds. The bounds of these ranges are parameters.

The same seed gives the same values on every machine. Subscriptions, events and updates are drawn by
generators of their own ([seed, 0], [seed, 1], [seed, 2]), so that the number of one does not change
the values of the others.

A subscription is drawn as attribute ranges, a low and a high bound for each attribute it names.
Both its text and the columns of the brute-force baseline are made from these, so that the baseline
can check the answers of an engine without parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
EventColumn = Any
"""An Arrow array."""

SYMBOLS = [f"S{index}" for index in range(5000)]
EXCHANGES = ["AMS", "FRA", "HKG", "LSE", "NSE", "NYSE", "SIX", "TSE"]
WIDE_ATTRIBUTES = 100

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
"""The start of all subscriptions, in workloads whose events have times."""
EVENTS_PER_S = 10_000
"""Events per second of event time, from `SINCE` on."""
EVENT_TIME = "time"
"""The column of event times."""
PARAMETER = "least"
"""The parameter of the subscriptions of `moving`: `volume > :least`."""
WINDOW = ("low", "high")
"""The parameters of `evolving` and `static`: `price >= :low + t and price <= :high + t`."""
FROZEN_AT_S = 8.0
"""The `t` at which `static` has the bounds of `evolving`."""


@dataclass(frozen=True, slots=True)
class Motion:
    """How bounds move: by ``rate * t + amplitude * sin(t / period)``."""

    rate: F64
    amplitude: F64
    period_s: F64

    def shift(self, t: float) -> F64:
        """How far the bounds have moved after ``t`` seconds."""
        moved: F64 = self.rate * t + self.amplitude * np.sin(t / self.period_s)
        return moved


@dataclass(frozen=True, slots=True)
class AttributeRange:
    """A constraint of some subscriptions: the attribute is between bounds, both included.

    ``rows`` are the numbers of those subscriptions, ascending; ``texts`` returns the constraint of
    each in the filter language. The bounds of strings are positions in ``names``. ``parameter`` is
    the name of the parameter in the text, whose value is one less than the low bound; with
    ``is_window`` both bounds are parameters, `WINDOW`.
    """

    attribute: str
    rows: I64
    low: F64
    high: F64
    texts: Callable[[], list[str]]
    names: Sequence[str] = ()
    motion: Motion | None = None
    parameter: str | None = None
    is_window: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """Generates subscriptions and events from their number and a seed.

    >>> subscriptions = WORKLOADS["equalities"].subscriptions(1000)
    >>> print(subscriptions["filter"][1])
    symbol = 'S1668' and exchange = 'NSE' and a7 = 94
    """

    name: str
    draw_conditions: Callable[[np.random.Generator, int], list[AttributeRange]]
    draw_events: Callable[[np.random.Generator, int], dict[str, EventColumn]]
    is_timed: bool = False

    @property
    def is_updated(self) -> bool:
        """Whether subscriptions have a parameter to update."""
        return self.name == "moving"

    def conditions(self, count: int, seed: int = 1) -> list[AttributeRange]:
        """The ranges of all subscriptions, by attribute."""
        return self.draw_conditions(np.random.default_rng([seed, 0]), count)

    def subscriptions(self, count: int, seed: int = 1) -> pa.Table:
        """A table of the subscriptions: `id`, `filter`, and in some workloads `params`, `since`."""
        conditions = self.conditions(count, seed)
        parts: list[list[str]] = [[] for _ in range(count)]
        for condition in conditions:
            for row, text in zip(condition.rows.tolist(), condition.texts(), strict=True):
                parts[row].append(text)
        columns: dict[str, EventColumn] = {
            "id": pa.array(subscription_ids(count)),
            "filter": pa.array([" and ".join(each) for each in parts]),
        }
        for condition in conditions:
            if condition.parameter is not None:
                values = pa.array(condition.low.astype(np.int64) - 1)
                columns["params"] = pa.StructArray.from_arrays([values], [condition.parameter])
        windows = [each for each in conditions if each.is_window]
        if windows:
            columns["params"] = _window_params(windows, count)
        if self.is_timed:
            columns["since"] = pa.array([SINCE] * count, pa.timestamp("us", "UTC"))
        return pa.table(columns)

    def events(self, count: int, seed: int = 1, first: int = 0) -> pa.Table:
        """A table of events, a column for each attribute; times ascend.

        ``first`` is the number of events before these; it only shifts their times.
        """
        columns = self.draw_events(np.random.default_rng([seed, 1]), count)
        if self.is_timed:
            start = int(SINCE.timestamp()) * 1_000_000
            time_us = start + np.arange(first, first + count) * 1_000_000 // EVENTS_PER_S
            columns[EVENT_TIME] = pa.array(time_us).cast(pa.timestamp("us", "UTC"))
        return pa.table(columns)

    def updates(self, count: int, rows: I64, rng: np.random.Generator) -> tuple[I64, I64]:
        """Random updates of `moving`: the updated ``rows``, and the new values of `PARAMETER`."""
        return rng.choice(rows, count), _least_volumes(rng, count)

    def windows(self, count: int, rng: np.random.Generator) -> list[dict[str, float]]:
        """Random updates of `evolving` and `static`: the `WINDOW` parameters of price ranges."""
        low, high = _range(rng, 1000, 50, 100, count)
        bounds = zip(low.tolist(), high.tolist(), strict=True)
        return [dict(zip(WINDOW, each, strict=True)) for each in bounds]


def subscription_ids(count: int) -> list[str]:
    """The ids of the subscriptions, in order."""
    return [f"s{row}" for row in range(count)]


# -- conditions and their texts ---------------------------------------------------------------


def _window_params(windows: Sequence[AttributeRange], count: int) -> EventColumn:
    low, high = np.empty(count), np.empty(count)
    for each in windows:
        low[each.rows], high[each.rows] = each.low, each.high
    return pa.StructArray.from_arrays([pa.array(low), pa.array(high)], list(WINDOW))


def _is_name(attribute: str, rows: I64, codes: I64, names: Sequence[str]) -> AttributeRange:
    def texts() -> list[str]:
        return [f"{attribute} = '{names[code]}'" for code in codes.tolist()]

    bound = codes.astype(np.float64)
    return AttributeRange(attribute, rows, bound, bound, texts, names)


def _is_number(attribute: str, rows: I64, numbers: I64) -> AttributeRange:
    def texts() -> list[str]:
        return [f"{attribute} = {number}" for number in numbers.tolist()]

    bound = numbers.astype(np.float64)
    return AttributeRange(attribute, rows, bound, bound, texts)


def _between(
    attribute: str, rows: I64, low: F64, high: F64, *, is_window: bool = False
) -> AttributeRange:
    def texts() -> list[str]:
        bounds = _bounds(low, high, is_window)
        return [f"{attribute} >= {lo} and {attribute} <= {hi}" for lo, hi in bounds]

    return AttributeRange(attribute, rows, low, high, texts, is_window=is_window)


def _bounds(low: F64, high: F64, is_window: bool) -> Iterable[tuple[object, object]]:
    """The bounds of ranges as they are written in a filter."""
    if is_window:
        return [(f":{WINDOW[0]}", f":{WINDOW[1]}")] * len(low)
    return zip(low.tolist(), high.tolist(), strict=True)


def _drifting(
    attribute: str, rows: I64, low: F64, high: F64, rate: F64, *, is_window: bool = False
) -> AttributeRange:
    """A range that moves at a steady rate."""

    def texts() -> list[str]:
        bounds = _bounds(low, high, is_window)
        return [
            f"{attribute} >= {lo} + {by} * t and {attribute} <= {hi} + {by} * t"
            for (lo, hi), by in zip(bounds, rate.tolist(), strict=True)
        ]

    motion = Motion(rate, np.zeros(len(rows)), np.ones(len(rows)))
    return AttributeRange(attribute, rows, low, high, texts, motion=motion, is_window=is_window)


def _swinging(
    attribute: str,
    rows: I64,
    low: F64,
    high: F64,
    amplitude: F64,
    period_s: F64,
    *,
    is_window: bool = False,
) -> AttributeRange:
    """A range that swings like a sine."""

    def texts() -> list[str]:
        swings = zip(amplitude.tolist(), period_s.tolist(), strict=True)
        shifts = [f"{by} * sin(t / {period})" for by, period in swings]
        return [
            f"{attribute} >= {lo} + {shift} and {attribute} <= {hi} + {shift}"
            for (lo, hi), shift in zip(_bounds(low, high, is_window), shifts, strict=True)
        ]

    motion = Motion(np.zeros(len(rows)), amplitude, period_s)
    return AttributeRange(attribute, rows, low, high, texts, motion=motion, is_window=is_window)


def _above(attribute: str, rows: I64, least: I64, parameter: str | None = None) -> AttributeRange:
    """`attribute > least` over integers, as the closed range from ``least + 1``."""

    def texts() -> list[str]:
        if parameter is not None:
            return [f"{attribute} > :{parameter}"] * len(rows)
        return [f"{attribute} > {bound}" for bound in least.tolist()]

    low = (least + 1).astype(np.float64)
    return AttributeRange(
        attribute, rows, low, np.full(len(rows), np.inf), texts, parameter=parameter
    )


# -- values -----------------------------------------------------------------------------------


def _zipf(rng: np.random.Generator, values: int, count: int) -> I64:
    """Numbers below ``values``; the k-th has a probability proportional to 1 / k (Zipf)."""
    shares = np.cumsum(1.0 / np.arange(1, values + 1))
    drawn: I64 = np.searchsorted(shares[:-1], rng.random(count) * shares[-1])
    return drawn


def _decimals(rng: np.random.Generator, low: float, high: float, scale: int, count: int) -> F64:
    """Numbers with few decimals: multiples of ``1 / scale``, as prices are."""
    drawn: F64 = rng.integers(round(low * scale), round(high * scale) + 1, count) / scale
    return drawn


def _range(
    rng: np.random.Generator, domain: float, width: float, scale: int, count: int
) -> tuple[F64, F64]:
    """The bounds of ranges of one width within 0..domain, with few decimals.

    Both are computed from integers, so that they are the floats that the parser makes of the text.
    """
    low = rng.integers(0, round((domain - width) * scale) + 1, count)
    return low / scale, (low + round(width * scale)) / scale


def _least_volumes(rng: np.random.Generator, count: int) -> I64:
    return rng.integers(0, 1_000_001, count)


def _names(names: Sequence[str], codes: I64) -> EventColumn:
    return pa.array(names).take(codes)


def _symbol_in_most(rng: np.random.Generator, count: int) -> AttributeRange:
    """A symbol in four of five subscriptions."""
    rows = np.flatnonzero(rng.random(count) < 0.8)
    return _is_name("symbol", rows, _zipf(rng, len(SYMBOLS), len(rows)), SYMBOLS)


def _one_or_two_of(rng: np.random.Generator, values: int, count: int) -> list[I64]:
    """For each value the rows that draw it: each row draws one value, or two that differ."""
    first = rng.integers(0, values, count)
    second = (first + rng.integers(1, values, count)) % values
    second[rng.random(count) < 0.5] = -1
    return [np.flatnonzero((first == value) | (second == value)) for value in range(values)]


# -- market and moving ------------------------------------------------------------------------


def _draw_market(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    all_rows = np.arange(count)
    symbol = _symbol_in_most(rng, count)
    price = _between("price", all_rows, *_range(rng, 1000, 50, 100, count))
    volume = _above("volume", all_rows, _least_volumes(rng, count))
    return [symbol, price, volume, *_draw_factors(rng, count)]


def _draw_moving(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    symbol = _symbol_in_most(rng, count)
    low, high = _range(rng, 1000, 50, 100, count)
    motion_kind = rng.choice(3, count, p=[0.5, 0.25, 0.25])
    static, drifts, swings = (np.flatnonzero(motion_kind == each) for each in range(3))
    rate = _decimals(rng, -5, 5, 100, len(drifts))
    amplitude = _decimals(rng, 10, 100, 10, len(swings))
    period_s = _decimals(rng, 0.5, 10, 10, len(swings))
    return [
        symbol,
        _between("price", static, low[static], high[static]),
        _drifting("price", drifts, low[drifts], high[drifts], rate),
        _swinging("price", swings, low[swings], high[swings], amplitude, period_s),
        _above("volume", np.arange(count), _least_volumes(rng, count), PARAMETER),
        *_draw_factors(rng, count),
    ]


def _draw_evolving(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    symbol = _symbol_in_most(rng, count)
    low, high = _range(rng, 1000, 50, 100, count)
    drift = rng.random(count) < 0.5
    drifts, swings = np.flatnonzero(drift), np.flatnonzero(~drift)
    # Slow, so that the ranges stay among the prices of events while event time advances.
    rate = _decimals(rng, -1, 1, 100, len(drifts))
    amplitude = _decimals(rng, 10, 100, 10, len(swings))
    period_s = _decimals(rng, 5, 60, 10, len(swings))
    return [
        symbol,
        _drifting("price", drifts, low[drifts], high[drifts], rate, is_window=True),
        _swinging("price", swings, low[swings], high[swings], amplitude, period_s, is_window=True),
        _above("volume", np.arange(count), _least_volumes(rng, count)),
        *_draw_factors(rng, count),
    ]


def _draw_static(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    return [_frozen(each) for each in _draw_evolving(rng, count)]


def _frozen(condition: AttributeRange) -> AttributeRange:
    """The range without its motion, with the bounds that it has at `FROZEN_AT_S`."""
    if condition.motion is None:
        return condition
    shift = condition.motion.shift(FROZEN_AT_S)
    low, high = condition.low + shift, condition.high + shift
    return _between(condition.attribute, condition.rows, low, high, is_window=True)


def _draw_factors(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    return [
        _between(f"f{index}", rows, *_range(rng, 1, 0.3, 10_000, len(rows)))
        for index, rows in enumerate(_one_or_two_of(rng, 6, count))
    ]


def _draw_quotes(rng: np.random.Generator, count: int) -> dict[str, EventColumn]:
    return {
        "symbol": _names(SYMBOLS, _zipf(rng, len(SYMBOLS), count)),
        "exchange": _names(EXCHANGES, rng.integers(0, len(EXCHANGES), count)),
        "price": pa.array(_decimals(rng, 0, 1000, 100, count)),
        "volume": pa.array(rng.integers(0, 1_000_001, count)),
        **{f"f{index}": pa.array(rng.random(count)) for index in range(6)},
    }


# -- ranges -----------------------------------------------------------------------------------


def _draw_ranges(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    chosen = np.argsort(rng.random((count, 10)), axis=1)[:, :5]
    conditions = []
    for index in range(10):
        rows = np.flatnonzero((chosen == index).any(axis=1))
        conditions.append(_between(f"x{index}", rows, *_range(rng, 1, 0.3, 10_000, len(rows))))
    return conditions


def _draw_points(rng: np.random.Generator, count: int) -> dict[str, EventColumn]:
    return {f"x{index}": pa.array(rng.random(count)) for index in range(10)}


# -- equalities -------------------------------------------------------------------------------


def _draw_equalities(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    exchanges = rng.integers(0, len(EXCHANGES), count)
    return [
        _symbol_in_most(rng, count),
        _is_name("exchange", np.arange(count), exchanges, EXCHANGES),
        *(
            _is_number(f"a{index}", rows, rng.integers(0, 100, len(rows)))
            for index, rows in enumerate(_one_or_two_of(rng, 8, count))
        ),
    ]


def _draw_labels(rng: np.random.Generator, count: int) -> dict[str, EventColumn]:
    return {
        "symbol": _names(SYMBOLS, _zipf(rng, len(SYMBOLS), count)),
        "exchange": _names(EXCHANGES, rng.integers(0, len(EXCHANGES), count)),
        **{f"a{index}": pa.array(rng.integers(0, 100, count)) for index in range(8)},
    }


# -- wide -------------------------------------------------------------------------------------


def _draw_wide(rng: np.random.Generator, count: int) -> list[AttributeRange]:
    """Even attributes have equalities with numbers 0..49, odd ones ranges within 0..1."""
    # Five distinct attributes for each row, of which the fourth and fifth may be dropped (-1).
    chosen = _distinct(rng, WIDE_ATTRIBUTES, 5, count)
    chosen[:, 3:][np.arange(3, 5) >= rng.integers(3, 6, count)[:, None]] = -1
    conditions = []
    for index in range(WIDE_ATTRIBUTES):
        rows = np.flatnonzero((chosen == index).any(axis=1))
        if index % 2 == 0:
            numbers = rng.integers(0, 50, len(rows))
            conditions.append(_is_number(f"w{index}", rows, numbers))
        else:
            bounds = _range(rng, 1, 0.3, 10_000, len(rows))
            conditions.append(_between(f"w{index}", rows, *bounds))
    return conditions


def _distinct(rng: np.random.Generator, values: int, size: int, count: int) -> I64:
    """In each row ``size`` distinct numbers below ``values``; rows with duplicates are redrawn."""
    drawn = rng.integers(0, values, (count, size))
    while True:
        in_order = np.sort(drawn, axis=1)
        duplicates = np.flatnonzero((in_order[:, 1:] == in_order[:, :-1]).any(axis=1))
        if not len(duplicates):
            return drawn
        drawn[duplicates] = rng.integers(0, values, (len(duplicates), size))


def _draw_wide_events(rng: np.random.Generator, count: int) -> dict[str, EventColumn]:
    return {
        f"w{index}": pa.array(rng.random(count) if index % 2 else rng.integers(0, 50, count))
        for index in range(WIDE_ATTRIBUTES)
    }


WORKLOADS = {
    each.name: each
    for each in (
        Workload("market", _draw_market, _draw_quotes),
        Workload("ranges", _draw_ranges, _draw_points),
        Workload("equalities", _draw_equalities, _draw_labels),
        Workload("wide", _draw_wide, _draw_wide_events),
        Workload("moving", _draw_moving, _draw_quotes, is_timed=True),
    )
}
STATIC = Workload("static", _draw_static, _draw_quotes, is_timed=True)
EVOLVING = Workload("evolving", _draw_evolving, _draw_quotes, is_timed=True)
