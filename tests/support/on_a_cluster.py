"""Matches a table and a stream on a cluster of two executors; writes the deliveries to a file.

Run as a program, because a process can have only one Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyspark

from tidegate.spark import deliver, match
from tidegate.spark.session import local_session
from tidegate.spark.sinks.parquet import ParquetSink

START = datetime(2026, 1, 1, tzinfo=UTC)


def main(folder: Path) -> None:
    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    settings = {
        "spark.executor.memory": "900m",
        "spark.local.dir": str(folder / "local"),
    }
    spark = local_session("cluster", master="local-cluster[2,1,1024]", settings=settings)
    subscriptions = pa.table({"id": ["a", "b"], "filter": ["x < 10", "x >= 95"]})
    events = spark.range(200).selectExpr("id", "id % 100 as x").repartition(4)
    rows = match(events, subscriptions, key="id").collect()
    table = sorted([row.id, row.subscription] for row in rows)

    for name in ("events", "changes"):
        (folder / name).mkdir()
    subscription = {"op": "subscribe", "id": "a", "filter": "x < :most", "params": {"most": 50}}
    changes: list[list[dict[str, object]]] = [
        [{"time": _at(0), **subscription}],
        [],
        [{"time": _at(15), "op": "update", "id": "a", "params": {"most": 5}}],
    ]
    for batch, batch_changes in enumerate(changes):
        numbers = range(batch * 10, batch * 10 + 10)
        batch_events: list[dict[str, object]] = [
            {"n": number, "x": number % 10 * 10, "time": _at(number)} for number in numbers
        ]
        _write(folder / "events" / f"{batch}.json", batch_events, batch)
        _write(folder / "changes" / f"{batch}.json", batch_changes, batch)
    one = {"maxFilesPerTrigger": "1"}
    schema = "n long, x long, time timestamp"
    query = deliver(
        spark.readStream.schema(schema).options(**one).json(str(folder / "events")),
        spark.readStream.options(**one).text(str(folder / "changes")),
        ParquetSink(str(folder / "out")), event_time="time", checkpoint=folder / "checkpoint",
        key="n", lateness=timedelta(hours=1), trigger={"availableNow": True},
    )  # fmt: skip
    query.awaitTermination()
    net: dict[tuple[int, object], int] = {}
    for row in spark.read.parquet(str(folder / "out")).collect():
        sign = 1 if row.operation == "assert" else -1
        net[row.n, row.version] = net.get((row.n, row.version), 0) + sign
    stream = sorted(n for (n, _), count in net.items() if count)
    application = spark.sparkContext.applicationId
    spark.stop()
    shutil.rmtree(Path(os.environ["SPARK_HOME"]) / "work" / str(application), ignore_errors=True)
    (folder / "found.json").write_text(json.dumps({"table": table, "stream": stream}))


def _at(second: int) -> str:
    return (START + timedelta(seconds=second)).isoformat()


def _write(path: Path, rows: list[dict[str, object]], batch: int) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (batch + 1, batch + 1))  # Spark reads the oldest file first


if __name__ == "__main__":
    main(Path(sys.argv[1]))
