"""Charts of benchmark results: drawn also if little or nothing was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.experiments.charts import draw_matching, draw_precision, draw_updates
from tidegate.experiments.matching import Latency, MatchingSpeed, Memory
from tidegate.experiments.summary_precision import PAPER_BUDGET, Precision

pytestmark = pytest.mark.slow

SPEED = MatchingSpeed(
    workload="moving", engine="columnar", subscriptions=1000, events=100, matches_per_event=1.0,
    median_per_s=900.0, slowest_per_s=800.0, fastest_per_s=1000.0, cpu_share=0.99,
    update_share=0.0, threads=2, threads_ratio=1.8, threads_cpu_ratio=1.1, baseline_per_s=100.0,
    baseline_ratio=9.0, single=Latency(500.0, 1500.0, 3000.0), update=Latency(1.0, 3.0, 9.0),
    build_s=0.1, memory=Memory(200.0, 100.0, 120.0), verified_events=16, wrong_pairs=0,
)  # fmt: skip


def drawn(path: Path) -> str:
    """A chart as SVG, in which Matplotlib writes each text as a comment."""
    assert path.stat().st_size > 1000
    return path.read_text()


def test_each_engine_has_its_lines(tmp_path: Path) -> None:
    sizes = [100, 1000, 10_000]
    speeds = [
        replace(SPEED, engine=e, subscriptions=n) for e in ("naive", "columnar") for n in sizes
    ]
    draw_matching(speeds, tmp_path / "m.svg")
    text = drawn(tmp_path / "m.svg")
    for engine in ("naive", "columnar"):
        assert f"<!-- {engine}, in batches -->" in text
        assert f"<!-- {engine}, one at a time -->" in text
    assert "<!-- brute force in NumPy -->" in text
    assert "<!-- Matching: workload moving, one thread -->" in text


def test_updates_stand_beside_their_goal(tmp_path: Path) -> None:
    draw_updates([SPEED, replace(SPEED, engine="naive", update=None)], tmp_path / "u.svg")
    text = drawn(tmp_path / "u.svg")
    assert "<!-- columnar, median -->" in text
    assert "<!-- columnar, 99th percentile -->" in text
    assert "<!-- goal, 5 µs -->" in text


def test_precision_by_budget(tmp_path: Path) -> None:
    exact = Precision("exact", None, 0.5, True, 100, 90_000, 1.0, 1.0, 0.0)
    rows = [
        exact,
        replace(exact, budget="4 rows", rows_max=4, bytes=50_000, in_vain=0.2),
        replace(exact, budget=PAPER_BUDGET, covered_left_out=False, bytes=70_000),
    ]
    draw_precision(rows, tmp_path / "p.svg")
    text = drawn(tmp_path / "p.svg")
    assert "<!-- without covered ones, subsumption 0.5 -->" in text
    assert "<!-- all subscriptions, rows as in section 3.1 -->" in text
    assert "<!-- 4 rows -->" in text


@pytest.mark.parametrize("speeds", [[], [SPEED]])
def test_little_or_nothing(tmp_path: Path, speeds: list[MatchingSpeed]) -> None:
    draw_matching(speeds, tmp_path / "m.svg")
    draw_updates(speeds, tmp_path / "u.svg")
    assert drawn(tmp_path / "m.svg")
    assert drawn(tmp_path / "u.svg")
