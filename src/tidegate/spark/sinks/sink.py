"""Where the deliveries of a micro-batch go.

Spark runs a micro-batch again, with the same id and the same rows, if it was killed before it wrote
down that the batch is done. So a sink must be able to write a batch twice and have it once: each of
these says how. `tests/spark/test_kills.py` kills them at the worst moments.

Deliveries have the columns of events, `subscription`, `subscriber`, `version`, and where there are
corrections `operation`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TextIO, runtime_checkable

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

from tidegate.errors import ConnectorError
from tidegate.spark.log.datasource import register
from tidegate.spark.sinks.folders import Folder
from tidegate.spark.sinks.parquet_writing import PendingDeliveries, is_local, write_batch

_DELIVERY_COLUMNS = ("subscription", "version", "operation")

# Microseconds, which Spark would cut to milliseconds, and a zone that no setting changes.
_JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}

_OWNER = "_query"
_CELL_CHARS_MAX = 30


class Sink(Protocol):
    """What takes the deliveries of a micro-batch.

    To write a batch again, with the same id and the same deliveries, changes nothing.
    """

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        """Write the deliveries of a batch; when this returns they are there to stay."""
        ...


@runtime_checkable
class WorkerSink(Sink, Protocol):
    """A sink that can have its rows written by the workers that make them, which is faster."""

    def write_in_workers(self, found: Sequence[PendingDeliveries], batch_id: int) -> int | None:
        """Write a batch; gives how many deliveries it has, or None if that cannot be done here."""
        ...


def query_id(deliveries: DataFrame) -> str | None:
    """The id of the streaming query that runs this batch, which a restart keeps; None outside."""
    return deliveries.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")


class ParquetSink:
    """Parquet files in a folder ``batch=<id>`` for each batch.

    The folder of a batch is overwritten as a whole, so what a killed try left in it goes. Readers
    see a column `batch`. A batch without deliveries has no folder. The folder belongs to one query:
    another one would count its batches from 0 again and overwrite them, so it is refused.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def write_in_workers(self, found: Sequence[PendingDeliveries], batch_id: int) -> int | None:
        if not is_local(self._path):
            return None
        self._prepare(found[0].events, found[0].schema.names)
        root = Path(self._path).absolute()
        return write_batch(found, root, root / f"batch={batch_id}")

    def _prepare(self, rows: DataFrame, columns: Sequence[str]) -> Folder:
        if "batch" in columns:
            raise ConnectorError(
                "the deliveries have a column 'batch', which is what the Parquet sink calls "
                "its folders; rename it"
            )
        folder = Folder(rows.sparkSession, self._path)
        self._take(folder, query_id(rows))
        return folder

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        folder = self._prepare(deliveries, deliveries.columns)
        name = f"batch={batch_id}"
        counted = Observation()
        rows = deliveries.observe(counted, f.count(f.lit(1)).alias("rows"))
        rows.write.mode("overwrite").parquet(f"{self._path}/{name}")
        if counted.get["rows"] == 0:
            folder.remove(name)

    def _take(self, folder: Folder, query: str | None) -> None:
        """Make the folder the query's own, or refuse if it is another's."""
        if query is None:
            return
        owner = folder.read(_OWNER)
        if not owner:  # or empty, if it was killed while it wrote
            folder.write(_OWNER, query)
        elif owner != query:
            raise ConnectorError(
                f"{self._path} has the batches of another query (its id is {owner}, that of this "
                f"one {query}); a query with a new checkpoint needs a new folder"
            )


class KafkaSink:
    """Records in a Kafka topic whose values are the deliveries as JSON objects.

    ``key`` names the columns that tell one event from another. The key of a record is a hash of the
    batch id, these columns and, of those that are there, `subscription`, `version` and `operation`.
    A batch that is written again sends its records again, with the same keys: at least once on the
    wire, once for a consumer that goes by keys and in a topic that Kafka compacts.
    """

    def __init__(self, servers: str, topic: str, key: Sequence[str]) -> None:
        if isinstance(key, str) or not key:
            raise ConnectorError(
                "the Kafka sink needs key=[...], the columns that tell one event from another"
            )
        self._servers = servers
        self._topic = topic
        self._key = tuple(key)

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        records = deliveries.select(
            self._record_key(deliveries, batch_id).alias("key"),
            f.to_json(f.struct(*map(_quoted, deliveries.columns)), _JSON_OPTIONS).alias("value"),
        )
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self._servers)
        try:
            writer.option("topic", self._topic).save()
        except AnalysisException as error:
            if "find data source" in str(error).lower():
                raise ConnectorError(
                    "this Spark session has no Kafka connector; "
                    "put what tidegate.spark.connectors.kafka_jars() gives into its spark.jars"
                ) from error
            raise

    def _record_key(self, deliveries: DataFrame, batch_id: int) -> Column:
        missing = [name for name in self._key if name not in deliveries.columns]
        if missing:
            raise ConnectorError(
                f"the deliveries have no column {missing[0]!r} for the key of their records; "
                f"they have {', '.join(deliveries.columns)}"
            )
        more = (name for name in _DELIVERY_COLUMNS if name in deliveries.columns)
        names = list(dict.fromkeys([*self._key, *more]))
        parts = f.struct(f.lit(batch_id).alias("batch"), f.struct(*map(_quoted, names)))
        return f.sha2(f.to_json(parts, _JSON_OPTIONS), 256)


class LogSink:
    """An event log, which `format("tidegate")` reads; each delivery is an event in it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        register(deliveries.sparkSession)  # a query has a session of its own
        options = {"producer": query_id(deliveries) or "tidegate", "batch": str(batch_id)}
        writer = deliveries.write.format("tidegate").options(**options)
        writer.mode("append").save(self._path)


class ConsoleSink:
    """A table of the first deliveries of each batch, for people."""

    def __init__(self, rows_max: int = 20, out: TextIO | None = None) -> None:
        self._rows_max = rows_max
        self._out = out

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        held = deliveries.persist()  # all are made, as in every sink, though few are shown
        count = held.count()
        shown = [[_cell(value) for value in row] for row in held.take(self._rows_max)]
        held.unpersist()
        first = f", the first {len(shown)} of them" if count > len(shown) else ""
        what = "delivery" if count == 1 else "deliveries"
        lines = [f"batch {batch_id}: {count or 'no'} {what}{first}"]
        if shown:
            lines += _table([deliveries.columns, *shown])
        out = sys.stdout if self._out is None else self._out
        out.write("\n".join(lines) + "\n")
        out.flush()


def _quoted(name: str) -> Column:
    """The column of exactly this name, dots and all."""
    return f.col("`" + name.replace("`", "``") + "`")


def _cell(value: object) -> str:
    text = "" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= _CELL_CHARS_MAX else text[: _CELL_CHARS_MAX - 3] + "..."


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(map(str.ljust, row, widths)).rstrip()  # columns as wide as their widest
        for row in rows
    ]
