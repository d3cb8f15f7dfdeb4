"""The quotes of the network in a pipeline on Spark, which reads them from a broker."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidegate.cli.demo.network_run import (
    PIPELINE,
    PIPELINE_FILTER,
    PIPELINE_HOME,
    Delivery,
    NetworkRun,
)
from tidegate.cli.demo.still import still
from tidegate.cli.pipeline import Reporter
from tidegate.cli.spark_session import spark_session
from tidegate.cli.status import print_status
from tidegate.spark import BatchReport, deliver
from tidegate.spark.log.datasource import register
from tidegate.spark.session import local_session
from tidegate.spark.sinks.parquet import ParquetSink

BATCHES = 3
SCHEMA = (
    "n long, symbol string, exchange string, price double, volume long, "
    + ", ".join(f"f{number} double" for number in range(6))
    + ", _time timestamp"
)


@dataclass(slots=True)
class SparkRun:
    """What the pipeline has delivered, and how long each micro-batch took."""

    deliveries: Counter[Delivery] = field(default_factory=Counter)
    reports: list[BatchReport] = field(default_factory=list)


def run_pipeline(network: NetworkRun, folder: Path) -> SparkRun:
    """Match the quotes that a broker has kept for the pipeline with the change log."""
    run = SparkRun()
    (folder / "changes").mkdir()
    lines = "\n".join(map(json.dumps, network.changes))
    (folder / "changes" / "0.jsonl").write_text(lines, encoding="utf-8")
    print_status("")
    with (
        still("starting Spark") as started,
        spark_session(lambda: local_session("tidegate-demo")) as spark,
    ):
        started.set()
        _run(run, network, folder, spark)
    return run


def _run(run: SparkRun, network: NetworkRun, folder: Path, spark: SparkSession) -> None:
    register(spark)
    events = (
        spark.readStream.format("tidegate")
        .schema(SCHEMA)
        .options(
            broker=network.urls[PIPELINE_HOME],
            identity=PIPELINE,
            filter=PIPELINE_FILTER,
            maxEventsPerBatch=-(-network.market.events // BATCHES),
        )
        .load()
    )
    changes = spark.readStream.text(str(folder / "changes"))
    reporter = Reporter(with_lag=False)
    with still(
        "matching the first micro-batch; workers compile kernels if it is the first time"
    ) as s:

        def report(batch: BatchReport) -> None:
            s.set()
            run.reports.append(batch)
            reporter.batch(batch)

        query = deliver(
            events, changes, ParquetSink(str(folder / "deliveries")), event_time="_time", key="n",
            checkpoint=folder / "checkpoint", lateness=timedelta(minutes=10), report=report,
            trigger={"availableNow": True},
        )  # fmt: skip
        query.awaitTermination()
    sign = f.when(f.col("operation") == "retract", -1).otherwise(1)
    rows = spark.read.parquet(str(folder / "deliveries")).groupBy("n", "subscription")
    for row in rows.agg(f.sum(sign).alias("net")).toArrow().to_pylist():
        if row["net"]:
            run.deliveries[row["n"], row["subscription"]] = row["net"]
