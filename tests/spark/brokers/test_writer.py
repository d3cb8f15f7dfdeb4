"""Rows that become events of a broker, without Spark; `test_streams.py` has whole queries."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StructType

from support.broker_thread import broker
from tidegate.errors import ConnectorError, LogError, TidegateError
from tidegate.language.events import Event
from tidegate.network.client.sync import SyncSubscription, connect_sync
from tidegate.network.wire.event_block import encode_event
from tidegate.spark.brokers import writer as writer_module
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.writer import (
    BrokerWriter,
    EncodedRows,
    encode_rows,
    epoch_of,
    publish,
)

SCHEMA = StructType().add("n", "long").add("_time", "timestamp")
THEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with broker(tmp_path) as url:
        yield url


@pytest.fixture
def reader(url: str) -> Iterator[SyncSubscription]:
    with connect_sync(url) as client:
        yield client.subscribe("true")


def rows(*numbers: int | None, time: datetime | None = None) -> EncodedRows:
    """The rows of a task, as it sends them to the driver."""
    times = pa.array([time] * len(numbers), pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"_0": pa.array(numbers, pa.int64()), "_1": times})
    encoded: EncodedRows = pickle.loads(pickle.dumps(encode_rows([batch], SCHEMA)))
    return encoded


def read(reader: SyncSubscription, count: int) -> list[object]:
    found = []
    for _ in range(count):
        event = reader.next(30)
        assert event is not None
        found.append(event.get("n"))
    with pytest.raises(TimeoutError):
        reader.next(0.1)
    return found


def test_a_batch_is_published_once_however_it_is_divided(
    url: str, reader: SyncSubscription
) -> None:
    options = BrokerOptions.of({"broker": url})
    publish([rows(5, 1), None, rows(3)], options, "query", 0)
    for divided in ([rows(1, 3), rows(5)], [rows(5), rows(), rows(3), rows(1)]):
        publish(divided, options, "query", 0)
    publish([rows(1)], options, "query", 1)
    publish([rows(7)], options, "another query", 0)
    assert read(reader, 5) == [1, 3, 5, 1, 7]


def test_what_a_crash_has_left_out_is_published(url: str, reader: SyncSubscription) -> None:
    """As if the process had been killed when the broker had taken the first two."""
    with connect_sync(url, identity="spark", epoch=epoch_of("query")) as client:
        first = [encode_event(Event({"n": n})) for n in (1, 2)]
        client.publish_numbered(first, 4 * 2**32 + 1)
    options = BrokerOptions.of({"broker": url, "identity": "spark"})
    publish([rows(3, 1), rows(2)], options, "query", 4)
    assert read(reader, 3) == [1, 2, 3]


def test_times(url: str, reader: SyncSubscription) -> None:
    publish([rows(1, time=THEN), rows(2)], BrokerOptions.of({"broker": url}), "query", 0)
    first, second = reader.next(30), reader.next(30)
    assert first is not None
    assert second is not None
    assert (first["n"], second["n"], second.time) == (2, 1, THEN)  # none comes before any
    assert first.time is not None
    assert first.time > THEN


def test_a_write_of_its_own(url: str, reader: SyncSubscription) -> None:
    for _ in range(2):
        writer = BrokerWriter(BrokerOptions.of({"broker": url}), SCHEMA)
        writer.abort([rows(1)])
        writer.commit([rows(2)])
        writer.commit([])
    assert read(reader, 2) == [2, 2]


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = StructType().add("n", ArrayType(LongType()))
    monkeypatch.setattr(writer_module, "BATCH_BYTES_MAX", 3)
    with pytest.raises(ConnectorError, match="a micro-batch has 2 events of 4 bytes; at most 3"):
        rows(1, 2)
    with pytest.raises(ConnectorError, match="a micro-batch has 2 events of 4 bytes; at most 3"):
        publish([rows(1), rows(2)], BrokerOptions.of({"broker": "tidegate://none"}), "query", 0)
    with pytest.raises(LogError, match="'n' is of array<bigint>"):
        BrokerWriter(BrokerOptions(("tidegate://none",)), lists)


def test_a_broker_without_a_store_confirms_nothing() -> None:
    with broker(None) as url, pytest.raises(TidegateError, match="store"):
        publish([rows(1)], BrokerOptions.of({"broker": url}), "query", 0)
