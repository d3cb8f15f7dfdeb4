"""`tidegate match --engine spark` writes what the oracle writes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from tidegate.cli import cli

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["match", *map(str, arguments)])


def lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def drawn_events(rng: random.Random) -> list[dict[str, object]]:
    """Events whose attributes are of any kinds; `a` and `A` differ."""
    values: list[object] = [1, 2.5, "x", True, None, 2**53 + 1, "2026-01-01T00:00:05Z"]
    return [
        {
            "time": f"2026-01-01T00:00:{rng.randint(0, 59):02}Z",
            **{
                name: rng.choice(values) for name in ("a", "A", "b.c", "when") if rng.random() < 0.8
            },
            "nested": {"price": rng.choice(values[:4])},
        }
        for _ in range(200)
    ]


def test_subscriptions(tmp_path: Path, spark: SparkSession) -> None:  # noqa: ARG001
    texts = [
        "a = 1", "a > 1", "a = 'x'", "A = true", "a = 9007199254740993", "`b.c` is not null",
        "nested.price >= 1", "a like 'x%' or A < 3", "when > timestamp '2026-01-01T00:00:04Z'",
    ]  # fmt: skip
    rows: list[dict[str, object]] = [{"id": text, "filter": text} for text in texts]
    subscriptions = lines(tmp_path / "subscriptions.jsonl", rows)
    rows_of_events = drawn_events(random.Random(3))
    for row in rows_of_events:
        if not isinstance(row.get("when"), str) or row["when"] == "x":
            row["when"] = None
    events = lines(tmp_path / "events.jsonl", rows_of_events)
    given = ("--subscriptions", subscriptions, "--events", events, "--timestamps", "when")
    wanted = run(*given, "--engine", "naive")
    found = run(*given, "--engine", "spark")
    assert (found.exit_code, found.output) == (0, wanted.output)
    assert wanted.output.count("\n") > 100


def test_changes_as_of_the_time_of_events(tmp_path: Path) -> None:
    rng = random.Random(4)
    changes: list[dict[str, object]] = []
    for number in range(60):
        time = f"2026-01-01T00:00:{rng.randint(0, 59):02}Z"
        row: dict[str, object] = {"time": time, "id": f"s{number % 12}"}
        filter = rng.choice(["a < :p", "a > :p + t / 10", "A = 'x' or a = :p"])
        more: list[dict[str, object]] = [
            {"op": "subscribe", "filter": filter, "params": {"p": rng.randint(0, 3)}},
            {"op": "update", "params": {"p": rng.choice([1, "x"])}},
            {"op": "unsubscribe"},
        ]
        changes.append({**row, **(more[0] if number < 24 else rng.choice(more))})
    log = lines(tmp_path / "log.jsonl", changes)
    events = lines(tmp_path / "events.jsonl", drawn_events(rng))
    given = ("--changes", log, "--events", events, "--event-time", "time", "--skip-bad")
    wanted = run(*given, "--engine", "naive")
    found = run(*given, "--engine", "spark")
    assert found.exit_code == 0
    assert found.stdout == wanted.stdout
    assert found.stderr.splitlines()[-1] == wanted.stderr.splitlines()[-1]
    assert wanted.stdout


def test_no_events(tmp_path: Path) -> None:
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "filter": "a = 1"}])
    events = lines(tmp_path / "e.jsonl", [])
    found = run("--subscriptions", subscriptions, "--events", events, "--engine", "spark")
    assert (found.exit_code, found.output) == (0, "")


def test_what_does_not_fit_a_space(tmp_path: Path) -> None:
    types = {"time": "timestamp", "when": "timestamp", "a": "float"}
    space = lines(tmp_path / "space.json", [{"name": "s", "attributes": types}])
    subscriptions: list[dict[str, object]] = [
        {"id": "a", "filter": "a < 3"},
        {"id": "b", "filter": "b < 3"},
        {"id": "when", "filter": "when > timestamp '2026-01-01T00:00:04Z'"},
    ]
    time = "2026-01-01T00:00:00Z"
    changes: list[dict[str, object]] = [
        {"time": time, "op": "subscribe", "id": "a", "filter": "a < :p", "params": {"p": 3}},
        {"time": "2026-01-01T00:00:10Z", "op": "update", "id": "a", "params": {"p": "x"}},
        {"time": "2026-01-01T00:00:20Z", "op": "update", "id": "a", "filter": "b < 3"},
    ]
    rows = [
        {name: value for name, value in row.items() if name in ("time", "a", "when")}
        for row in drawn_events(random.Random(5))
    ]
    events = ("--events", lines(tmp_path / "events.jsonl", rows), "--event-time", "time")
    for file in (
        ("--subscriptions", lines(tmp_path / "subscriptions.jsonl", subscriptions)),
        ("--changes", lines(tmp_path / "log.jsonl", changes)),
    ):
        given = (*file, *events, "--space", space, "--skip-bad")
        wanted = run(*given, "--engine", "naive")
        found = run(*given, "--engine", "spark")
        assert (found.exit_code, found.stdout) == (0, wanted.stdout)
        # files are listed in the order in which their first bad line was found
        counts = [each.stderr.splitlines()[-1].partition(" in all: ") for each in (found, wanted)]
        assert counts[0][0] == counts[1][0]
        assert sorted(counts[0][2].split(", ")) == sorted(counts[1][2].split(", "))
        assert wanted.stdout
