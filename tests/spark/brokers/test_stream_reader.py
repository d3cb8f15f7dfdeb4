"""The stream reader called directly; `test_streams.py` runs it in Spark."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import ArrayType, LongType, StructType

from support.broker_thread import broker
from tidegate.errors import ConnectorError, EventError, LogError
from tidegate.network.client.sync import connect_sync
from tidegate.spark.brokers import stream_reader
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.stream_reader import BrokerStreamReader

SCHEMA = StructType().add("n", LongType()).add("_offset", LongType())


def reader_of(url: str, **options: str) -> BrokerStreamReader:
    options = {"broker": url, "identity": "spark", **options}
    return BrokerStreamReader(BrokerOptions.of(options), SCHEMA)


def test_it_reads_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "PARTITION_EVENTS_MAX", 2)
    with broker(tmp_path) as url:
        reader = reader_of(url, maxEventsPerBatch="7")
        assert reader.getDefaultReadLimit() == ReadMaxRows(7)
        start = reader.initialOffset()
        assert start == {"identity": "spark", "position": 0}
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        with connect_sync(url) as publisher:
            publisher.publish_many([{"n": n} for n in range(5)], confirm=True)
            publisher.publish({"n": "many", "m": 1}, confirm=True)
        reader.stop()
        reader = reader_of(url)
        reader.prepareForTriggerAvailableNow()
        five = reader.latestOffset(start, ReadMaxRows(5))
        parts = reader.partitions(start, five)
        at_worker = pickle.loads(pickle.dumps(reader_of(url)))
        rows = [
            row
            for part in parts
            for batch in at_worker.read(pickle.loads(pickle.dumps(part)))
            for row in batch.to_pylist()
        ]
        assert len(parts) == 3
        assert [row["n"] for row in rows] == [0, 1, 2, 3, 4]
        assert rows[-1]["_offset"] == five["position"]
        reader.commit(five)
        last = reader.latestOffset(five, ReadMaxRows(5))
        [part] = reader.partitions(five, last)
        with pytest.raises(EventError, match="has the string 'many'"):
            list(at_worker.read(part))
        [batch] = reader_of(url, onMismatch="null").read(part)
        assert batch.to_pylist() == [{"n": None, "_offset": last["position"]}]
        assert reader.latestOffset(last, ReadMaxRows(5)) == last
        reader.stop()


def test_wrong_uses() -> None:
    url = "tidegate://none"
    with pytest.raises(ConnectorError, match="option 'identity' is missing"):
        BrokerStreamReader(BrokerOptions.of({"broker": url}), SCHEMA)
    with pytest.raises(LogError, match="'n' is of array<bigint>"):
        BrokerStreamReader(
            BrokerOptions.of({"broker": url}), StructType().add("n", ArrayType(LongType()))
        )
    with pytest.raises(ConnectorError, match="was made with the identity 'other', not 'spark'"):
        reader_of(url).commit({"identity": "other", "position": 7})
