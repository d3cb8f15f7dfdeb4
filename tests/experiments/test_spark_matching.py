"""The joins that Tidegate is compared with find the same matches."""

from __future__ import annotations

from itertools import count
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tidegate import Engine
from tidegate.experiments import spark_matching
from tidegate.experiments.spark_matching import (
    KEY,
    NATURAL_JOIN,
    NO_BOUND,
    SPLIT_JOIN,
    WORKLOAD,
    MatchMethod,
    bounds_table,
    measure_method,
)
from tidegate.experiments.workloads import WORKLOADS

COUNT = 300


@pytest.mark.parametrize("query", [NATURAL_JOIN, SPLIT_JOIN], ids=["natural", "split"])
def test_each_query_finds_what_the_engine_finds(query: str) -> None:
    workload = WORKLOADS[WORKLOAD]
    events = workload.events(200)
    connection = duckdb.connect()
    connection.register("events", events.append_column(KEY, pa.array(np.arange(200))))
    connection.register("subscriptions", bounds_table(COUNT))
    found = connection.execute(query).fetchall()
    engine = Engine(clock=lambda: None)
    engine.subscribe_batch(workload.subscriptions(COUNT))
    wanted = engine.match_batch(events)
    pairs = zip(wanted["event"].to_pylist(), wanted["subscription"].to_pylist(), strict=True)
    assert sorted(found) == sorted(pairs)
    assert len(found) > 20


def test_bounds_are_never_null() -> None:
    table = bounds_table(COUNT)
    assert table.num_rows == COUNT
    nulls = {name for name in table.column_names if table.column(name).null_count}
    assert nulls == {"symbol"}
    lows: list[Any] = table.column("price_low").to_pylist()
    assert min(lows) >= -NO_BOUND


def test_a_round_has_as_many_events_as_take_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_matching, "EVENTS_MAX", 5000)  # which is never long enough here
    monkeypatch.setattr(spark_matching, "perf_counter", count(0, 0.25).__next__)
    asked: list[int] = []

    def run(events: int) -> int:
        asked.append(events)
        return 2 * events

    speed = measure_method(MatchMethod("ours", run, 10), 50, rounds=3)
    assert asked == [10, 10, 100, 1000, 5000, 5000, 5000, 5000]
    assert (speed.method, speed.subscriptions, speed.events, speed.matches) == (
        "ours",
        50,
        5000,
        10_000,
    )
    assert speed.slowest_per_s == speed.median_per_s == speed.fastest_per_s == 20_000
