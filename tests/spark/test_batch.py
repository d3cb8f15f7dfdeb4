"""Matching DataFrames: the same answers as the engine."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate import Engine, EventError, SubscriptionError
from tidegate.experiments.workloads import WORKLOADS
from tidegate.spark import match

pytestmark = pytest.mark.xdist_group("spark")


def test_gives_what_the_engine_gives(spark: SparkSession) -> None:
    workload = WORKLOADS["market"]
    subscriptions, events = workload.subscriptions(2000), workload.events(3000)
    indexed = events.append_column("event", pa.array(range(3000)))
    found = match(spark.createDataFrame(indexed), subscriptions, key="event").toArrow()
    engine = Engine(clock=lambda: None)
    engine.subscribe_batch(subscriptions)
    wanted = engine.match_batch(events)
    assert _pairs(found) == _pairs(wanted)
    assert found.column_names == ["event", "subscription", "subscriber", "version"]


def _pairs(table: pa.Table) -> list[tuple[object, object]]:
    events, ids = table.column("event").to_pylist(), table.column("subscription").to_pylist()
    return sorted(zip(events, ids, strict=True))


def test_names_what_is_wrong(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, [2])], "a int, b array<int>")
    subscriptions = pa.table({"id": ["s"], "filter": ["a > 0"]})
    with pytest.raises(EventError, match="column 'b' of the events is of array<int>"):
        match(events, subscriptions)
    with pytest.raises(SubscriptionError, match="no column 'filter'"):
        match(events.select("a"), pa.table({"id": ["s"]}))
