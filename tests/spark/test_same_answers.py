"""Tables, streams in any split, and the embedded engine give the same deliveries."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from support.replayed_engine import Pairs, embedded, without_versions
from support.spark_streams import (
    EVENT_SCHEMA,
    FILTERS,
    Collected,
    Folders,
    Row,
    as_of,
    drawn_changes,
    drawn_events,
    event_table,
    net,
    splits,
)
from tidegate import Engine, TidegateError
from tidegate.spark import match

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_as_of_the_time_of_events(spark: SparkSession, tmp_path: Path, parts: int) -> None:
    rng = random.Random(parts)
    events, changes = drawn_events(rng, 300), drawn_changes(rng, 120)
    folders, to = Folders(tmp_path), Collected()
    pairs = zip(splits(rng, events, parts), splits(rng, changes, parts), strict=True)
    for number, (some_events, some_changes) in enumerate(pairs):
        folders.add("events", number, some_events)
        folders.add("changes", number, some_changes)
    reports = folders.run(spark, to, files=1, lateness=timedelta(hours=1))
    table = as_of(spark, events, changes)
    assert net(to.rows) == table
    assert as_of(spark, events, changes, partition_by="b") == table
    assert without_versions(table) == embedded(events, changes)
    assert len(reports) == parts
    assert sum(each.events for each in reports) == 300
    assert not any(each.late for each in reports)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 12))]
)
def test_restarts_with_anything_changed(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Each run has another lateness, other partitions and other micro-batches than the one before.

    The lateness is always enough for the events and changes that come.
    """
    rng, parts = random.Random(seed), 4
    events, changes = drawn_events(rng, 200), drawn_changes(rng, 80)
    folders, to = Folders(tmp_path), Collected()
    pairs = zip(splits(rng, events, parts), splits(rng, changes, parts), strict=True)
    settings = {
        "spark.sql.files.maxPartitionBytes": ["200", "2000", "128m"],
        "spark.sql.execution.arrow.maxRecordsPerBatch": ["3", "50", "10000"],
    }
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for number, (some_events, some_changes) in enumerate(pairs):
            for index, rows in enumerate(splits(rng, some_events, 2)):
                folders.add("events", 10 * number + index, rows)
            folders.add("changes", 10 * number, some_changes)
            for name, values in settings.items():
                spark.conf.set(name, rng.choice(values))
            lateness = timedelta(hours=rng.choice([1, 2, 30]))
            reports = folders.run(spark, to, files=rng.choice([1, 1_000]), lateness=lateness)
            assert not any(each.late for each in reports)
    finally:
        for name, value in before.items():
            assert value is not None
            spark.conf.set(name, value)
    table = as_of(spark, events, changes)
    assert net(to.rows) == table
    assert without_versions(table) == embedded(events, changes)


def test_subscriptions_that_stay(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(5)
    events = drawn_events(rng, 200)
    texts = [each for each in FILTERS if "t /" not in each and "+ t" not in each]
    params = [json.dumps({n: 4 for n in "pq" if f":{n}" in text}) for text in texts]
    table = pa.table({"id": texts, "filter": texts, "params": params})
    engine = Engine(clock=lambda: None)
    engine.subscribe_batch(table)
    wanted = Counter(
        (row["number"], id)
        for row in events
        for id in engine.match({n: row[n] for n in ("a", "b") if row[n] is not None})
    )
    assert pairs_in(event_table(spark, events).transform(match, table, key="number")) == wanted
    folders, to = Folders(tmp_path), Collected()
    for number, some in enumerate(splits(rng, events, 3)):
        folders.add("events", number, some)
    reports = folders.run(spark, to, table, files=1)
    assert Counter((row["number"], row["subscription"]) for row in to.rows) == wanted
    assert [each.subscriptions for each in reports] == [len(texts)] * 3
    streamed = Collected()
    stream = spark.readStream.schema(EVENT_SCHEMA).json(str(tmp_path / "events"))
    found = stream.transform(match, table, key=["number", "b"], grouped=True)
    assert found.isStreaming
    query = found.writeStream.foreachBatch(streamed.write).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "plain")).start().awaitTermination()
    assert wanted == Counter(
        (row["number"], each["subscription"])
        for row in streamed.rows
        for each in row["deliveries"]  # type: ignore[attr-defined]
    )


def pairs_in(found: DataFrame) -> Pairs:
    assert found.columns == ["number", "subscription", "subscriber", "version"]
    return Counter((row.number, row.subscription) for row in found.collect())


def test_a_change_that_the_engine_refuses_is_refused_everywhere(spark: SparkSession) -> None:
    """The replay above skips impossible changes by its own rules; these are the engine's."""
    engine = Engine(clock=lambda: None)
    engine.subscribe("a < 5", id="s")
    with pytest.raises(TidegateError, match="there already is a subscription 's'"):
        engine.subscribe("a < 6", id="s")
    with pytest.raises(TidegateError, match="has no parameter :p"):
        engine.update("s", p=1)
    changes: list[Row] = [
        {"time": "2026-01-01T00:00:00+00:00", "op": "subscribe", "id": "s", "filter": "a < 5"},
        {"time": "2026-01-01T00:00:01+00:00", "op": "subscribe", "id": "s", "filter": "a < 6"},
        {"time": "2026-01-01T00:00:02+00:00", "op": "update", "id": "s", "params": '{"p": 1}'},
    ]
    events: list[Row] = [
        {"number": n, "time": "2026-01-01T00:00:09+00:00", "a": float(n), "b": None}
        for n in range(8)
    ]
    wanted = Counter({(n, "s"): 1 for n in range(5)})
    assert without_versions(as_of(spark, events, changes)) == wanted == embedded(events, changes)
