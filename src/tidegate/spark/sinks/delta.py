"""A Delta table as the place where deliveries go.

Delta's own connector for Spark needs a jar for exactly this version of Spark, and none was found
for 4.3 (delta-spark_4.2_2.13:4.4.0 fails with a NoSuchMethodError when it writes). So Spark writes
the Parquet files, in parallel (in a stream the workers do that find the deliveries), and the Python
package ``deltalake`` enters them into the table's log. The entry has the batch id as an application
transaction, in one commit with the files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.parquet_writing import PendingDeliveries, write_batch
from tidegate.spark.sinks.sink import query_id

if TYPE_CHECKING:
    from deltalake import Schema
    from deltalake.transaction import AddAction

_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


class DeltaSink:
    """Appends the deliveries of each batch to a Delta table, which is made if it is not there.

    A batch whose id is in the table's log was committed and is left alone. One that was killed
    before that has left files in its own folder at most, which no reader sees, and which are
    overwritten. Ids count for the query that runs the batch, or for ``application`` if it is
    given; a query that starts anew, with another checkpoint, appends again. The path is a folder
    of a local or mounted disk.
    """

    def __init__(self, path: str, application: str | None = None) -> None:
        if "://" in path:
            raise ConnectorError(
                f"the Delta sink writes to a local or mounted folder, which {path!r} is not"
            )
        try:
            import deltalake  # noqa: F401
        except ImportError:
            raise ConnectorError(
                "the Delta sink needs the package 'deltalake'; "
                "it comes with pip install 'tidegate[spark]'"
            ) from None
        self._root = Path(path.removeprefix("file:")).absolute()
        self._application = application

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        def written(folder: Path) -> int:
            _write_parquet(deliveries, folder)
            return 0

        self._commit(deliveries, deliveries.schema, batch_id, written)

    def write_in_workers(self, found: Sequence[PendingDeliveries], batch_id: int) -> int | None:
        def written(folder: Path) -> int:
            return write_batch(found, folder.parent, folder)

        return self._commit(found[0].events, found[0].schema, batch_id, written)

    def _commit(
        self, rows: DataFrame, columns: StructType, batch_id: int, write: Callable[[Path], int]
    ) -> int:
        """Have files written and enter them into the log, unless that was done before.

        Gives how many deliveries they have, as ``write`` says; none if nothing was to be done.
        """
        from deltalake import CommitProperties, DeltaTable, Schema, Transaction

        application = self._application or query_id(rows) or "tidegate"
        # The log of a Delta table writes a schema as Spark does.
        schema = Schema.from_json(columns.toNullable().json())
        table = DeltaTable.create(self._root, schema, mode="ignore")
        self._check_columns(table.schema(), schema)
        last = table.transaction_version(application)
        if last is not None and last >= batch_id:
            return 0
        folder = self._root / application / str(batch_id)
        matches = write(folder)
        added = [action for file in folder.glob("*.parquet") if (action := self._entry(file))]
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

    def _check_columns(self, there: Schema, schema: Schema) -> None:
        """Refuse deliveries that are unlike the table, which the log would take all the same."""
        old = {field.name: str(field.type) for field in there.fields}
        new = {field.name: str(field.type) for field in schema.fields}
        unlike = sorted(name for name in old | new if old.get(name) != new.get(name))
        if unlike:
            name = unlike[0]
            raise ConnectorError(
                f"column {name!r} is {new.get(name, 'absent')} in the deliveries and "
                f"{old.get(name, 'absent')} in the Delta table {self._root}; "
                "write to another table, or change this one"
            )

    def _entry(self, file: Path) -> AddAction | None:
        """A file as the log has it; None if it has no rows, and then it is removed."""
        from deltalake.transaction import AddAction

        rows = pq.read_metadata(file).num_rows
        if rows == 0:
            file.unlink()
            return None
        return AddAction(
            path=str(file.relative_to(self._root)),
            size=file.stat().st_size,
            partition_values={},
            modification_time=file.stat().st_mtime_ns // 1_000_000,
            data_change=True,
            stats=json.dumps({"numRecords": rows}),
        )


def _write_parquet(deliveries: DataFrame, folder: Path) -> None:
    """Write files as Delta wants them: with timestamps in microseconds."""
    settings = deliveries.sparkSession.conf
    before = settings.get(_TIMESTAMPS)
    settings.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        deliveries.write.mode("overwrite").parquet(str(folder))
    finally:
        settings.set(_TIMESTAMPS, str(before))
