"""A broker as a sink of streams, which needs Spark 4.2 or newer."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from tidegate.errors import ConnectorError
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.writer import EncodedRows, encode_rows, publish
from tidegate.spark.commit_messages import CommitMessages, query_of
from tidegate.spark.log.projection import check_columns


class BrokerStreamWriter(DataSourceStreamArrowWriter):
    """Publishes the rows of each micro-batch once, however often it is attempted."""

    def __init__(self, options: BrokerOptions, schema: StructType) -> None:
        if options.producer is not None:
            raise ConnectorError("the options 'producer' and 'batch' are for batch writes")
        check_columns(schema)
        self._options = options
        self._schema = schema

    def write(  # type: ignore[override] # Spark's own class does it too
        self, iterator: Iterator[pa.RecordBatch]
    ) -> EncodedRows:
        return encode_rows(iterator, self._schema)

    def commit(
        self,
        messages: CommitMessages,
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        staged = [each for each in messages if isinstance(each, EncodedRows) and each.rows]
        if staged:
            publish(messages, self._options, query_of(each.query for each in staged), batchId)

    def abort(
        self,
        messages: CommitMessages,
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """Nothing is published before `commit`."""
