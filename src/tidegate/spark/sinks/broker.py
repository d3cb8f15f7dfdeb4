"""A broker as a sink."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.log.datasource import register
from tidegate.spark.sinks.sink import query_id


class BrokerSink:
    """A broker, at which each delivery is published as an event.

    The options are those of `format("tidegate")` with a broker. It takes a batch once: the numbers
    of its events follow from the id of the query and the number of the batch.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        BrokerOptions.of(options)  # raises for a bad one
        self._options = dict(options)

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        # Each query runs in a clone of the session, where the data source has to be registered too.
        register(deliveries.sparkSession)
        options = {"producer": query_id(deliveries) or "tidegate", "batch": str(batch_id)}
        writer = deliveries.write.format("tidegate").options(**self._options, **options)
        writer.mode("append").save()
