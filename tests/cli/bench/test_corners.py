"""`tidegate bench corners`."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tidegate.cli.bench.corners import bench_corners

ARGUMENTS = ["--kind", "2 keys", "--subscriptions", "20", "--processor"]


def test_a_line_for_each_kind() -> None:
    shown = CliRunner().invoke(bench_corners, ARGUMENTS)
    assert shown.exit_code == 0
    first, last = shown.stdout.splitlines()
    assert first.split()[:2] == ["2", "keys"]
    assert last.endswith("of 1 kinds take over 100 µs an event")


def test_rows_for_programs() -> None:
    shown = CliRunner().invoke(bench_corners, [*ARGUMENTS, "--json"])
    (row,) = [json.loads(line) for line in shown.stdout.splitlines()]
    assert (row["kind"], row["subscriptions"]) == ("2 keys", 20)


def test_an_unknown_kind() -> None:
    shown = CliRunner().invoke(bench_corners, ["--kind", "friendly"])
    assert shown.exit_code == 2
    assert "no kind of filter has 'friendly' in its name" in shown.output
