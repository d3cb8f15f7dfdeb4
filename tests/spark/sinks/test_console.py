"""The console sink prints a table of the first deliveries."""

from __future__ import annotations

import io

import pytest
from pyspark.sql import SparkSession

from tidegate.spark.sinks.console import ConsoleSink
from tidegate.spark.sinks.sink import Sink

pytestmark = pytest.mark.xdist_group("connectors")


def test_the_first_rows_are_printed_and_long_cells_shortened(spark: SparkSession) -> None:
    out = io.StringIO()
    sink: Sink = ConsoleSink(rows_max=2, out=out)
    ids = spark.createDataFrame([(1,), (2,), (3,)], "id bigint").coalesce(1)
    rows = ids.selectExpr("id", "repeat('x', id * 20) as note")
    sink.write(rows, 7)
    sink.write(rows.where("id = 1"), 8)
    sink.write(rows.where("id = 4"), 9)
    assert out.getvalue().splitlines() == [
        "batch 7: 3 deliveries, the first 2 of them",
        "  id  note",
        "  1   " + "x" * 20,
        "  2   " + "x" * 27 + "...",
        "batch 8: 1 delivery",
        "  id  note",
        "  1   " + "x" * 20,
        "batch 9: no deliveries",
    ]


def test_by_default_it_prints_to_standard_output(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    ConsoleSink().write(spark.range(0), 0)
    assert capsys.readouterr().out == "batch 0: no deliveries\n"
