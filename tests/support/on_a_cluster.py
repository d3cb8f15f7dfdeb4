"""Matches a table and a stream on a cluster of two executors; writes down what was delivered.

Run as a program, because a process can have one Spark only.
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
from tidegate.spark.sinks.sink import ParquetSink

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
    asked = {"op": "subscribe", "id": "a", "filter": "x < :most", "params": {"most": 50}}
    changes: list[list[dict[str, object]]] = [
        [{"time": _at(0), **asked}],
        [],
        [{"time": _at(15), "op": "update", "id": "a", "params": {"most": 5}}],
    ]
    for batch, some in enumerate(changes):
        numbers = range(batch * 10, batch * 10 + 10)
        seen: list[dict[str, object]] = [
            {"n": number, "x": number % 10 * 10, "time": _at(number)} for number in numbers
        ]
        _write(folder / "events" / f"{batch}.json", seen, batch)
        _write(folder / "changes" / f"{batch}.json", some, batch)
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
    os.utime(path, (batch + 1, batch + 1))  # which Spark goes by


if __name__ == "__main__":
    main(Path(sys.argv[1]))
