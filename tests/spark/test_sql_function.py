"""A table function in SQL gives what `match` gives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidegate import SubscriptionError
from tidegate.errors import ConnectorError
from tidegate.spark import match
from tidegate.spark.sql_function import register_match_function

pytestmark = pytest.mark.xdist_group("spark")

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_it_gives_what_match_gives(spark: SparkSession) -> None:
    rows = [(n, "IBM" if n % 2 else None, START + timedelta(hours=n)) for n in range(12)]
    events = spark.createDataFrame(rows, "n int, symbol string, time timestamp")
    events.createOrReplaceTempView("quotes")
    table = pa.table(
        {
            "id": ["a", "b"],
            "filter": ["symbol = 'IBM' and n > :least", "n < t / 1800"],
            "params": ['{"least": 3}', None],
            "since": [START, START + timedelta(hours=2)],
        }
    )
    register_match_function(spark, "wanted", events, table, "time", key=["n", "time"])
    found = spark.sql("SELECT * FROM wanted(TABLE(quotes))")
    assert found.columns == ["n", "time", "subscription", "subscriber", "version"]
    expected = match(events, table, "time", key=["n", "time"])
    assert sorted(found.toArrow().to_pylist(), key=str) == sorted(
        expected.toArrow().to_pylist(), key=str
    )
    some = spark.sql(
        "SELECT n FROM wanted(TABLE(SELECT * FROM quotes WHERE n > 8)) WHERE subscription = 'a'"
    )
    assert sorted(row["n"] for row in some.collect()) == [9, 11]


def test_what_is_wrong_is_said(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    events = spark.createDataFrame([(1, "a")], "n int, s string")
    table = pa.table({"id": ["a"], "filter": ["n > 0"]})
    register_match_function(spark, "above_zero", events, table)
    events.select("n").createOrReplaceTempView("numbers")
    with pytest.raises(PythonException, match=r"above_zero takes tables with .* n, s, not n"):
        spark.sql("SELECT * FROM above_zero(TABLE(numbers))").collect()
    mistaken = pa.table({"id": ["a"], "filter": ["m > 0"]})
    with pytest.raises(SubscriptionError, match="no event has the attribute m"):
        register_match_function(spark, "mistaken", events, mistaken, strict=True)
    monkeypatch.delattr(f, "arrow_udtf")
    with pytest.raises(ConnectorError, match=r"needs Spark 4\.1"):
        register_match_function(spark, "old", events, table)
