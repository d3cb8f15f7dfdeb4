"""A stream from one event log to another that is killed in its second micro-batch.

Run as ``python dying_stream.py <from> <into> <checkpoint> <before|after>``: both the driver and
Spark's Java process are killed right before, or right after, that batch was published in the log.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from tidegate.spark.log.datasource import (
    SourceOptions,
    TidegateDataSource,
    register,
)
from tidegate.spark.log.log_streams import LogStreamWriter


class DyingWriter(LogStreamWriter):
    """Kills the processes in the option `victims`."""

    victims: Sequence[int] = ()
    moment = ""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if batchId == 1 and self.moment == "before":
            self._kill()
        super().commit(messages, batchId)
        if batchId == 1:
            self._kill()

    def _kill(self) -> None:
        for victim in self.victims:
            os.kill(victim, signal.SIGKILL)
        os._exit(1)


class DyingDataSource(TidegateDataSource):
    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStreamWriter:  # noqa: ARG002, N802
        writer = DyingWriter(SourceOptions.of(self.options), schema)
        writer.victims = [int(victim) for victim in self.options["victims"].split()]
        writer.moment = self.options["moment"]
        return writer


def start(
    spark: SparkSession, source: str, into: str, checkpoint: str, **more: str
) -> StreamingQuery:
    """Copy a log, ten events at a time."""
    events = spark.readStream.format("tidegate").schema("n long, _time timestamp")
    return (
        events.load(source, maxEventsPerBatch="10")
        .writeStream.format("tidegate")
        .options(path=into, checkpointLocation=checkpoint, **more)
        .trigger(availableNow=True)
        .start()
    )


def main(source: str, into: str, checkpoint: str, moment: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")  # short-lived
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    register(spark)
    spark.dataSource.register(DyingDataSource)
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    victims = f"{java} {os.getpid()}"
    start(spark, source, into, checkpoint, victims=victims, moment=moment).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
