"""The session that Tidegate creates for users who have none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

from tidegate.spark.session import (
    LOCAL_SETTINGS,
    SETTINGS,
    choose_worker_python,
    is_connect,
    local_session,
    runs_here,
)

pytestmark = pytest.mark.xdist_group("spark")


def test_one_that_is_there_is_taken(spark: SparkSession) -> None:
    assert local_session("other", master="local[1]") is spark
    assert spark.sparkContext.appName == "tidegate-tests"
    assert spark.sparkContext.master == "local[2]"


def test_what_is_said_wins(spark: SparkSession) -> None:
    """The session of the tests was created with one setting of its own."""
    begun = dict(spark.sparkContext.getConf().getAll())
    defaults = {**SETTINGS, **LOCAL_SETTINGS}
    differing = {name for name, value in defaults.items() if begun.get(name) != value}
    assert differing == {"spark.sql.shuffle.partitions"}
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"  # another call did not change it


def settings_of(script: str, folder: Path, **environment: str) -> dict[str, str]:
    """The settings of a session that a program of its own starts."""
    code = f"""
import json
from tidegate.spark.session import local_session
spark = local_session({script})
print(json.dumps(dict(spark.sparkContext.getConf().getAll())))
spark.stop()
"""
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": quick, **environment},
    )  # fmt: skip
    found: dict[str, str] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_what_is_set_from_outside_stays(tmp_path: Path) -> None:
    """Of `spark-defaults.conf`, the arguments of `spark-submit`, and what the program says."""
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.master local[1]\nspark.sql.shuffle.partitions 13\nspark.driver.memory 700m\n"
        "spark.sql.session.timeZone Europe/Berlin\n"
    )
    found = settings_of(
        "settings={'spark.driver.memory': '600m'}", tmp_path, SPARK_CONF_DIR=str(tmp_path),
        PYSPARK_SUBMIT_ARGS="--conf spark.sql.caseSensitive=false pyspark-shell",
    )  # fmt: skip
    assert {**SETTINGS, **LOCAL_SETTINGS, **found} == found | {
        "spark.master": "local[1]",
        "spark.sql.shuffle.partitions": "13",
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.sql.caseSensitive": "false",
        "spark.driver.memory": "600m",
    }


def test_times_and_names_mean_in_spark_what_they_mean_in_filters(spark: SparkSession) -> None:
    [row] = spark.sql("select timestamp '2026-01-02 03:04:05' as time, 1 as a, 2 as A").collect()
    assert row.asDict() == {"time": row.time, "a": 1, "A": 2}
    time_us = spark.sql("select unix_micros(timestamp '1970-01-01 00:00:01')").collect()[0][0]
    assert time_us == 1_000_000


def test_workers_run_this_python(spark: SparkSession) -> None:
    found = spark.range(1).rdd.map(lambda _: sys.executable).collect()
    assert Path(found[0]).resolve() == Path(os.environ["PYSPARK_PYTHON"]).resolve()


def test_where_the_tasks_of_a_session_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runs_here(spark)
    assert not is_connect(spark)
    for master, here in (
        ("local[*]", True), ("local", True), ("local-cluster[2,1,1024]", False), ("yarn", False),
        ("spark://host:7077", False), ("k8s://https://host:443", False),
    ):  # fmt: skip
        monkeypatch.setattr(RuntimeConfig, "get", lambda *_, is_=master: is_)
        assert runs_here(spark) == here, master


def test_workers_of_a_session_of_ones_own_run_the_python_of_the_job(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("""
import os, sys
from pyspark.sql import SparkSession
import tidegate.spark

def task(batches):
    import pyarrow as pa
    for _ in batches:
        yield pa.record_batch({"python": [sys.executable]})

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()
print(*spark.range(1).mapInArrow(task, "python string").toArrow().column(0).to_pylist())
spark.stop()
""")
    environment = {name: text for name, text in os.environ.items() if "PYSPARK" not in name}
    run = subprocess.run(
        [sys.executable, str(job)], capture_output=True, text=True, check=True,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert run.stdout.split() == [sys.executable]


def test_a_python_that_was_chosen_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "chosen")
    choose_worker_python()
    assert os.environ["PYSPARK_PYTHON"] == "chosen"
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as `spark-submit` sets it
    choose_worker_python()
    assert "PYSPARK_PYTHON" not in os.environ
