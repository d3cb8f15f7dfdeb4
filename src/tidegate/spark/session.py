"""A Spark session with settings that suit Tidegate, for users who have none of their own."""

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
    "spark.sql.caseSensitive": "true",  # names of attributes are case sensitive
    # Smaller Arrow batches cost more per event, larger ones gain nothing.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.python.worker.reuse": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
    # transformWithState, which finds patterns in streams, needs RocksDB; it is not Spark's default.
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
    """A session on this machine, or the existing one of this process.

    ``settings`` win over the ones of Tidegate.
    """
    # Workers must run the Python that has Tidegate installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    joined = ",".join(str(each) for each in jars)
    chosen = {**SETTINGS, **({"spark.jars": joined} if joined else {}), **(settings or {})}
    for option, value in chosen.items():
        builder = builder.config(option, value)
    return builder.getOrCreate()
