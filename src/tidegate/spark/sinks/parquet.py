"""A folder of Parquet files as a sink, with a subfolder for each micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.hadoop_folder import HadoopFolder
from tidegate.spark.sinks.parquet_writing import is_local, write_batch
from tidegate.spark.sinks.sink import PendingDeliveries, query_id

_OWNER = "_query"
"""The file that holds the id of the query that the folder belongs to. Spark's readers skip files
whose name begins with an underscore."""


class ParquetSink:
    """Parquet files in a folder ``batch=<id>`` for each batch.

    The folder of a batch is replaced as a whole, so what a killed attempt left in it is gone.
    Readers see a column `batch`. A batch without deliveries has no folder. The path belongs to one
    query: another one would count its batches from 0 again and overwrite them, so it is refused.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def write_in_workers(self, pending: Sequence[PendingDeliveries], batch_id: int) -> int | None:
        if not is_local(self._path):
            return None
        self._prepare(pending[0].events, pending[0].schema.names)
        root = Path(self._path).absolute()
        return write_batch(pending, root, root / f"batch={batch_id}")

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        folder = self._prepare(deliveries, deliveries.columns)
        name = f"batch={batch_id}"
        counted = Observation()  # counts the rows while they are written, without a second job
        rows = deliveries.observe(counted, f.count(f.lit(1)).alias("rows"))
        rows.write.mode("overwrite").parquet(f"{self._path}/{name}")
        # Spark creates the folder even if there are no rows.
        if counted.get["rows"] == 0:
            folder.remove(name)

    def _prepare(self, rows: DataFrame, columns: Sequence[str]) -> HadoopFolder:
        """Check that this query may write these columns here."""
        if "batch" in columns:
            raise ConnectorError(
                "the deliveries have a column 'batch', which is what the Parquet sink calls "
                "its folders; rename it"
            )
        folder = HadoopFolder(rows.sparkSession, self._path)
        self._claim(folder, query_id(rows))
        return folder

    def _claim(self, folder: HadoopFolder, query: str | None) -> None:
        """Note that the folder belongs to the query; raises if it belongs to another one."""
        if query is None:
            return
        owner = folder.read(_OWNER)
        # The file is empty if the process was killed while it wrote it.
        if not owner:
            folder.write(_OWNER, query)
        elif owner != query:
            raise ConnectorError(
                f"{self._path} has the batches of another query (its id is {owner}, that of this "
                f"one {query}); a query with a new checkpoint needs a new folder"
            )
