from __future__ import annotations

from collections import Counter

import pytest

from tidegate.cli.demo.comparison import show_comparison
from tidegate.cli.demo.market import Market
from tidegate.cli.demo.network_run import Delivery, NetworkRun
from tidegate.cli.demo.spark_run import SparkRun
from tidegate.spark import BatchReport

DELIVERIES: Counter[Delivery] = Counter({(1, "static-0"): 1, (2, "evolving-0"): 1})
CHANGES: list[dict[str, object]] = [
    {"op": "subscribe", "id": "static-0"},
    {"op": "subscribe", "id": "evolving-0"},
    {"op": "update", "id": "evolving-0"},
]


def shown(
    capsys: pytest.CaptureFixture[str],
    network: Counter[Delivery],
    pipeline: Counter[Delivery],
    *,
    events: int = 300,
    dropped: int = 0,
) -> tuple[bool, str]:
    run = NetworkRun(Market(300, 7), {}, CHANGES, network, dropped=dropped)
    reports = [
        BatchReport(
            batch=batch,
            events=events // 2,
            matches=1,
            subscriptions=2,
            seconds=2.0,
            changes=0,
            late=0,
            bad=0,
            corrected=0,
            latest=None,
        )
        for batch in range(2)
    ]
    is_same = show_comparison(run, SparkRun(pipeline, reports))
    return is_same, capsys.readouterr().out


def test_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    is_same, text = shown(capsys, DELIVERIES, Counter(DELIVERIES))
    assert is_same
    assert "delivered exactly the same" in text
    assert "in 2 micro-batches in 4.0 s; after the first one 75/s" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line[:1].isalpha()}
    assert rows["static"] == ["1", "0", "1", "1", "0", "0", "0"]
    assert rows["evolving"] == ["1", "1", "1", "1", "0", "0", "0"]
    assert rows["all"] == ["2", "1", "2", "2", "0", "0", "0"]


@pytest.mark.parametrize(
    ("network", "pipeline", "row"),
    [
        (DELIVERIES, DELIVERIES - Counter([(1, "static-0")]), ["2", "1", "2", "1", "1", "0", "0"]),
        (DELIVERIES - Counter([(1, "static-0")]), DELIVERIES, ["2", "1", "1", "2", "0", "1", "0"]),
        (DELIVERIES + DELIVERIES, DELIVERIES, ["2", "1", "4", "2", "0", "0", "2"]),
        (DELIVERIES + DELIVERIES, DELIVERIES + DELIVERIES, ["2", "1", "4", "4", "0", "0", "4"]),
    ],
)
def test_a_difference_is_found(
    capsys: pytest.CaptureFixture[str],
    network: Counter[Delivery],
    pipeline: Counter[Delivery],
    row: list[str],
) -> None:
    is_same, text = shown(capsys, network, pipeline)
    assert not is_same
    assert "have NOT delivered the same" in text
    [found] = [line.split()[1:] for line in text.splitlines() if line.startswith("all ")]
    assert found == row


def test_events_that_are_missing_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert not shown(capsys, DELIVERIES, DELIVERIES, events=298)[0]
    is_same, text = shown(capsys, DELIVERIES, DELIVERIES, dropped=3)
    assert not is_same
    assert "dropped 3 deliveries" in text
