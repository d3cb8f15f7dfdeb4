"""Streams of Spark from and to a broker, both of which are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from support import dying_broker_stream
from support.dying_broker_stream import start
from support.killed_broker import KilledBroker
from support.linked_brokers import free_ports
from tidegate.network.client.sync import SyncClient, connect_sync
from tidegate.spark.log.datasource import register

pytestmark = pytest.mark.xdist_group("connectors")

ONCE = {"availableNow": True}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KilledBroker]:
    [port] = free_ports(1)
    broker = KilledBroker(port, tmp_path)
    broker.start()
    yield broker
    broker.kill()


def publish(client: SyncClient, first: int, last: int) -> None:
    events = [{"n": n, "stage": 1} for n in range(first, last)]
    client.publish_many(events, confirm=True)


def received(reader: SyncClient, count: int) -> list[int]:
    """What came at the second stage; events of one micro-batch in any order."""
    subscription = reader.subscriptions["all"]
    numbers: list[int] = []
    while len(numbers) < count:
        numbers += [each["n"] for each in subscription.next_many(count, 120)]
    with pytest.raises(TimeoutError):
        subscription.next(0.2)
    return numbers


def run_killed(url: str, checkpoint: Path) -> None:
    paths = [str(Path(dying_broker_stream.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    ended = subprocess.run(
        [sys.executable, dying_broker_stream.__file__, url, str(checkpoint)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-3000:]


def test_kills_of_either_side_lose_and_double_nothing(
    spark: SparkSession, broker: KilledBroker, tmp_path: Path
) -> None:
    register(spark)
    url, checkpoint = broker.url, tmp_path / "checkpoint"
    with (
        connect_sync(url, identity="reader", durable=True, timeout=60) as reader,
        connect_sync(url, identity="publisher") as publisher,
    ):
        reader.subscribe("stage = 2", name="all")
        start(spark, url, str(checkpoint), ONCE).awaitTermination(300)  # subscribes
        publish(publisher, 0, 25)
        run_killed(url, checkpoint)
        # The broker has the second batch, but Spark has not noted it.
        assert (checkpoint / "offsets" / "1").exists()
        assert not (checkpoint / "commits" / "1").exists()
        broker.kill()
        broker.start()
        query = start(spark, url, str(checkpoint), {"processingTime": "0 seconds"})
        try:
            publish(publisher, 25, 40)
            broker.kill()
            broker.start()
            publish(publisher, 40, 55)
            numbers = received(reader, 55)
        finally:
            query.stop()
        assert sorted(numbers) == list(range(55))
        assert numbers[:20] == [*range(20)]  # within a batch in the order of their times


def test_another_identity_than_that_of_the_checkpoint(
    spark: SparkSession, broker: KilledBroker, tmp_path: Path
) -> None:
    register(spark)
    events = spark.readStream.format("tidegate").schema("n long").option("broker", broker.url)
    for identity in ("one", "other"):
        writer = events.option("identity", identity).load().writeStream.format("noop")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            if identity == "one":
                with connect_sync(broker.url) as publisher:
                    query.processAllAvailable()
                    publisher.publish({"n": 1}, confirm=True)
                    query.processAllAvailable()
            else:
                with pytest.raises(StreamingQueryException, match="with the identity 'one', not"):
                    query.awaitTermination(120)
        finally:
            query.stop()
