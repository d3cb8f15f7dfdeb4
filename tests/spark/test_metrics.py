"""Metrics are the sums of the reports of micro-batches, and can be read over HTTP."""

from __future__ import annotations

import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidegate import ConnectorError
from tidegate.spark.metrics import Metrics
from tidegate.spark.streaming.micro_batch import BatchReport

REPORT = BatchReport(
    batch=0,
    seconds=0.25,
    events=10,
    changes=3,
    matches=40,
    late=1,
    bad=2,
    corrected=4,
    subscriptions=7,
    latest=None,
)


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(f"tidegate_{name}")


def test_counts_are_added_up() -> None:
    metrics = Metrics()
    metrics.add(REPORT)
    metrics.add(replace(REPORT, batch=1, events=5, seconds=1.5, subscriptions=6))
    names = ("events", "changes", "matches", "late", "bad", "corrected")
    assert [value(metrics, f"{name}_total") for name in names] == [15, 6, 80, 2, 4, 8]
    assert value(metrics, "subscriptions") == 6  # the current number, not a sum
    assert value(metrics, "batch_seconds_count") == 2
    assert value(metrics, "batch_seconds_sum") == 1.75


def test_the_lag_is_that_of_the_latest_event() -> None:
    metrics = Metrics()
    metrics.add(REPORT)
    assert value(metrics, "lag_seconds") == 0  # not known yet
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    metrics.add(replace(REPORT, latest=hour_ago))
    lag = value(metrics, "lag_seconds")
    assert lag is not None
    assert lag >= 3600
    metrics.add(REPORT)  # a batch without events does not change it
    assert value(metrics, "lag_seconds") == lag


def test_two_pipelines_are_counted_apart() -> None:
    first, second = Metrics(), Metrics()
    first.add(REPORT)
    assert value(second, "events_total") == 0


def test_they_are_served() -> None:
    metrics = Metrics()
    metrics.add(REPORT)
    port = metrics.serve(0, "127.0.0.1")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert "tidegate_matches_total 40.0" in answer.read().decode().splitlines()
    with pytest.raises(ConnectorError, match=f"cannot be served at 127.0.0.1:{port}: "):
        Metrics().serve(port, "127.0.0.1")


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_there_is_not(port: int) -> None:
    with pytest.raises(ConnectorError, match=f"cannot be served at 127.0.0.1:{port}: "):
        Metrics().serve(port, "127.0.0.1")


def test_an_address_that_there_is_not() -> None:
    with pytest.raises(ConnectorError, match=r"cannot be served at no\.such\.host\.invalid:0: "):
        Metrics().serve(0, "no.such.host.invalid")
