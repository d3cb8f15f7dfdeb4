"""The benchmark of large tables writes what it says, and its memory samples see all processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidegate import Engine
from tidegate.experiments import spark_building
from tidegate.experiments.spark_building import CHECKED_EVENTS, _MemorySamples, _write_tables


def test_the_expected_matches_are_those_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_building, "PIECE", 200)
    monkeypatch.setattr(spark_building, "EVENTS", 50)
    expected = _write_tables(tmp_path, 500)
    subscriptions = pq.read_table(tmp_path / "subscriptions")
    assert set(subscriptions.column("id").to_pylist()) == {f"s{n}" for n in range(500)}
    engine = Engine(clock=lambda: None)
    engine.subscribe_batch(subscriptions)
    events = pq.read_table(tmp_path / "events.parquet").drop_columns(["event"])
    assert events.num_rows == 50
    assert engine.match_batch(events.slice(0, CHECKED_EVENTS)).num_rows == expected > 0


def test_memory_of_a_child_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_building, "SAMPLE_S", 0.01)
    program = "held = bytearray(b'1') * 200_000_000; input()"
    with (
        _MemorySamples() as samples,
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as child,
    ):
        while samples.workers < 200_000_000:
            assert child.poll() is None
        child.communicate(b"\n")
    assert samples.all >= samples.workers
