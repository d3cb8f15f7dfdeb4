"""Small runs of the network benchmark, with real processes."""

from __future__ import annotations

import pytest

from tidegate.experiments.network import scenarios
from tidegate.experiments.network.scenarios import NetworkCase, Row

CASE = NetworkCase(
    200, events=400, rounds=1, seconds=0.3, latency_per_s=2_000, updates_per_s=300, publishers=3,
    idle=4,
)  # fmt: skip


@pytest.mark.slow
def test_throughput_compares_every_pair() -> None:
    row = scenarios.throughput(CASE, 3)
    assert row.wrong == 0
    assert row.deliveries > 0
    assert 0 < row.slowest_per_s <= row.median_per_s <= row.fastest_per_s
    assert row.subscribed_per_s > 0


@pytest.mark.slow
def test_latency_and_updates() -> None:
    row = scenarios.latency(CASE, 2)
    assert row.wrong == 0
    assert 0 < row.p50_ms <= row.p99_ms
    row = scenarios.with_updates(CASE, 2)
    assert row.wrong == 0
    assert row.updates_per_s > 0


@pytest.mark.slow
def test_confirmed_line_and_idle() -> None:
    in_batches, singly = scenarios.confirmed(CASE, 2)
    assert in_batches.wrong == 0
    assert in_batches.median_per_s > 0
    assert singly.median_per_s > 0
    row = scenarios.line_of_three(CASE, 2)
    assert row.wrong == 0
    assert scenarios.idle(CASE).connections == 4


@pytest.mark.slow
def test_a_wrong_pair_is_found() -> None:
    with scenarios._running(CASE, 2) as run:
        expected = run.pairs.copy()
        expected[0, 1] = (expected[0, 1] + 1) % 200
        assert run.wrong_pairs(expected) > 0


def test_the_median_of_the_rates() -> None:
    row = Row("tidegate", "x", 1)
    row.set_rates([3.0, 1.0, 2.0])
    assert (row.median_per_s, row.slowest_per_s, row.fastest_per_s) == (2.0, 1.0, 3.0)
