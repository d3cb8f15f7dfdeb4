"""The Kafka sink sends each delivery under one key, however often its batch is written."""

from __future__ import annotations

import json
from collections import Counter
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.kafka import KafkaSink
from tidegate.spark.sinks.sink import Sink

pytestmark = pytest.mark.xdist_group("connectors")


def deliveries(spark: SparkSession, *ids: int) -> DataFrame:
    rows = spark.createDataFrame([(each,) for each in ids], "id bigint")
    return rows.selectExpr(
        "id",
        "concat('s', id % 2) as subscription",
        "'ann' as subscriber",
        "timestamp '2026-01-02T03:04:05.000006Z' as version",
    )


def records(spark: SparkSession, servers: str, topic: str) -> list[tuple[str, str]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).load()
    return [tuple(row) for row in rows.selectExpr("string(key)", "string(value)").collect()]


def test_a_delivery_has_one_key(spark: SparkSession, kafka: str) -> None:
    topic = f"deliveries-{uuid4()}"
    sink: Sink = KafkaSink(kafka, topic, key=["id"])
    sink.write(deliveries(spark, 1, 2, 3), 0)
    sink.write(deliveries(spark, 1, 2, 3), 0)
    sink.write(deliveries(spark, 1), 1)  # the same event once more, hence another delivery
    found = records(spark, kafka, topic)
    assert len(found) == 7
    assert sorted(Counter(key for key, _ in found).values()) == [1, 2, 2, 2]
    assert len(set(found)) == 4
    version = "2026-01-02T03:04:05.000006Z"
    expected = {"id": 2, "subscription": "s0", "subscriber": "ann", "version": version}
    assert expected in [json.loads(value) for _, value in found]


def test_the_key_is_made_of_the_columns_that_identify_a_delivery(
    spark: SparkSession, kafka: str
) -> None:
    topic = f"deliveries-{uuid4()}"
    rows = spark.sql("""select * from values
        (1, 'x', 's', timestamp '2026-01-01', 'assert', 0.5D),
        (1, 'x', 's', timestamp '2026-01-01', 'retract', 0.5D),
        (1, 'x', 's', timestamp '2026-01-02', 'assert', 0.5D),
        (1, 'x', 't', timestamp '2026-01-01', 'assert', 0.5D),
        (1, 'y', 's', timestamp '2026-01-01', 'assert', 0.5D),
        (1, 'x', 's', timestamp '2026-01-01', 'assert', 1.5D)
        as deliveries (id, `a.b`, subscription, version, operation, price)""")
    KafkaSink(kafka, topic, key=["id", "a.b"]).write(rows, 0)
    found = records(spark, kafka, topic)
    assert len(found) == 6
    assert len({key for key, _ in found}) == 5  # the price is not in the key


def test_a_compacted_topic_folds_an_assert_with_its_retract(
    spark: SparkSession, kafka: str
) -> None:
    rows = """select * from values (1, 's', '{operation}'), (2, 's', 'assert')
        as deliveries (id, subscription, operation)"""
    last: dict[str, dict[str, str]] = {}
    for mode in ("fold", "upsert"):
        topic = f"deliveries-{uuid4()}"
        for batch, operation in enumerate(("assert", "retract")):
            sink = KafkaSink(kafka, topic, key=["id"], mode=mode)
            sink.write(spark.sql(rows.format(operation=operation)).coalesce(1), batch)
        last[mode] = dict(records(spark, kafka, topic))  # what compaction leaves
    folded = [json.loads(each) for each in last["fold"].values()]
    assert sorted((each["id"], each["operation"]) for each in folded) == [
        (1, "retract"), (2, "assert"),
    ]  # fmt: skip
    assert last["upsert"].keys() == last["fold"].keys()
    held = [json.loads(each) for each in last["upsert"].values() if each is not None]
    assert held == [{"id": 2, "subscription": "s"}]
    with pytest.raises(ConnectorError, match="has no mode 'replace'; there are append, fold, up"):
        KafkaSink(kafka, "t", key=["id"], mode="replace")


def test_key_columns_must_exist(spark: SparkSession) -> None:
    message = "no column 'event' for the key of their records; they have id, subscription, sub"
    with pytest.raises(ConnectorError, match=message):
        KafkaSink("localhost:1", "deliveries", key=["event"]).write(deliveries(spark, 1), 0)
    with pytest.raises(ConnectorError, match="needs key="):
        KafkaSink("localhost:1", "deliveries", key=[])
    with pytest.raises(ConnectorError, match="needs key="):
        KafkaSink("localhost:1", "deliveries", key="id")
