"""A pipeline whose events, changes and deliveries are topics of a real Kafka broker."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from tidegate.cli import cli

pytestmark = pytest.mark.xdist_group("connectors")

SETTINGS = """
[source]
format = "kafka"
servers = "{servers}"
topic = "{events}"
schema = "price double, time timestamp"
event_time = "time"
key = "symbol"
headers = ["desk"]
[subscriptions]
servers = "{servers}"
topic = "{changes}"
[sink]
format = "kafka"
servers = "{servers}"
topic = "{deliveries}"
key = ["symbol", "time"]
columns = ["symbol", "time"]
[checkpoint]
path = "checkpoint"
[variables]
most = 9
"""


def publish(
    spark: SparkSession, servers: str, topic: str, records: list[tuple[str, dict[str, object]]]
) -> None:
    """Send records, each with a key and a header."""
    rows = [(key, json.dumps(value), [("desk", b"d7")]) for key, value in records]
    schema = "key string, value string, headers array<struct<key: string, value: binary>>"
    writer = spark.createDataFrame(rows, schema).coalesce(1).write.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", servers).option("includeHeaders", "true")
    writer.option("topic", topic).save()


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def test_topics_in_and_out(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    names = {name: f"{name}-{uuid4()}" for name in ("events", "changes", "deliveries")}
    file = tmp_path / "pipeline.toml"
    file.write_text(SETTINGS.format(servers=kafka, **names))
    asked = "symbol = 'A' and header.desk = 'd7' and price < :p and price < @most"
    changes: list[dict[str, object]] = [
        {"time": at(0), "op": "subscribe", "id": "s", "filter": asked, "params": {"p": 5}},
        {"time": at(20), "op": "update", "id": "s", "params": {"p": 10}},
    ]
    publish(spark, kafka, names["changes"], [("s", each) for each in changes])
    events = [("A", 4, 1), ("B", 4, 2), ("A", 7, 3), ("A", 7, 21), ("A", 9, 22), ("A", "x", 23)]
    records: list[tuple[str, dict[str, object]]] = [
        (symbol, {"price": price, "time": at(second)}) for symbol, price, second in events
    ]
    publish(spark, kafka, names["events"], records)
    done = CliRunner().invoke(cli, ["pipeline", "run", str(file), "--once", "--json"])
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    sums = {name: sum(row[name] for row in told) for name in ("events", "matches", "bad")}
    assert sums == {"events": 5, "matches": 2, "bad": 1}
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka)
    rows = reader.option("subscribe", names["deliveries"]).load().selectExpr("string(value)")
    found = [json.loads(row.value) for row in rows.collect()]
    assert sorted((row["time"], row["symbol"], row["operation"]) for row in found) == [
        ("2026-01-01T00:00:01.000000Z", "A", "assert"),
        ("2026-01-01T00:00:21.000000Z", "A", "assert"),
    ]
