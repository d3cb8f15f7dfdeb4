"""Streams of event logs, called directly; `test_datasource.py` runs them in Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructType

from tidegate import LogError
from tidegate.spark.log.datasource import SourceOptions, StagedMessage, TidegateDataSource
from tidegate.spark.log.event_log import EventLog
from tidegate.spark.log.log_streams import LogStreamReader, LogStreamWriter

NUMBERS = StructType().add("n", LongType())


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "log")


def reader_of(log: EventLog, **options: str) -> LogStreamReader:
    return LogStreamReader(SourceOptions.of({"path": str(log.path), **options}), NUMBERS)


def batches(*values: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"_0": pa.array(values, pa.int64())})])


def test_limits(log: EventLog) -> None:
    log.append({"n": n} for n in range(10))
    reader = reader_of(log, maxEventsPerBatch="4")
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    assert reader_of(log).getDefaultReadLimit() == ReadAllAvailable()
    start = {"offset": 3}
    assert reader.latestOffset(start, ReadMaxRows(4)) == {"offset": 7}
    assert reader.latestOffset(start, ReadMaxRows(20)) == {"offset": 10}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"offset": 10}
    reader.prepareForTriggerAvailableNow()
    log.append([{"n": 10}])
    assert reader.latestOffset(start, ReadAllAvailable()) == {"offset": 10}
    assert reader.latestOffset({"offset": 11}, ReadAllAvailable()) == {"offset": 11}
    assert reader.reportLatestOffset() == {"offset": 11}


def test_a_stream_needs_the_id_of_its_query(log: EventLog) -> None:
    writer = LogStreamWriter(SourceOptions.of({"path": str(log.path)}), NUMBERS)
    message = writer.write(batches(1))
    with pytest.raises(LogError, match="passes no query id"):
        writer.commit([message], 0)
    message.query = "q"
    for _ in range(2):
        writer.commit([message], 0)
        message = StagedMessage(writer.write(batches(2)).staged, "q")
    assert [record.event.attributes["n"] for record in log.read()] == [1]


def test_an_older_spark_is_named(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its classes were not there."""
    monkeypatch.delitem(sys.modules, "tidegate.spark.log.log_streams")
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    source = TidegateDataSource(CaseInsensitiveDict({"path": str(log.path)}))
    for use in (source.streamReader, lambda schema: source.streamWriter(schema, False)):
        with pytest.raises(LogError, match=r"need Spark 4\.2 or newer, and this is 4\."):
            use(NUMBERS)
