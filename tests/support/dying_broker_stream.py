"""A stream from a broker to a broker that is killed in its second micro-batch.

Run as ``python dying_broker_stream.py <url> <checkpoint>``: the driver and Spark's Java process are
killed when the batch was published, before Spark has noted that.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from support.spark_sessions import start_session
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.stream_writer import BrokerStreamWriter
from tidegate.spark.log.datasource import TidegateDataSource, register


class DyingWriter(BrokerStreamWriter):
    """Kills the processes in the option `victims`."""

    victims: Sequence[int] = ()

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        super().commit(messages, batchId)
        if batchId == 1:
            for victim in self.victims:
                os.kill(victim, signal.SIGKILL)
            os._exit(1)


class DyingDataSource(TidegateDataSource):
    def streamWriter(self, schema: StructType, overwrite: bool) -> BrokerStreamWriter:  # noqa: ARG002, N802
        writer = DyingWriter(BrokerOptions.of(self.options), schema)
        writer.victims = [int(victim) for victim in self.options["victims"].split()]
        return writer


def start(
    spark: SparkSession, url: str, checkpoint: str, trigger: dict[str, Any], **more: str
) -> StreamingQuery:
    """Publish again what comes in the first stage, as the second one, ten events at a time."""
    events = spark.readStream.format("tidegate").schema("n long, _time timestamp")
    options = {"identity": "spark", "filter": "stage = 1", "maxEventsPerBatch": "10"}
    return (
        events.options(broker=url, **options)
        .load()
        .withColumn("stage", f.lit(2))
        .repartition(2)  # rows come to the tasks in any order
        .writeStream.format("tidegate")
        .options(broker=url, checkpointLocation=checkpoint, **more)
        .trigger(**trigger)
        .start()
    )


def main(url: str, checkpoint: str) -> None:
    spark = start_session(Path(checkpoint).parent / "spark")
    register(spark)
    spark.dataSource.register(DyingDataSource)
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    victims = f"{java} {os.getpid()}"
    query = start(spark, url, checkpoint, {"availableNow": True}, victims=victims)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
