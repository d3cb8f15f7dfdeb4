"""The session that Tidegate creates for users who have none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate.spark.session import SETTINGS, local_session

pytestmark = pytest.mark.xdist_group("spark")


def test_one_that_is_there_is_taken(spark: SparkSession) -> None:
    few = {"spark.sql.shuffle.partitions": "2"}  # as all tests have it
    assert local_session("other", master="local[1]", settings=few) is spark
    assert spark.sparkContext.appName == "tidegate-tests"
    assert spark.sparkContext.master == "local[2]"


def test_what_is_said_wins(spark: SparkSession) -> None:
    """The session of the tests was created with one setting of its own."""
    begun = dict(spark.sparkContext.getConf().getAll())
    differing = {name for name, value in SETTINGS.items() if begun.get(name) != value}
    assert differing == {"spark.sql.shuffle.partitions"}


def test_times_and_names_mean_in_spark_what_they_mean_in_filters(spark: SparkSession) -> None:
    [row] = spark.sql("select timestamp '2026-01-02 03:04:05' as time, 1 as a, 2 as A").collect()
    assert row.asDict() == {"time": row.time, "a": 1, "A": 2}
    time_us = spark.sql("select unix_micros(timestamp '1970-01-01 00:00:01')").collect()[0][0]
    assert time_us == 1_000_000


def test_workers_run_this_python(spark: SparkSession) -> None:
    found = spark.range(1).rdd.map(lambda _: sys.executable).collect()
    assert Path(found[0]).resolve() == Path(os.environ["PYSPARK_PYTHON"]).resolve()
