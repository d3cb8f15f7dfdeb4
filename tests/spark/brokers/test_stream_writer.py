"""The stream writer called directly; `test_streams.py` runs it in Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from support.broker_thread import broker
from tidegate.errors import ConnectorError, LogError
from tidegate.network.client.sync import connect_sync
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.stream_writer import BrokerStreamWriter

SCHEMA = StructType().add("n", LongType())


def test_a_micro_batch_is_taken_once(tmp_path: Path) -> None:
    with broker(tmp_path) as url, connect_sync(url) as client:
        subscription = client.subscribe("true")
        writer = BrokerStreamWriter(BrokerOptions.of({"broker": url}), SCHEMA)
        message = writer.write(iter([pa.record_batch({"_0": pa.array([1, 2], pa.int64())})]))
        with pytest.raises(LogError, match="passes no query id"):
            writer.commit([message], 0)
        message.query = "q"
        writer.abort([message], 0)
        for batch in (0, 0, 1):
            writer.commit([message, None], batch)
        writer.commit([], 2)
        came = [subscription.next(30) for _ in range(4)]
        assert [each["n"] for each in came if each is not None] == [1, 2, 1, 2]
        with pytest.raises(TimeoutError):
            subscription.next(0.1)


def test_producers_are_for_batches() -> None:
    options = {"broker": "tidegate://none", "producer": "p", "batch": "1"}
    with pytest.raises(ConnectorError, match="are for batch writes"):
        BrokerStreamWriter(BrokerOptions.of(options), SCHEMA)
