"""What sinks have in common: pending deliveries, the id of a query, sinks that write in workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.sinks.console import ConsoleSink
from tidegate.spark.sinks.delta import DeltaSink
from tidegate.spark.sinks.event_log import LogSink
from tidegate.spark.sinks.kafka import KafkaSink
from tidegate.spark.sinks.parquet import ParquetSink
from tidegate.spark.sinks.sink import PendingDeliveries, WorkerSink, query_id

pytestmark = pytest.mark.xdist_group("connectors")


def encoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        names = pa.array([f"s{id}" for id in batch.column("id").to_pylist()])
        yield pa.record_batch({"subscription": names.dictionary_encode()})


def test_pending_deliveries_are_computed_and_decoded_for_spark(spark: SparkSession) -> None:
    schema = spark.sql("select '' as subscription").schema
    rows = PendingDeliveries(spark.range(3), encoded, schema).deliveries()
    assert sorted(row.subscription for row in rows.collect()) == ["s0", "s1", "s2"]


def test_a_query_keeps_its_id_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    ids: list[str | None] = []

    def write(rows: DataFrame, _: int) -> None:
        ids.append(query_id(rows))

    (tmp_path / "in").mkdir()
    stream = spark.readStream.schema("id bigint").json(str(tmp_path / "in"))
    for name, checkpoint in (("a", "first"), ("b", "first"), ("c", "second")):
        (tmp_path / "in" / f"{name}.jsonl").write_text('{"id": 1}\n')
        writer = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.start().awaitTermination()
    assert None not in ids
    assert ids[0] == ids[1] != ids[2]
    assert query_id(spark.range(1)) is None


def test_only_sinks_of_parquet_files_can_write_in_workers(tmp_path: Path) -> None:
    in_workers = [ParquetSink(str(tmp_path)), DeltaSink(str(tmp_path))]
    through_spark = [ConsoleSink(), LogSink(str(tmp_path)), KafkaSink("localhost:1", "t", ["id"])]
    assert all(isinstance(each, WorkerSink) for each in in_workers)
    assert not any(isinstance(each, WorkerSink) for each in through_spark)
