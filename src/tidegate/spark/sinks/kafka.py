"""A Kafka topic as a sink."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidegate.errors import ConnectorError
from tidegate.spark.columns import quoted_column

_DELIVERY_COLUMNS = ("subscription", "version")
"""Columns that distinguish the deliveries of one event."""
_OPERATION, _RETRACT = "operation", "retract"
MODES = ("append", "fold", "upsert")

# By default Spark cuts timestamps to milliseconds and writes them in the session's time zone. A key
# must neither lose digits nor depend on a setting.
_JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


class KafkaSink:
    """Records in a Kafka topic whose values are the deliveries as JSON objects.

    ``key`` names the columns that tell one event from another. The key of a record is a hash of
    these columns and, of those that exist, `subscription` and `version`; what else depends on the
    ``mode``:

    - ``append``: also the batch id and `operation`. Each delivery is a record of its own, also if
      ``key`` does not tell all events apart.
    - ``fold``: nothing. A retract has the key of what it takes back, so a compacted topic keeps the
      last of the two.
    - ``upsert``: nothing, and a retract is a tombstone. A compacted topic is the table of the
      deliveries that hold.

    A batch that is written again sends its records again, with the same keys: at least once on the
    wire, exactly once for a consumer that deduplicates by key and in a compacted topic.
    """

    def __init__(
        self, servers: str, topic: str, key: Sequence[str], *, mode: str = "append"
    ) -> None:
        if isinstance(key, str) or not key:
            raise ConnectorError(
                "the Kafka sink needs key=[...], the columns that tell one event from another"
            )
        self._servers = servers
        self._topic = topic
        self._key = tuple(key)
        if mode not in MODES:
            raise ConnectorError(
                f"the Kafka sink has no mode {mode!r}; there are {', '.join(MODES)}"
            )
        self._mode = mode

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        records = deliveries.select(
            self._record_key(deliveries, batch_id).alias("key"),
            self._record_value(deliveries).alias("value"),
        )
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self._servers)
        try:
            writer.option("topic", self._topic).save()
        except AnalysisException as error:
            if "find data source" in str(error).lower():
                raise ConnectorError(
                    "this Spark session has no Kafka connector; "
                    "add the jars of tidegate.spark.connectors.kafka_jars() to its spark.jars"
                ) from error
            raise

    def _record_value(self, deliveries: DataFrame) -> Column:
        upserts = self._mode == "upsert"
        names = [each for each in deliveries.columns if not (upserts and each == _OPERATION)]
        value = f.to_json(f.struct(*map(quoted_column, names)), _JSON_OPTIONS)
        if not upserts or _OPERATION not in deliveries.columns:
            return value
        return f.when(f.col(_OPERATION) != _RETRACT, value)

    def _record_key(self, deliveries: DataFrame, batch_id: int) -> Column:
        missing = [name for name in self._key if name not in deliveries.columns]
        if missing:
            raise ConnectorError(
                f"the deliveries have no column {missing[0]!r} for the key of their records; "
                f"they have {', '.join(deliveries.columns)}"
            )
        more = [*_DELIVERY_COLUMNS, *([_OPERATION] if self._mode == "append" else [])]
        present = (name for name in more if name in deliveries.columns)
        columns = f.struct(*map(quoted_column, dict.fromkeys([*self._key, *present])))
        # With the batch id an equal event in a later batch is another delivery, which a compacted
        # topic keeps.
        own = [f.lit(batch_id).alias("batch")] if self._mode == "append" else []
        parts = f.struct(*own, columns)
        return f.sha2(f.to_json(parts, _JSON_OPTIONS), 256)
