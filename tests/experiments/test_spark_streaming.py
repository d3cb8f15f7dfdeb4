"""The files of the measured stream: in the order of time, without late rows."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidegate.experiments.spark_streaming import SINCE, WARM_UP, StreamCase, write_files
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import versions_of

CASE = StreamCase(
    subscriptions=20, events_per_batch=100, events_per_s=50, changes_per_s=10, batches=2
)


def test_changes_come_as_often_as_their_seconds_say() -> None:
    assert CASE.changes_per_batch == 20
    assert StreamCase(events_per_batch=10, events_per_s=100, changes_per_s=5).changes_per_batch == 0


def changes(folder: Path, batch: int) -> list[Change]:
    lines = (folder / "changes" / f"{batch:03}.json").read_text().splitlines()
    return [Change.of(json.loads(line)) for line in lines]


def test_events_and_changes_of_a_batch_are_of_one_time(tmp_path: Path) -> None:
    write_files(CASE, tmp_path)
    batches = CASE.batches + WARM_UP
    assert len(list((tmp_path / "events").iterdir())) == batches
    times: list[datetime] = []
    for batch in range(batches):
        table = pq.read_table(tmp_path / "events" / f"{batch:03}.parquet")
        mine: list[Any] = table.column("time").to_pylist()
        times += mine
        if batch:
            made = changes(tmp_path, batch)
            assert len(made) == CASE.changes_per_batch
            assert all(mine[0] <= each.time <= mine[-1] for each in made)
    assert times[0] == SINCE
    assert times == sorted(times)


def test_all_changes_can_be_made(tmp_path: Path) -> None:
    write_files(CASE, tmp_path)
    made = [each for batch in range(CASE.batches + WARM_UP) for each in changes(tmp_path, batch)]
    assert [each.op for each in made[: CASE.subscriptions]] == [Op.SUBSCRIBE] * CASE.subscriptions
    versions, refused = versions_of(made)
    assert refused == []
    assert len({each.id for each in versions}) == CASE.subscriptions
    assert all(":least" in each.filter for each in versions)
