"""The benchmark of memory over time: what a cycle does, and what is measured."""

from __future__ import annotations

import pytest

from tidegate.experiments import memory_growth
from tidegate.experiments.memory_growth import Footing, MemoryGrowth, cycle, measure
from tidegate.matching.engine import Engine


@pytest.mark.parametrize("matcher", ["naive", "rete"])
def test_a_cycle_leaves_no_subscription_behind(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    for number in range(3):
        cycle(engine, number)
    assert len(engine) == 0


def test_growth_is_that_of_the_second_half() -> None:
    first, second, third = (Footing(100 * n, 30.0 + n // 2, 1.0, 1.0) for n in range(3))
    growth = MemoryGrowth("tree", 5, first, second, third, 3.0, 40.0)
    assert growth.growth_bytes == pytest.approx(2**20 / 100)


@pytest.mark.slow  # matches batches
def test_before_after_and_after_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_growth, "BATCH_EVENTS", 50)
    lines: list[str] = []
    growth = measure("rete", 20, 30, lines.append)
    footings = (growth.before, growth.after, growth.after_twice)
    assert [each.cycles for each in footings] == [0, 20, 40]
    assert all(each.match_us > 0 and each.batch_us > 0 for each in footings)
    assert 0 < growth.after.resident_mb <= growth.peak_mb
    assert lines == ["rete: cycle 0 of 40", "rete: cycle 20 of 40"]
