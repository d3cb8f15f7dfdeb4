"""The task that finds which steps events satisfy, run without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.index_files import DriverFile, IndexFile
from tidegate.spark.patterns.candidates import read_candidates
from tidegate.spark.patterns.steps import StepTask, step_id
from tidegate.spark.worker_tasks import DeliveryLayout

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_steps_of_a_pattern_stand_together(tmp_path: Path) -> None:
    steps = {
        "a:b": ["x > 0", "x > 5", "x = 9"],  # the id has the sign that ends the step's number
        "other": ["x = 9"],
        "late": ["x > 0"],
    }
    since = {"late": START + timedelta(seconds=2)}
    records = [
        SubscriptionRecord(step_id(index, id), step, since=since.get(id))
        for id, filters in steps.items()
        for index, step in enumerate(filters)
    ]
    path = tmp_path / "index.arrow"
    AsOfMatcher(records).save(path)
    times = [START + timedelta(seconds=second) for second in range(4)]
    events = pa.RecordBatch.from_pydict(
        {"time": pa.array(times, pa.timestamp("us", "UTC")), "x": [9, 0, 6, 1], "y": [1, 2, 3, 4]}
    )
    layout = DeliveryLayout("time", ("y",), grouped=False)
    task = StepTask(IndexFile(path.name, DriverFile(str(path))), layout)
    (found,) = task(iter([events, events.slice(1, 1)]))  # nothing comes of the second one
    rows = {
        (row["subscription"], *read_candidates(f"[{row['candidate']}]")[0][1:2]): row
        for row in found.to_pylist()
    }
    assert sorted(rows) == [("a:b", 1), ("a:b", 3), ("a:b", 7), ("late", 1), ("other", 1)]
    (candidate,) = read_candidates(f"[{rows['a:b', 7]['candidate']}]")
    assert candidate.event == {"y": 1}
    assert candidate.time_us == rows["a:b", 7]["time_us"] == 1767225600000000
    assert found.num_rows == 6  # "late" takes two events, both with its one step
