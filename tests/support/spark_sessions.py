"""Spark sessions for tests: small and quiet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.spark.session import local_session

_SETTINGS = {
    "spark.driver.host": "localhost",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    # A session that lives for minutes would spend most of its time in the optimising compiler.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def start_session(folder: Path, jars: Sequence[Path] = ()) -> SparkSession:
    """A session that writes only to a folder."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        **_SETTINGS,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    spark = local_session("tidegate-tests", master="local[2]", jars=jars, settings=settings)
    spark.sparkContext.setLogLevel("OFF")
    return spark
