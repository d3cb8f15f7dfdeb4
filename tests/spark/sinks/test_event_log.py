"""The log sink appends each batch to an event log once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate.spark.log.event_log import EventLog
from tidegate.spark.sinks.event_log import LogSink
from tidegate.spark.sinks.sink import Sink

pytestmark = pytest.mark.xdist_group("connectors")


def ids_in(path: Path) -> Sequence[object]:
    return sorted(record.event.attributes["id"] for record in EventLog(path).read())


def test_a_batch_that_is_written_twice_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink: Sink = LogSink(str(path))
    for batch, (begin, end) in enumerate([(0, 3), (3, 5)]):
        for _ in range(2):
            sink.write(spark.range(begin, end), batch)
    assert ids_in(path) == [0, 1, 2, 3, 4]


def test_the_producer_is_the_query(spark: SparkSession, tmp_path: Path) -> None:
    """Two queries both begin with batch 0; the log has that of each."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": 7}\n')
    rows = spark.readStream.schema("id bigint").json(str(tmp_path / "in"))
    for checkpoint in ("first", "first", "second"):
        writer = rows.writeStream.foreachBatch(LogSink(str(tmp_path / "log")).write)
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
    assert ids_in(tmp_path / "log") == [7, 7]
