"""Events from files and Kafka: good rows, bad rows, and schema drift."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from tidegate.errors import ConnectorError
from tidegate.spark.sources.event_streams import (
    Drift,
    FileFormat,
    file_events,
    kafka_events,
    split_bad,
)

pytestmark = pytest.mark.xdist_group("connectors")

SCHEMA = "symbol string, price double, quote struct<bid: double>"
GOOD = {"symbol": "IBM", "price": 9.5, "quote": {"bid": 9.25}}
DRIFTED = {"symbol": "IBM", "price": "9.5"}


def stream(events: DataFrame, tmp_path: Path) -> tuple[list[Row], list[Row]]:
    """Run a stream until all is read; returns its good and its bad rows."""
    good: list[Row] = []
    bad: list[Row] = []

    def take(batch: DataFrame, _: int) -> None:
        for rows, into in zip(split_bad(batch), (good, bad), strict=True):
            into += rows.collect()

    writer = events.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / uuid4().hex)).start()
    query.awaitTermination()
    return good, bad


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    lines = [json.dumps(GOOD), "", "  \t", json.dumps(DRIFTED), '{"price": 1', json.dumps(GOOD)]
    (folder / "a.jsonl").write_text("\r\n".join(lines))
    (folder / "b.jsonl").write_text(json.dumps({"other": [1]}) + "\n")
    good, bad = stream(file_events(spark, str(folder), "json", SCHEMA), tmp_path)
    rows = sorted((row.asDict(recursive=True) for row in good), key=str)
    assert rows == sorted([GOOD, GOOD, {"symbol": None, "price": None, "quote": None}], key=str)
    drift = "column 'price' is a string, the schema says double"
    assert sorted((row.record, row.reason) for row in bad) == [
        ('{"price": 1', "not JSON: Expecting ',' delimiter at character 11"),
        (json.dumps(DRIFTED), drift),
    ]
    assert {row.source for row in bad} == {f"file:{folder}/a.jsonl"}


def test_json_of_a_batch_in_another_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"time": "2026-07-02T03:04:05.000006"}\n')
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        events = file_events(spark, str(tmp_path), "json", "time timestamp", streaming=False)
        (row,) = events.select(f.unix_micros("time").alias("time_us"), "_bad").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (row.time_us, row._bad) == (1782961445000006, None)


def test_drift_of_json_can_be_an_error(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "a.jsonl").write_text(json.dumps(DRIFTED))
    events = file_events(spark, str(folder), "json", SCHEMA, drift="error")
    message = "a.jsonl: column 'price' is a string, the schema says double"
    with pytest.raises(StreamingQueryException, match=message):
        run(events.select("symbol"), tmp_path)  # even if nobody asks for the price


def run(events: DataFrame, tmp_path: Path) -> None:
    writer = events.writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()


@pytest.mark.parametrize("drift", ["bad", "error"])
def test_parquet(spark: SparkSession, tmp_path: Path, drift: Drift) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([GOOD | {"other": [1]}]), folder / "a.parquet")
    pq.write_table(pa.Table.from_pylist([{"price": 2.0}]), folder / "b.parquet")
    events = file_events(spark, str(folder), "parquet", SCHEMA, drift=drift)
    good, bad = stream(events, tmp_path)
    rows = sorted((row.asDict(recursive=True) for row in good), key=str)
    assert rows == sorted([GOOD, {"symbol": None, "price": 2.0, "quote": None}], key=str)
    assert bad == []


def test_a_parquet_file_that_drifted(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([GOOD]), folder / "a.parquet")
    pq.write_table(pa.Table.from_pylist([DRIFTED]), folder / "b.parquet")
    good, bad = stream(file_events(spark, str(folder), "parquet", SCHEMA), tmp_path)
    assert [row.asDict(recursive=True) for row in good] == [GOOD]
    reason = "column 'price' is string, the schema says double"
    assert bad == [Row(record=None, reason=reason, source=f"file:{folder}/b.parquet")]


@pytest.mark.parametrize(
    "columns",
    [
        {"price": ["9.5"]},
        {"price": [9]},
        {"symbol": [5]},
        {"quote": [{"bid": "x"}]},
        {"symbol": [["IBM"]]},
        {"symbol": [True]},
    ],
)
def test_drift_of_parquet_can_be_an_error(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any]
) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "b.parquet")
    events = file_events(spark, str(folder), "parquet", SCHEMA, drift="error")
    with pytest.raises(StreamingQueryException) as caught:
        run(events, tmp_path)
    message = str(caught.value)
    assert "b.parquet" in message
    assert next(iter(columns)) in message


def test_wrong_settings(spark: SparkSession, tmp_path: Path) -> None:
    wrong_drift: Drift = "ignore"  # type: ignore[assignment]
    wrong_format: FileFormat = "csv"  # type: ignore[assignment]
    with pytest.raises(ConnectorError, match="drift is 'ignore'; it can be bad, error"):
        file_events(spark, str(tmp_path), "json", SCHEMA, drift=wrong_drift)
    with pytest.raises(ConnectorError, match="format is 'csv'; it can be json, parquet"):
        file_events(spark, str(tmp_path), wrong_format, SCHEMA)
    with pytest.raises(ConnectorError, match=r"absent cannot be read: .*PATH_NOT_FOUND"):
        file_events(spark, str(tmp_path / "absent"), "json", SCHEMA)
    with pytest.raises(ConnectorError, match="column 'key' of the schema"):
        kafka_events(spark, "localhost:1", "events", "key string")
    with pytest.raises(ConnectorError, match="have one name: topic, topic"):
        kafka_events(spark, "localhost:1", "events", SCHEMA, key="topic", keep=["topic"])
    with pytest.raises(ConnectorError, match=r"no column '_bad'.* columns are id"):
        split_bad(spark.range(1))


def publish(servers: str, topic: str, records: DataFrame) -> None:
    writer = records.write.format("kafka").option("kafka.bootstrap.servers", servers)
    writer.option("topic", topic).option("includeHeaders", "true").save()


def test_kafka_keys_and_headers(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    topic = f"events-{uuid4()}"
    headers = [("trace", b"1"), ("trace", b"2"), ("other", b"x")]
    records = spark.createDataFrame(
        [("IBM", json.dumps(GOOD), headers), (None, json.dumps({"price": 2}), None)],
        "key string, value string, headers array<struct<key: string, value: binary>>",
    )
    publish(kafka, topic, records.repartition(1))
    events = kafka_events(
        spark, kafka, topic, SCHEMA, headers=["trace", "span"], keep=["topic", "offset"]
    )
    assert events.columns[3:7] == ["key", "header", "topic", "offset"]
    good, bad = stream(events, tmp_path)
    first, second = sorted(
        (row.asDict(recursive=True) for row in good), key=lambda row: row["price"]
    )
    offsets = {first.pop("offset"), second.pop("offset")}
    assert offsets <= {0, 1}
    absent = {"symbol": None, "quote": None, "key": None, "header": {"trace": None, "span": None}}
    assert first == {"price": 2.0, "topic": topic, **absent}
    assert second == {**GOOD, "key": "IBM", "header": {"trace": "2", "span": None}, "topic": topic}
    assert bad == []


def test_kafka_bad_records(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    topic = f"events-{uuid4()}"
    values = [json.dumps(DRIFTED).encode(), b"\xff", None, json.dumps(GOOD).encode()]
    records = spark.createDataFrame([("k", each) for each in values], "key string, value binary")
    publish(kafka, topic, records.coalesce(1))
    events = kafka_events(spark, kafka, topic, SCHEMA, key=None)
    good, bad = stream(events, tmp_path)
    assert [row.asDict(recursive=True) for row in good] == [GOOD]
    assert [(row.record, row.reason) for row in sorted(bad, key=lambda row: row.source)] == [
        (json.dumps(DRIFTED), "column 'price' is a string, the schema says double"),
        ("\N{REPLACEMENT CHARACTER}", "not UTF-8 at byte 0"),
        (None, "the record has no value"),
    ]
    assert {row.source.rpartition("/")[0].rpartition("/")[0] for row in bad} == {topic}
