"""Events that are too far ahead of the clock become bad records, and nothing else changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.spark_streams import Collected, Folders, as_of, event, net, subscribe
from tidegate.language.values import to_us
from tidegate.spark.streaming.future_events import TimeLimit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = TimeLimit("at", to_us(NOW + timedelta(hours=1)), timedelta(hours=1))
BAD = pa.struct([(name, pa.string()) for name in ("kind", "reason", "record", "source")])


def rows(*times: datetime | None, unit: Literal["s", "us", "ns"] = "us") -> pa.RecordBatch:
    kind = pa.struct([("at", pa.timestamp(unit, "UTC")), ("a", pa.int64())])
    events = [{"at": time, "a": number} for number, time in enumerate(times)]
    columns = [
        pa.array([*events, None, None], kind),
        pa.array([None] * len(times) + [{"kind": "event", "reason": "torn"}, None], BAD),
        pa.array([None] * (len(times) + 1) + ["change"]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["event", "bad", "change"])


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_only_what_is_beyond_the_limit_is_bad(unit: Literal["s", "us", "ns"]) -> None:
    last = NOW + timedelta(hours=1)
    given = rows(NOW, last, last + timedelta(seconds=1), None, unit=unit)
    found = LIMIT.apply(given)
    assert found.schema == given.schema
    for name, before in given.to_pydict().items():
        after = found.column(name).to_pylist()
        assert after[:2] + after[3:] == before[:2] + before[3:]
    assert found.column("event")[2].as_py() is None
    bad = found.column("bad")[2].as_py()
    assert bad["reason"].endswith("more than 1:00:00 ahead of the clock")
    assert json.loads(bad["record"]) == {"at": "2026-01-01 01:00:01+00:00", "a": 2}
    assert (bad["kind"], bad["source"]) == ("event", None)


def test_rows_that_are_all_good_are_not_copied() -> None:
    given = rows(NOW, None)
    assert LIMIT.apply(given) is given


@pytest.mark.xdist_group("spark")
def test_one_event_of_the_future_makes_no_other_late(spark: SparkSession, tmp_path: Path) -> None:
    folders, to, rejected = Folders(tmp_path), Collected(), Collected()
    changes = [subscribe(0, "s", "a < 5")]
    folders.add("changes", 0, changes)
    far = {"number": 9, "time": "2099-01-01T00:00:00+00:00", "a": 1.0}
    good = [event(0, 1, 4), event(1, 2, 4), event(2, 3, 7)]
    folders.add("events", 0, [far, good[0]])
    folders.add("events", 1, good[1:])
    reports = folders.run(spark, to, files=1, rejected=rejected, ahead=timedelta(days=3_000))
    assert [(each.late, each.bad) for each in reports] == [(0, 1), (0, 0)]
    assert net(to.rows) == as_of(spark, good, changes)
    [row] = rejected.rows
    assert json.loads(str(row["record"]))["number"] == 9
