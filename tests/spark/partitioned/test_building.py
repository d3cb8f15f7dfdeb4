"""Workers build the same indexes as one process, and tell what is wrong with subscriptions."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from tidegate import StateError, SubscriptionError
from tidegate.experiments.workloads import WORKLOADS
from tidegate.matching.batches import EventBatch, VersionMatches
from tidegate.matching.event_kinds import EventKinds
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.spark import match
from tidegate.spark.partitioned.building import BuildTask, BuiltIndexes, Notes, build_indexes
from tidegate.spark.partitioned.plan import PartitionPlan
from tidegate.spark.storage.folder import Folder
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.subscription_tables import as_data_frame, read_versions

pytestmark = pytest.mark.xdist_group("spark")

PLAN = PartitionPlan("symbol", True, 2, (2, 1, 1), (1, 1, 1))


@pytest.fixture(scope="module")
def empty(spark: SparkSession) -> DataFrame:
    made = t.StructType.fromDDL("s string, n int")
    assert isinstance(made, t.StructType)
    return spark.createDataFrame([], made)


def built(spark: SparkSession, table: pa.Table, folder: Folder | None) -> BuiltIndexes:
    rows = as_data_frame(spark, table).repartition(3)
    events = EventKinds({}, "")
    return build_indexes(
        rows, PLAN, table.num_rows, folder, events, copied=False, timeless=True, skip_bad=False
    )


@pytest.mark.parametrize("through_the_driver", [False, True])
def test_together_they_match_what_one_index_matches(
    spark: SparkSession, tmp_path: Path, through_the_driver: bool
) -> None:
    workload = WORKLOADS["market"]
    subscriptions, events = workload.subscriptions(500), EventBatch.of(workload.events(300))
    folder = None if through_the_driver else LocalFolder(tmp_path)
    found = built(spark, subscriptions, folder)
    assert sorted(found.files) == list(range(PLAN.indexes))
    assert (found.versions, found.past) == (500, 0)
    assert {"symbol", "price", "volume"} <= found.notes.attributes
    pairs: list[tuple[int, str]] = []
    for file in found.files.values():
        matches = file.open().match(events)
        pairs += _pairs(matches)
    assert sorted(pairs) == _matched_by_one(subscriptions, events)


def _matched_by_one(subscriptions: pa.Table, events: EventBatch) -> list[tuple[int, str]]:
    matches = AsOfMatcher(read_versions(subscriptions, timeless=True, skip_bad=False)).match(events)
    return sorted(_pairs(matches))


def _pairs(matches: VersionMatches) -> list[tuple[int, str]]:
    numbers: Any = pa.array(matches.numbers)
    ids = matches.columns.subscription.take(numbers).to_pylist()
    return list(zip(matches.events.tolist(), map(str, ids), strict=True))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    task = BuildTask(LocalFolder(tmp_path / "file"), EventKinds({}, ""))
    row = {"index": 0, "content": pickle.dumps([])}
    fields: list[Any] = [pa.field("index", pa.int32()), pa.field("content", pa.binary())]
    schema = pa.schema(fields)
    with pytest.raises(StateError, match=r"file/tidegate-.*: "):
        list(task(iter([pa.RecordBatch.from_pylist([row], schema=schema)])))


def test_of_many_bad_subscriptions_the_same_are_shown() -> None:
    all_notes = Notes()
    for part in (["d", "b"], ["a", "e", "f", "g"], ["c"]):
        some = Notes()
        some.add_bad(part)
        all_notes.add(some)
    assert (all_notes.bad, all_notes.bad_count) == (["a", "b", "c"], 7)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("s", "a", None), ("s", "d", None)], "there already is a subscription 's'"),
        ([("s", ":p", '{"p": [1]}')], "subscription 's': parameter :p: a list is not a value"),
        ([("s", "5 and n = :p", '{"q": 1}')], "subscription 's': the filter has no parameter :q"),
    ],
)
def test_bad_subscriptions_are_found_as_without_partitions(
    empty: DataFrame, rows: list[tuple[str, str, str | None]], reason: str
) -> None:
    values = [value if value[0] in ":5" else repr(value) for _, value, _ in rows]
    table = pa.table(
        {
            "id": [id for id, _, _ in rows],
            "filter": [f"s = {value}" for value in values],
            "params": pa.array([params for _, _, params in rows], pa.string()),
        }
    )
    for attribute in (None, "s"):
        with pytest.raises(SubscriptionError, match=reason):
            match(empty, table, partition_by=attribute)
    match(empty, table, partition_by="s", skip_bad=True)


def test_bad_subscriptions_are_left_out_as_without_partitions(spark: SparkSession) -> None:
    ids = ["bad", "first", "first", "bad", "rest"]
    filters = ["s = ", "s = 'a'", "s = 'd'", "s = 'a'", "n = 1"]
    table = pa.table({"id": ids, "filter": filters})
    events = spark.createDataFrame([("a", 0), ("d", 1)], "s string, n int")
    alone, partitioned = (
        match(events, table, key="n", partition_by=attribute, skip_bad=True).toArrow()
        for attribute in (None, "s")
    )
    wanted = [(0, "bad"), (0, "first"), (1, "rest")]
    for found in (alone, partitioned):
        assert sorted((row["n"], row["subscription"]) for row in found.to_pylist()) == wanted


def test_the_changes_of_a_log_are_applied_in_order(spark: SparkSession) -> None:
    """All of one subscription come to one task, those of one time in the order of the table."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {"time": when, "op": op, "id": str(id), "filter": "n < :p" if op == "subscribe" else None,
         "params": f'{{"p": {value}}}'}
        for op, value in [("subscribe", 1), ("update", 9), ("update", 3)]
        for id in range(50)
    ]  # fmt: skip
    log = spark.createDataFrame(pa.Table.from_pylist(rows)).coalesce(1)
    events = spark.createDataFrame([(2, when), (3, when)], "n int, time timestamp")
    found = match(events, log, "time", partition_by="n", key="n").toArrow()
    assert found.column("n").to_pylist() == [2] * 50
    assert set(found.column("subscription").to_pylist()) == {str(id) for id in range(50)}
