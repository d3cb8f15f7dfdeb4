"""The broker sink publishes each batch once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.broker_thread import broker
from tidegate.errors import ConnectorError
from tidegate.network.client.sync import connect_sync
from tidegate.spark.sinks.broker import BrokerSink
from tidegate.spark.sinks.sink import Sink

pytestmark = pytest.mark.xdist_group("connectors")


def test_a_batch_that_is_written_twice_is_published_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    with broker(tmp_path) as url, connect_sync(url) as client:
        published = client.subscribe("true")
        sink: Sink = BrokerSink({"broker": url})
        for batch, rows in enumerate([spark.range(3), spark.range(3, 5)]):
            sink.write(rows, batch)
            sink.write(rows.repartition(3), batch)
        assert [event["id"] for event in published.next_many(1, 30)] == [0]
        assert [published.next(30)["id"] for _ in range(4)] == [1, 2, 3, 4]  # type: ignore[index]
        with pytest.raises(TimeoutError):
            published.next(0.2)


def test_bad_options() -> None:
    with pytest.raises(ConnectorError, match="is not the URL of a broker"):
        BrokerSink({"broker": "localhost"})
