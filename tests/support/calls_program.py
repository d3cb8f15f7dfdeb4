"""Everything that users call, on a session of Spark Connect or on another version of Spark.

Run as ``calls_program.py connect|classic <folder>``, because a process has one kind of session, of
one version. The folder has the files of a stream; see `write_stream`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from support.cluster_program import drawn
from support.spark_streams import Folders, as_of, change_log, event_table, net
from tidegate.spark import backtest, match_patterns
from tidegate.spark.session import SETTINGS, is_connect, local_session
from tidegate.spark.sinks.parquet import ParquetSink

_ATTEMPTS_MAX = 5
PATTERNS = pa.table({"id": ["up"], "pattern": ["a < 3 then a > 6 within 20 s"]})


@dataclass(frozen=True)
class ThroughSpark:
    """A sink that knows nothing of workers."""

    path: str

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        deliveries.write.mode("overwrite").json(f"{self.path}/batch={batch_id}")


@dataclass(frozen=True)
class ReportFile:
    """Writes the counts of each batch to a file, because the server calls it, not the client."""

    path: str

    def __call__(self, report: object) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps([getattr(report, name) for name in ("matches", "late")]) + "\n")


def session_of(kind: str) -> SparkSession:
    settings = {**SETTINGS, "spark.sql.shuffle.partitions": "2"}
    if kind == "classic":
        return local_session(master="local[2]", settings=settings)
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(kind: str, folder: Path) -> None:
    spark = session_of(kind)
    events, changes = drawn(1)
    found = [as_of(spark, events, changes), as_of(spark, events, changes, partition_by="b")]
    table = event_table(spark, events)
    tested = backtest(
        table, change_log(changes), change_log([]), event_time="time", skip_bad=True
    )  # fmt: skip
    sequences = match_patterns(table, PATTERNS, "time", key="number").collect()
    folders = Folders(folder)
    for name, sink in (
        ("parquet", ParquetSink(str(folder / "parquet"))),
        ("json", ThroughSpark(str(folder / "json"))),
    ):
        options: dict[str, Any] = {
            "files": 1, "lateness": timedelta(hours=1), "checkpoint": str(folder / f"c-{name}"),
            "report": ReportFile(str(folder / f"reports-{name}")),
        }  # fmt: skip
        _patiently(partial(folders.run, spark, sink, **options))
    rows = spark.read.json(str(folder / "json")).toArrow().to_pylist()
    document = {
        "spark": spark.version,
        "connect": is_connect(spark),
        "tables": [_pairs(each) for each in found],
        "entering": tested.counts.entering,
        "sequences": sorted([each.number for each in row.events] for row in sequences),
        "json": _pairs(net(rows)),
    }
    (folder / "found.json").write_text(json.dumps(document))
    spark.stop()


def _patiently(start: Callable[[], object]) -> None:
    """Start a query, again if the machine was too busy.

    A process of Spark Connect that runs micro-batches has ten seconds to start.
    """
    for attempt in range(_ATTEMPTS_MAX):
        try:
            start()
        except PySparkException as error:
            if "failed to connect back" not in str(error) or attempt == _ATTEMPTS_MAX - 1:
                raise
        else:
            return


def _pairs(found: Iterable[tuple[object, ...]]) -> list[list[object]]:
    return sorted([number, id] for number, id, _ in found)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
