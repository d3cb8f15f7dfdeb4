"""The pipeline of the demo; `test_command.py` compares it with the network."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.cli.demo.market import Market
from tidegate.cli.demo.spark_run import SCHEMA


def test_the_schema_has_all_attributes_of_quotes() -> None:
    [quote, *_] = Market(300, seed=7).minute(0, datetime(2026, 1, 1, tzinfo=UTC))
    columns = [column.split()[0] for column in SCHEMA.split(", ")]
    assert {*quote.attributes, "_time"} == set(columns)
