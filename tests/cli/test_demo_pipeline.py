"""The pipeline of the demo: the printed counts are those of its filters."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tidegate.cli.demo_pipeline import MINUTES, OTHERS, SHOWN, START, DemoPipeline, show_pipeline
from tidegate.language.filters import parse
from tidegate.spark import BatchReport

EVENTS = 600
SEED = 7
Row = dict[str, Any]


def written(folder: Path, seed: int = SEED, events: int = EVENTS) -> tuple[list[Row], list[Row]]:
    """The events and the changes of all minutes."""
    demo = DemoPipeline(folder, events, seed)
    for minute in range(MINUTES):
        demo.write_minute(minute)
    quotes = [pq.read_table(folder / "events" / f"{n}.parquet") for n in range(MINUTES)]
    lines = [(folder / "changes" / f"{n}.jsonl").read_text() for n in range(MINUTES)]
    return (
        [row for table in quotes for row in table.to_pylist()],
        [json.loads(line) for text in lines for line in text.splitlines()],
    )


@pytest.mark.parametrize("events", [7, 100])
def test_events_fill_their_minutes_in_order(tmp_path: Path, events: int) -> None:
    quotes, _ = written(tmp_path, events=events)
    times = [row["time"] for row in quotes]
    assert len(times) == MINUTES * events
    assert all(first < second for first, second in pairwise(times))
    assert times[::events] == [START + timedelta(minutes=n) for n in range(MINUTES)]
    assert times[-1] < START + timedelta(minutes=MINUTES)


def test_a_seed_is_a_market(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    first, again = written(tmp_path / "a"), written(tmp_path / "b")
    assert first == again
    assert written(tmp_path / "c", SEED + 1)[0] != first[0]


def test_the_changes_are_those_that_are_told_of(tmp_path: Path) -> None:
    _, changes = written(tmp_path)
    begun = [row for row in changes if row["op"] == "subscribe"]
    assert len(begun) == len(SHOWN) + OTHERS
    assert {row["id"]: row["filter"] for row in begun[: len(SHOWN)]} == SHOWN
    later = [(row["id"], row["params"], row["time"]) for row in changes[len(begun) :]]
    assert later == [
        ("parametric", {"limit": 100}, "2026-01-05T09:01:00+00:00"),
        ("parametric", {"limit": 25}, "2026-01-05T09:01:30+00:00"),
    ]


def wanted(quotes: list[Row]) -> dict[str, list[int]]:
    """How many events each of the shown filters matches in each minute."""
    found = {name: [0] * MINUTES for name in SHOWN}
    for row in quotes:
        t = (row["time"] - START).total_seconds()
        limit = 200 if t < 60 else 100 if t < 90 else 25
        for name, text in SHOWN.items():
            params = {"limit": limit} if name == "parametric" else {}
            found[name][int(t // 60)] += parse(text).matches(row, params, t=t)
    return found


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_what_is_shown_is_what_the_filters_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.cli.demo_pipeline.OTHERS", 50)  # only the shown ones are judged
    reports: list[BatchReport] = []
    show_pipeline(EVENTS, SEED, reports.append)
    lines = capsys.readouterr().out.splitlines()
    table = lines[lines.index("deliveries    minute 1     minute 2     minute 3") + 1 :]
    cells = {
        line[:14].strip(): [line[at : at + 13].split() for at in (14, 27, 40)] for line in table[:5]
    }
    quotes, _ = written(tmp_path)
    shown = {name: [int(cell[0].replace(",", "")) for cell in cells[name]] for name in SHOWN}
    assert shown == wanted(quotes)
    assert all(sum(counts) > 0 for counts in shown.values())
    # the late change makes another version, so all that the one before delivered is taken back
    late = timedelta(seconds=90), timedelta(seconds=120)
    before = parse("symbol = 'S0' and price < 100")
    back = sum(before.matches(row) for row in quotes if late[0] <= row["time"] - START < late[1])
    assert [cell[1:] for cell in cells["parametric"]] == [[], [f"(-{back})"], []]
    assert back > 0
    assert [report.corrected for report in reports] == [0, 0, 1]
    assert sum(report.events for report in reports) == MINUTES * EVENTS
