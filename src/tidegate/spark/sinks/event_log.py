"""An event log as a sink."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidegate.spark.log.datasource import register
from tidegate.spark.sinks.sink import query_id
from tidegate.spark.storage.locations import local_path


class LogSink:
    """An event log, which `format("tidegate")` reads; each delivery is one event in it.

    The log takes a batch of a producer once: the producer is the id of the query.
    """

    def __init__(self, path: str) -> None:
        self._path = str(local_path(path, "an event log"))

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        # Each query runs in a clone of the session, where the data source has to be registered too.
        register(deliveries.sparkSession)
        options = {"producer": query_id(deliveries) or "tidegate", "batch": str(batch_id)}
        writer = deliveries.write.format("tidegate").options(**options)
        writer.mode("append").save(self._path)
