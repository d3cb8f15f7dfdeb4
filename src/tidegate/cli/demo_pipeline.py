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

from tidegate.cli.spark_session import spark_session, tell
from tidegate.experiments.workloads import WORKLOADS
from tidegate.spark import BatchReport, deliver
from tidegate.spark.session import local_session
from tidegate.spark.sinks.sink import ParquetSink

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
MINUTES = 3
OTHERS = 2_000
"""So many subscriptions are there beside the ones that are shown."""

SHOWN = {
    "static": "symbol = 'S0' and price < 50",
    "parametric": "symbol = 'S0' and price < :limit",
    "evolving": "symbol = 'S0' and price between t and t + 50",
    "tidal": "symbol = 'S1' and price > 500 + 400 * sin(t / 30)",
}


@dataclass(frozen=True, slots=True)
class DemoPipeline:
    """Generated files, and the stream that reads them."""

    folder: Path
    events_per_minute: int
    seed: int

    def write_minute(self, minute: int) -> None:
        """Write the quotes of a minute, and the changes that come in it."""
        count = self.events_per_minute
        table = WORKLOADS["market"].events(count, seed=self.seed * 100 + minute)
        time_us = int((START + timedelta(minutes=minute)).timestamp() * 1e6)
        times = pa.array(time_us + np.arange(count) * 60_000_000 // count)
        table = table.append_column("time", times.cast(pa.timestamp("us", "UTC")))
        _folder(self.folder / "events")
        pq.write_table(table, self.folder / "events" / f"{minute}.parquet")
        lines = [json.dumps(each) for each in self._changes(minute)]
        _folder(self.folder / "changes")
        (self.folder / "changes" / f"{minute}.jsonl").write_text("\n".join(lines))

    def _changes(self, minute: int) -> list[dict[str, object]]:
        if minute == 0:
            others = WORKLOADS["market"].subscriptions(OTHERS).column("filter").to_pylist()
            asked = [(f"other-{number}", str(text)) for number, text in enumerate(others)]
            return [
                _change(0, "subscribe", name, filter=text, subscriber=name,
                        **({"params": {"limit": 200}} if name == "parametric" else {}))
                for name, text in [*SHOWN.items(), *asked]
            ]  # fmt: skip
        if minute == 1:
            return [_change(60, "update", "parametric", params={"limit": 100})]
        # this one was made in the minute before, and comes late
        return [_change(90, "update", "parametric", params={"limit": 25})]

    def start(self, spark: SparkSession, report: Callable[[BatchReport], None]) -> None:
        """Deliver what is there, and stop."""
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
        """All that was delivered so far."""
        return spark.read.parquet(str(self.folder / "deliveries"))


def _change(second: int, op: str, id: str, **more: object) -> dict[str, object]:
    time = (START + timedelta(seconds=second)).isoformat()
    return {"time": time, "op": op, "id": id, **more}


def _folder(path: Path) -> None:
    path.mkdir(exist_ok=True)


def show_pipeline(events_per_minute: int, seed: int, report: Callable[[BatchReport], None]) -> None:
    """Run the pipeline over three minutes of quotes and show what was delivered."""
    count = len(SHOWN) + OTHERS
    click.echo(
        f"\nThe same on Spark: a pipeline, {count:,} subscriptions, three minutes of a market\n"
    )
    for name, text in SHOWN.items():
        click.echo(f"{name:<12}{text}")
    click.echo(f"{'others':<12}{OTHERS:,} more, each of its own")
    click.echo(
        "\nparametric has limit 200, from the second minute on 100; in the third comes a late\n"
        "change: it was 25 from half past the second minute on.\n"
    )
    tell("starting Spark")
    with (
        TemporaryDirectory(prefix="tidegate-demo-") as folder,
        spark_session(lambda: local_session("tidegate-demo")) as spark,
    ):
        demo = DemoPipeline(Path(folder), events_per_minute, seed)
        for minute in range(MINUTES):
            demo.write_minute(minute)
            demo.start(spark, report)
        _show(demo.deliveries(spark))


def _show(deliveries: DataFrame) -> None:
    """Print who got how much in which minute, and what the late change took back."""
    minute = f.floor((f.unix_seconds("time") - int(START.timestamp())) / 60).alias("minute")
    sign = f.when(f.col("operation") == "retract", -1).otherwise(1)
    rows = (
        deliveries.groupBy("subscription", minute)
        .agg(f.sum(sign).alias("net"), f.sum((1 - sign) / 2).cast("int").alias("back"))
        .collect()
    )
    heads = "".join(f"minute {m + 1:<6}" for m in range(MINUTES))
    click.echo(f"\n{'deliveries':<14}{heads}".rstrip())
    for name in [*SHOWN, "others"]:
        cells = []
        for number in range(MINUTES):
            mine = [
                row
                for row in rows
                if row["minute"] == number
                and (
                    row["subscription"] == name
                    or (name == "others" and row["subscription"] not in SHOWN)
                )
            ]
            net, back = sum(row["net"] for row in mine), sum(row["back"] for row in mine)
            cells.append(f"{net:,}" + (f" (-{back:,})" if back else ""))
        click.echo(f"{name:<14}{''.join(f'{cell:<13}' for cell in cells)}".rstrip())
    click.echo("\n(-n): n deliveries that the late change took back again")
