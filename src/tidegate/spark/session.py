"""A Spark session with settings that suit Tidegate, for users who have none of their own.

What `spark-submit`, `spark-defaults.conf` or ``PYSPARK_SUBMIT_ARGS`` set is known only to the JVM,
as its system properties. So the JVM is started first, and defaults are given only for what it does
not have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # names of attributes are case sensitive
    # Smaller Arrow batches cost more per event, larger ones gain nothing.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.python.worker.reuse": "true",
    # transformWithState, which finds patterns in streams, needs RocksDB; it is not Spark's default.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""Defaults of every session."""

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}
"""Further defaults of a session on this machine. On a cluster those of Spark hold."""

_SHELL_SETTINGS = {"spark.ui.showConsoleProgress": "true"}
"""What Spark itself sets when Python starts it, which cannot be told from what users set."""


def local_session(
    name: str = "tidegate",
    *,
    master: str | None = None,
    jars: Iterable[Path] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, or a new one: where `spark-submit` says, else on this machine.

    ``master``, ``jars`` and ``settings`` win over what is set for the program from outside, and
    that over the defaults of Tidegate. A session that exists keeps its settings but for these. With
    ``SPARK_REMOTE`` in the environment it is a session of Spark Connect on that server, with its
    settings.
    """
    if "SPARK_REMOTE" in os.environ:
        builder = SparkSession.builder
        for option, value in (settings or {}).items():
            builder = builder.config(option, value)
        return builder.getOrCreate()
    joined = ",".join(str(each) for each in jars)
    chosen = {
        **({} if master is None else {"spark.master": master}),
        **({"spark.jars": joined} if joined else {}),
        **(settings or {}),
    }
    if SparkSession.getActiveSession() is None:
        choose_worker_python()
        chosen = _with_defaults(chosen)
    builder = SparkSession.builder.appName(name)
    for option, value in chosen.items():
        builder = builder.config(option, value)
    return builder.getOrCreate()


def choose_worker_python() -> None:
    """Let workers run the Python that runs here and has Tidegate installed, if none was chosen.

    Without a choice they would run the first `python3` of the path, and fail to import Tidegate.
    `spark-submit` chooses for itself.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, whose client has no JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def runs_here(spark: SparkSession) -> bool:
    """Whether all tasks of a session run on one machine, and see its files."""
    master = spark.conf.get("spark.master") or ""
    # "local-cluster" runs its executors on this machine, but as if they were on others.
    return master.startswith("local") and not master.startswith("local-cluster")


def _with_defaults(chosen: Mapping[str, str]) -> dict[str, str]:
    """Settings, with the defaults of what neither they nor the JVM have; starts the JVM."""
    # The options of a JVM, such as its memory, cannot be set later.
    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(chosen.items())))
    from_outside = SparkContext.getSystemProperty
    master = chosen.get("spark.master") or from_outside("spark.master") or "local[*]"
    defaults = {**SETTINGS, "spark.master": master}
    if master.startswith("local"):
        defaults |= LOCAL_SETTINGS
    unset = {
        name: value
        for name, value in defaults.items()
        if from_outside(name) in (None, _SHELL_SETTINGS.get(name))
    }
    return {**unset, **chosen}
