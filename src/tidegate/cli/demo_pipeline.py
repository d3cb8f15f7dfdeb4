"""The Spark half of `tidegate demo`: three minutes of a generated market through a pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidegate.cli.spark_session import spark_session
from tidegate.cli.status import print_status
from tidegate.experiments.workloads import WORKLOADS
from tidegate.spark import BatchReport, deliver
from tidegate.spark.session import local_session
from tidegate.spark.sinks.parquet import ParquetSink

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
MINUTES = 3
OTHERS = 2_000
"""Number of subscriptions in addition to those in `SHOWN`."""

# `t` counts from START, the time of the subscribe rows in the first file of changes.
SHOWN = {
    "static": "symbol = 'S0' and price < 50",
    "parametric": "symbol = 'S0' and price < :limit",
    "evolving": "symbol = 'S0' and price between t and t + 50",
    "tidal": "symbol = 'S1' and price > 500 + 400 * sin(t / 30)",
}


@dataclass(frozen=True, slots=True)
class DemoPipeline:
    """A folder of generated files, and the stream that reads them.

    Each minute is written and then run to its end, so that a minute is one micro-batch.
    """

    folder: Path
    events_per_minute: int
    seed: int

    def write_minute(self, minute: int) -> None:
        """Write the quotes and the changes of one minute."""
        count = self.events_per_minute
        table = WORKLOADS["market"].events(count, seed=self.seed * 100 + minute)
        time_us = int((START + timedelta(minutes=minute)).timestamp() * 1e6)
        times = pa.array(time_us + np.arange(count) * 60_000_000 // count)
        table = table.append_column("time", times.cast(pa.timestamp("us", "UTC")))
        events_folder, changes_folder = self.folder / "events", self.folder / "changes"
        events_folder.mkdir(exist_ok=True)
        pq.write_table(table, events_folder / f"{minute}.parquet")
        lines = [json.dumps(change) for change in self._changes(minute)]
        changes_folder.mkdir(exist_ok=True)
        (changes_folder / f"{minute}.jsonl").write_text("\n".join(lines))

    def _changes(self, minute: int) -> list[dict[str, object]]:
        if minute == 0:
            texts = WORKLOADS["market"].subscriptions(OTHERS).column("filter").to_pylist()
            others = [(f"other-{number}", str(text)) for number, text in enumerate(texts)]
            return [
                _change(0, "subscribe", name, filter=text, subscriber=name,
                        **({"params": {"limit": 200}} if name == "parametric" else {}))
                for name, text in [*SHOWN.items(), *others]
            ]  # fmt: skip
        if minute == 1:
            return [_change(60, "update", "parametric", params={"limit": 100})]
        # In the file of the third minute, but with a time in the second: it comes late.
        return [_change(90, "update", "parametric", params={"limit": 25})]

    def start(self, spark: SparkSession, report: Callable[[BatchReport], None]) -> None:
        """Run the stream until it has read all files that exist now."""
        schema = spark.read.parquet(str(self.folder / "events")).schema
        events = spark.readStream.schema(schema).parquet(str(self.folder / "events"))
        changes = spark.readStream.text(str(self.folder / "changes"))
        query = deliver(
            events, changes, ParquetSink(str(self.folder / "deliveries")), event_time="time",
            checkpoint=self.folder / "checkpoint", lateness=timedelta(minutes=2), report=report,
            trigger={"availableNow": True},
        )  # fmt: skip
        query.awaitTermination()

    def deliveries(self, spark: SparkSession) -> DataFrame:
        """The deliveries so far."""
        return spark.read.parquet(str(self.folder / "deliveries"))


def _change(second: int, op: str, id: str, **more: object) -> dict[str, object]:
    time = (START + timedelta(seconds=second)).isoformat()
    return {"time": time, "op": op, "id": id, **more}


def show_pipeline(events_per_minute: int, seed: int, report: Callable[[BatchReport], None]) -> None:
    """Run the pipeline over three minutes of quotes and print the numbers of deliveries."""
    count = len(SHOWN) + OTHERS
    click.echo(
        f"\nThe same on Spark: a pipeline, {count:,} subscriptions, three minutes of a market\n"
    )
    for name, text in SHOWN.items():
        click.echo(f"{name:<12}{text}")
    click.echo(f"{'others':<12}{OTHERS:,} more subscriptions, each with values of its own")
    click.echo(
        "\nparametric starts with limit 200 and is updated to 100 after one minute. In the third\n"
        "minute a late change arrives: limit 25, from the middle of the second minute on.\n"
    )
    print_status("starting Spark")
    with (
        TemporaryDirectory(prefix="tidegate-demo-") as folder,
        spark_session(lambda: local_session("tidegate-demo")) as spark,
    ):
        demo = DemoPipeline(Path(folder), events_per_minute, seed)
        for minute in range(MINUTES):
            demo.write_minute(minute)
            demo.start(spark, report)
        _show_deliveries(demo.deliveries(spark))


def _show_deliveries(deliveries: DataFrame) -> None:
    """Print the deliveries per subscription and minute, and how many the late change retracted."""
    minute = f.floor((f.unix_seconds("time") - int(START.timestamp())) / 60).alias("minute")
    sign = f.when(f.col("operation") == "retract", -1).otherwise(1)
    rows = (
        deliveries.groupBy("subscription", minute)
        .agg(f.sum(sign).alias("net"), f.sum((1 - sign) / 2).cast("int").alias("retracted"))
        .collect()
    )
    header = "".join(f"minute {m + 1:<6}" for m in range(MINUTES))
    click.echo(f"\n{'deliveries':<14}{header}".rstrip())
    for name in [*SHOWN, "others"]:
        columns = []
        for number in range(MINUTES):
            own_rows = [
                row
                for row in rows
                if row["minute"] == number
                and (
                    row["subscription"] == name
                    or (name == "others" and row["subscription"] not in SHOWN)
                )
            ]
            net = sum(row["net"] for row in own_rows)
            retracted = sum(row["retracted"] for row in own_rows)
            columns.append(f"{net:,}" + (f" (-{retracted:,})" if retracted else ""))
        click.echo(f"{name:<14}{''.join(f'{column:<13}' for column in columns)}".rstrip())
    click.echo("\n(-n): n deliveries were retracted because of the late change")
