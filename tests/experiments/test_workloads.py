from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.experiments.numpy_baseline import NumpyBaseline
from tidegate.experiments.workloads import EVENT_TIME, EVENTS_PER_S, SINCE, SYMBOLS, WORKLOADS
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import parse_filter
from tidegate.matching.engine import Engine

pytestmark = pytest.mark.slow

ALL = sorted(WORKLOADS)
COUNT = 20_000

Pairs = set[tuple[int, str]]


def share(texts: list[str], part: str) -> float:
    return sum(part in text for text in texts) / len(texts)


def column(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()


def texts_of(name: str, count: int = COUNT) -> list[str]:
    return column(WORKLOADS[name].subscriptions(count), "filter")


def attributes_of(text: str) -> tuple[str, ...]:
    return Filter(parse_filter(text)).attributes


@pytest.mark.parametrize("name", ALL)
def test_a_seed_gives_the_same_values(name: str) -> None:
    workload = WORKLOADS[name]
    assert workload.subscriptions(100, 3).equals(workload.subscriptions(100, 3))
    assert not workload.subscriptions(100, 3).equals(workload.subscriptions(100, 4))
    assert workload.events(100, 3).equals(workload.events(100, 3))
    assert not workload.events(100, 3).equals(workload.events(100, 4))


@pytest.mark.parametrize("name", ALL)
def test_the_filters_name_what_the_events_have(name: str) -> None:
    known = set(WORKLOADS[name].events(1).column_names)
    texts = texts_of(name, 300)
    assert {each for text in texts for each in attributes_of(text)} <= known


@pytest.mark.parametrize("name", ["equalities", "market", "moving"])
def test_symbols_are_in_four_of_five_and_some_are_popular(name: str) -> None:
    assert share(texts_of(name), "symbol = ") == pytest.approx(0.8, abs=0.02)
    harmonic = sum(1 / rank for rank in range(1, 5001))
    symbols = column(WORKLOADS[name].events(COUNT), "symbol")
    for code in (0, 1, 9):
        expected = 1 / (code + 1) / harmonic
        assert symbols.count(SYMBOLS[code]) / COUNT == pytest.approx(expected, abs=0.01)
        asked = share(texts_of(name), f"symbol = '{SYMBOLS[code]}' ")
        assert asked == pytest.approx(0.8 * expected, abs=0.01)


def test_market_quotes() -> None:
    events = WORKLOADS["market"].events(COUNT)
    price, volume = events["price"].to_numpy(), events["volume"].to_numpy()
    assert price.min() >= 0
    assert price.max() <= 1000
    assert np.array_equal(price, np.round(price, 2))
    assert events.schema.field("volume").type == pa.int64()
    assert 0 <= volume.min() < 1000
    assert 999_000 < volume.max() <= 1_000_000
    assert len(set(column(events, "exchange"))) == 8
    for index in range(6):
        assert events[f"f{index}"].to_numpy().mean() == pytest.approx(0.5, abs=0.02)


def test_market_matches_as_often_as_was_said() -> None:
    """About 105 matches an event at 100,000 subscriptions."""
    baseline = NumpyBaseline(COUNT, WORKLOADS["market"].conditions(COUNT))
    baseline_events = list(baseline.baseline_events(WORKLOADS["market"].events(2000)))
    matches = sum(len(baseline.match(point)) for point in baseline_events) / len(baseline_events)
    assert matches * 100_000 / COUNT == pytest.approx(105, rel=0.1)


@pytest.mark.parametrize(("name", "letter"), [("market", "f"), ("equalities", "a")])
def test_one_or_two_of_several_attributes(name: str, letter: str) -> None:
    texts = texts_of(name, 1000)
    counts = [sum(each.startswith(letter) for each in attributes_of(text)) for text in texts]
    assert set(counts) == {1, 2}
    assert counts.count(1) / len(counts) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("name", "attribute", "width"),
    [("market", "price", 50), ("market", "f3", 0.3), ("ranges", "x7", 0.3)],
)
def test_widths_of_ranges(name: str, attribute: str, width: float) -> None:
    conditions = WORKLOADS[name].conditions(COUNT)
    (condition,) = [each for each in conditions if each.attribute == attribute]
    assert condition.high - condition.low == pytest.approx(width)
    assert condition.low.min() >= 0
    assert condition.high.max() <= (1000 if attribute == "price" else 1)


def test_ranges_has_five_of_ten() -> None:
    texts = texts_of("ranges", 300)
    assert {len(attributes_of(text)) for text in texts} == {5}
    assert len(WORKLOADS["ranges"].events(1).column_names) == 10


def test_equalities_always_has_an_exchange() -> None:
    assert share(texts_of("equalities"), "exchange = ") == 1
    events = WORKLOADS["equalities"].events(COUNT)
    for index in range(8):
        assert set(column(events, f"a{index}")) == set(range(100))


def test_wide_has_thousands_of_shapes_and_half_equalities() -> None:
    texts = texts_of("wide")
    assert len({shape for shape, _ in BulkParser().read_many(texts[:3000])}) > 2000
    sizes = [len(attributes_of(text)) for text in texts[:1000]]
    assert set(sizes) == {3, 4, 5}
    conditions = WORKLOADS["wide"].conditions(COUNT)
    equal = sum(int((each.low == each.high).sum()) for each in conditions)
    assert equal / sum(len(each.rows) for each in conditions) == pytest.approx(0.5, abs=0.02)
    events = WORKLOADS["wide"].events(COUNT)
    assert len(events.column_names) == 100
    assert set(column(events, "w0")) == set(range(50))
    assert 0 <= min(column(events, "w1")) < max(column(events, "w1")) <= 1


def test_moving_moves_half_of_the_prices_and_has_a_parameter() -> None:
    texts = texts_of("moving")
    assert share(texts, "* t and") == pytest.approx(0.25, abs=0.02)
    assert share(texts, "* sin(t / ") == pytest.approx(0.25, abs=0.02)
    assert share(texts, "volume > :least") == 1
    subscriptions = WORKLOADS["moving"].subscriptions(COUNT)
    least = [params["least"] for params in column(subscriptions, "params")]
    assert 0 <= min(least) < max(least) <= 1_000_000
    assert set(column(subscriptions, "since")) == {SINCE}
    times = column(WORKLOADS["moving"].events(1000), EVENT_TIME)
    assert times == sorted(times)
    assert times[0] == SINCE
    assert times[-1] - times[0] < timedelta(seconds=len(times) / EVENTS_PER_S)


@pytest.mark.parametrize("matcher", ["columnar", "naive"])
@pytest.mark.parametrize("name", ALL)
def test_engines_find_what_the_baseline_finds(name: str, matcher: str) -> None:
    workload = WORKLOADS[name]
    count = 300
    engine = Engine(matcher=matcher)
    ids = engine.subscribe_batch(workload.subscriptions(count))
    baseline = NumpyBaseline(count, workload.conditions(count))
    events = workload.events(60)

    def by_engine() -> Pairs:
        event_time = EVENT_TIME if workload.is_timed else None
        pairs = engine.match_batch(events, event_time=event_time)
        columns = (column(pairs, each) for each in ("event", "subscription"))
        return set(zip(*columns, strict=True))

    def by_baseline() -> Pairs:
        return {
            (index, ids[row])
            for index, point in enumerate(baseline.baseline_events(events))
            for row in baseline.match(point).tolist()
        }

    before = by_engine()
    assert before == by_baseline()
    assert before
    if workload.is_timed:
        rows, least = workload.updates(500, np.arange(count), np.random.default_rng(1))
        for row, value in zip(rows.tolist(), least.tolist(), strict=True):
            engine.update(ids[row], least=value)
        baseline.update(rows, least)
        after = by_engine()
        assert after == by_baseline()
        assert after != before


def test_the_baseline_compares_rare_conditions_for_just_those_that_have_them() -> None:
    """With more subscriptions, every condition of `wide` is rare, and none of `market`."""
    for name in ("wide", "market"):
        conditions = WORKLOADS[name].conditions(2000)
        baseline = NumpyBaseline(2000, conditions)
        for point in baseline.baseline_events(WORKLOADS[name].events(20)):
            expected = np.ones(2000, np.bool_)
            for each in conditions:
                value = point.values[each.attribute]
                expected[each.rows] &= (each.low <= value) & (value <= each.high)
            assert np.array_equal(baseline.match(point), np.flatnonzero(expected))
