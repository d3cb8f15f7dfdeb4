"""A folder of Parquet files as a sink, with a subfolder for each micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.parquet_writing import computed, write_batch
from tidegate.spark.sinks.sink import PendingDeliveries, query_id
from tidegate.spark.storage.folder import Folder, as_connector_error
from tidegate.spark.storage.locations import credentials_of, folder_at, scheme_of

_OWNER = "_query"
"""The file that holds the id of the query that the folder belongs to. Spark's readers skip files
whose name begins with an underscore."""


class ParquetSink:
    """Parquet files in a folder ``batch=<id>`` for each batch, at a path or URI.

    The folder of a batch is replaced as a whole, so what a killed attempt left in it is gone.
    Readers see a column `batch`. A batch without deliveries has no folder. The place belongs to one
    query: another one would count its batches from 0 again and overwrite them, so it is refused.

    With ``keep_batches`` only the folders of that many batches are kept, the last ones; older ones
    are removed when a batch is written.

    In an object store, which has no renames, who reads a batch while it is written may see a part
    of its files, and while it is written again may see some deliveries twice.
    """

    def __init__(self, path: str | Path, *, keep_batches: int | None = None) -> None:
        scheme_of(str(path))  # raises if there is no such storage
        # One at least: the last batch may have to be written again.
        if keep_batches is not None and keep_batches < 1:
            raise ConnectorError(f"keep_batches is {keep_batches}; keep at least 1")
        self._path = path
        self._keep_batches = keep_batches

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        self.write_in_workers([computed(deliveries)], batch_id)

    def write_in_workers(self, pending: Sequence[PendingDeliveries], batch_id: int) -> int:
        rows = pending[0].events
        if "batch" in pending[0].schema.names:
            raise ConnectorError(
                "the deliveries have a column 'batch', which is what the Parquet sink calls "
                "its folders; rename it"
            )
        folder = folder_at(self._path, credentials_of(rows.sparkSession))
        with as_connector_error(folder):
            self._claim(folder, query_id(rows))
            matches = write_batch(pending, folder, f"batch={batch_id}")
            if self._keep_batches is not None:
                _remove_before(folder, batch_id - self._keep_batches + 1)
            return matches

    def _claim(self, folder: Folder, query: str | None) -> None:
        """Note that the folder belongs to the query; raises if it belongs to another one."""
        if query is None:
            return
        if not folder.exists(_OWNER):
            folder.write(_OWNER, query.encode())
            return
        owner = folder.read(_OWNER).decode()
        if owner != query:
            raise ConnectorError(
                f"{folder.location} has the batches of another query (its id is {owner}, that of "
                f"this one {query}); a query with a new checkpoint needs a new folder"
            )


def _remove_before(folder: Folder, first: int) -> None:
    """Remove the folders of batches before one; other names are left alone."""
    for name in folder.names():
        number = name.removeprefix("batch=")
        if number != name and number.isdigit() and int(number) < first:
            folder.remove(name)
