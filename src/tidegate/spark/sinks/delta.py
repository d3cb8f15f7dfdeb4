"""A Delta table as a sink.

Delta's own connector for Spark needs a jar for exactly this version of Spark, and none was found
for 4.3 (delta-spark_4.2_2.13:4.4.0 fails with a NoSuchMethodError when it writes). So Parquet files
are written first, in parallel, by the workers that match the events; then the Python package
``deltalake`` adds them to the table's transaction log. The log entry holds the batch id as an
application transaction, in the same commit as the files, so both are there or neither is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.parquet_writing import computed, write_batch
from tidegate.spark.sinks.sink import PendingDeliveries, query_id
from tidegate.spark.storage.folder import as_connector_error
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.storage.locations import local_path

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction


class DeltaSink:
    """Appends the deliveries of each batch to a Delta table, which is created if necessary.

    A batch whose id is in the table's log was committed and is not written again. A batch that was
    killed before its commit has at most left files in its own folder; no reader sees them, and the
    next attempt overwrites them. Batch ids are compared per query, or per ``application`` if that
    is given; a query with a new checkpoint is another query, and appends its batches again. The
    path is a folder of a local or mounted disk.

    With ``compact_every`` small files are merged after each so many batches, in a transaction that
    readers do not notice, and files that no version of the last ``keep`` needs are deleted.
    """

    def __init__(
        self,
        path: str,
        application: str | None = None,
        *,
        compact_every: int | None = None,
        keep: timedelta = timedelta(days=7),
    ) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError:
            raise ConnectorError(
                "the Delta sink needs the package 'deltalake'; "
                "it comes with pip install 'tidegate[spark]'"
            ) from None
        self._root = local_path(path, "a Delta table")
        self._application = application
        if compact_every is not None and compact_every < 1:
            raise ConnectorError(f"compact_every is {compact_every}; take a number of batches")
        if keep < timedelta(0):
            raise ConnectorError(f"keep is {keep}; it must not be negative")
        self._compact_every, self._keep = compact_every, keep

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        self.write_in_workers([computed(deliveries)], batch_id)

    def write_in_workers(self, pending: Sequence[PendingDeliveries], batch_id: int) -> int:
        """Write the files of a batch and commit them, unless the batch was committed before.

        Returns the number of deliveries; 0 if nothing was written.
        """
        rows, columns = pending[0].events, pending[0].schema
        from deltalake import CommitProperties, DeltaTable, Schema, Transaction

        # Batch numbers start at 0 for each query, so they are compared per query.
        application = self._application or query_id(rows) or "tidegate"
        # Delta's log stores a schema in the JSON format that Spark uses.
        schema = Schema.from_json(columns.toNullable().json())
        table = DeltaTable.create(self._root, schema, mode="ignore")
        self._check_columns(table.schema(), schema)
        last = table.transaction_version(application)
        if last is not None and last >= batch_id:
            return 0
        # Before and not after a batch: if it fails, the batch is run again, and so is this.
        if self._compact_every is not None and batch_id and batch_id % self._compact_every == 0:
            self._compact(table)
        folder = self._root / application / str(batch_id)
        own = LocalFolder(folder.parent)
        with as_connector_error(own):
            matches = write_batch(pending, own, folder.name)
        added = [action for file in folder.glob("*.parquet") if (action := self._add_action(file))]
        if not added:
            shutil.rmtree(folder, ignore_errors=True)
            return 0
        transaction = Transaction(application, batch_id)
        table.create_write_transaction(
            list(added),
            "append",
            schema,
            commit_properties=CommitProperties(app_transactions=[transaction]),
        )
        return matches

    def _compact(self, table: DeltaTable) -> None:
        """Merge small files, and delete those that only older versions of the table need."""
        table.optimize.compact()
        hours = self._keep // timedelta(hours=1)
        table.vacuum(hours, dry_run=False, enforce_retention_duration=False)

    def _check_columns(self, existing: Schema, schema: Schema) -> None:
        """Refuse deliveries whose columns differ from the table's.

        The low-level transaction does not check that, and readers would fail later.
        """
        old = {field.name: str(field.type) for field in existing.fields}
        new = {field.name: str(field.type) for field in schema.fields}
        differing = sorted(name for name in old | new if old.get(name) != new.get(name))
        if differing:
            name = differing[0]
            raise ConnectorError(
                f"column {name!r} is {new.get(name, 'absent')} in the deliveries and "
                f"{old.get(name, 'absent')} in the Delta table {self._root}; "
                "write to another table, or change this one"
            )

    def _add_action(self, file: Path) -> AddAction | None:
        """The log entry that adds a file; None for a file without rows, which is removed."""
        from deltalake.transaction import AddAction

        rows = pq.read_metadata(file).num_rows
        if rows == 0:
            file.unlink()
            return None
        return AddAction(
            path=str(file.relative_to(self._root)),
            size=file.stat().st_size,
            partition_values={},
            modification_time=file.stat().st_mtime_ns // 1_000_000,  # milliseconds
            data_change=True,
            stats=json.dumps({"numRecords": rows}),
        )
