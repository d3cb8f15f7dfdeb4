"""Filters that ask for what the events do not have are named, on the driver and by workers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tidegate import SubscriptionError
from tidegate.errors import MisfitWarning
from tidegate.spark import backtest, match
from tidegate.spark.misfits import SHOWN_MAX, Misfits

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "symbol string, price decimal(5,2), at timestamp, quote struct<size int>, nothing void"


@pytest.mark.parametrize(
    ("filter", "reason"),
    [
        ("prise > 1", r"no event has the attribute prise \(did you mean price\?\)"),
        ("Price > 1", r"no event has the attribute Price \(did you mean price\?\)"),
        ("quote.sise > 1", r"did you mean quote\.size"),
        ("price = 'low'", "price is a number in all events, and is compared with a string"),
        ("symbol > 5", "symbol is a string in all events, and is compared with a number"),
        ("at > '2026-01-01'", "a string; a time is written timestamp '2026-01-02T03:04:05Z'"),
        ("symbol = timestamp '2026-01-01T00:00:00Z'", "a timestamp; cast symbol to timestamp"),
    ],
)
def test_a_filter_that_looks_mistaken(spark: SparkSession, filter: str, reason: str) -> None:
    schema = t.StructType.fromDDL(SCHEMA)
    assert isinstance(schema, t.StructType)
    events = spark.createDataFrame([], schema)
    table = pa.table({"id": ["b", "a", "c"], "filter": [filter, filter, "price > 1"]})
    line = f"^subscription '[ab]' and 1 other: .*{reason}"
    for attribute in (None, "symbol"):
        with pytest.warns(MisfitWarning, match=line):
            match(events, table, partition_by=attribute)
        with pytest.raises(SubscriptionError, match=line):
            match(events, table, partition_by=attribute, strict=True)
    with pytest.warns(MisfitWarning, match=reason):
        backtest(events, filter)


def test_a_filter_that_may_be_meant(spark: SparkSession) -> None:
    schema = t.StructType.fromDDL(SCHEMA)
    assert isinstance(schema, t.StructType)
    events = spark.createDataFrame([], schema)
    filters = ["nothing = 5", "nothing = 'a'", "price > @floor + t", "quote.size in (1, 2)"]
    match(events, pa.table({"id": filters, "filter": filters}), strict=True)


def test_many_are_counted() -> None:
    some, others = Misfits(), Misfits()
    for n in range(SHOWN_MAX):
        some.found[f"a{n}"] = ("x", 1)
        others.found[f"b{n}"] = ("x", 1)
    others.found["a0"] = ("w", 2)
    some.add(others)
    with pytest.warns(MisfitWarning, match="^subscription 'w' and 2 others: a0(.*\n)*and 5 more"):
        some.report(strict=False)
