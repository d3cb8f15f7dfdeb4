"""A Spark session that suits Tidegate, for those that have none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # as attributes are
    # many small batches cost much, and larger ones win nothing
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.python.worker.reuse": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
    # state that transformWithState can use; Spark's default cannot hold it
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def local_session(
    name: str = "tidegate",
    *,
    master: str = "local[*]",
    jars: Iterable[Path] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on this machine, or the one that is there already."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    joined = ",".join(str(each) for each in jars)
    chosen = {**SETTINGS, **({"spark.jars": joined} if joined else {}), **(settings or {})}
    for option, value in chosen.items():
        builder = builder.config(option, value)
    return builder.getOrCreate()
