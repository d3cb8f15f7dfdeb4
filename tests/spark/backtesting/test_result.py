"""Results of backtests as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidegate.spark.backtesting.result import (
    SPARKLINE_MAX,
    Backtest,
    BucketCounts,
    Counts,
    SubscriberCounts,
    format_span,
    sparkline,
)

START = datetime(2026, 1, 2, 9, tzinfo=UTC)
NO_ROWS: Any = None
"""A placeholder for the deliveries, which these tests do not use."""


def result(counts: Sequence[Counts], every: timedelta = timedelta(minutes=1)) -> Backtest:
    """A backtest with some buckets, an event in each."""
    return Backtest(
        events=len(counts),
        subscriptions=1,
        counts=sum(counts, Counts()),
        first=START,
        last=START + (len(counts) - 1) * every,
        every=every,
        buckets=tuple(BucketCounts(START + n * every, 1, each) for n, each in enumerate(counts)),
        subscribers=(),
        subscribers_in_all=0,
        deliveries=NO_ROWS,
    )


TIMELESS = Backtest(3, 2, Counts(1, 2, 1, 0), None, None, None, (), (), 0, NO_ROWS)
NOTHING = Backtest(0, 0, Counts(), None, None, None, (), (), 0, NO_ROWS)


def test_counts() -> None:
    counts = Counts(5, 6, 3, 2)
    assert counts.staying == 3
    assert counts + Counts() == counts
    assert counts + Counts(1, 1, 1, 1) == Counts(6, 7, 4, 3)


@pytest.mark.parametrize(
    ("numbers", "most", "marks"),
    [
        ([], 0, ""),
        ([0, 0], 0, "  "),
        ([1], 1_000_000, "▁"),  # what is there is seen
        ([1_000_000, 999_999, 0], 1_000_000, "██ "),
        ([4, 5], 8, "▄▅"),
    ],
)
def test_sparklines(numbers: list[int], most: int, marks: str) -> None:
    assert sparkline(numbers, most) == marks


def test_a_summary() -> None:
    found = result([Counts(1, 2, 1, 0), Counts(), Counts(0, 4, 4, 0)])
    assert found.summary().splitlines() == [
        "3 events from 2026-01-02 09:00:00 to 09:02:00 UTC; 1 subscription differs",
        "",
        "            deliveries   over time, a mark for 1 min, the highest for 4",
        "live                 1   ▂",
        "changed              6   ▄ █",
        "entering             5   ▂ █",
        "leaving              0",
    ]


def test_a_summary_without_times() -> None:
    assert TIMELESS.summary().splitlines() == [
        "3 events without times; 2 subscriptions differ",
        "",
        "            deliveries",
        "live                 1",
        "changed              2",
        "entering             1",
        "leaving              0",
    ]
    assert NOTHING.summary().splitlines()[0] == "0 events; 0 subscriptions differ"


@pytest.mark.parametrize("count", [SPARKLINE_MAX, SPARKLINE_MAX + 1, 3 * SPARKLINE_MAX + 1])
def test_many_buckets_share_a_mark(count: int) -> None:
    lines = result([Counts(1, 1, 0, 0)] * count).summary().splitlines()
    together = -(-count // SPARKLINE_MAX)
    assert f"a mark for {together} min, the highest for {together}" in lines[2]
    marks = lines[3].split()[2]
    assert len(marks) == -(-count // together) <= SPARKLINE_MAX
    assert set(marks[:-1]) == {"█"}


def test_the_table_of_subscribers() -> None:
    long = "x" * 50
    some = (
        SubscriberCounts("ann", None, Counts(1, 1_234, 1_233, 0)),
        SubscriberCounts(None, long, Counts(1, 0, 0, 1)),
    )
    found = replace(result([Counts(2, 1_234, 1_233, 1)]), subscribers=some, subscribers_in_all=5)
    *_, head, first, second, more = found.summary().splitlines()
    assert head.split() == ["subscriber", "live", "changed", "entering", "leaving"]
    assert first.split() == ["ann", "1", "1,234", "1,233", "0"]
    assert second.split()[0] == "x" * 39 + "…"
    assert len(head) == len(first) == len(second)
    assert more == "and 3 more"


def test_the_span() -> None:
    found = result([Counts()])
    assert format_span(found) == "2026-01-02 09:00:00 to 09:00:00 UTC"
    later = replace(found, last=START + timedelta(days=1, microseconds=5))
    assert format_span(later) == "2026-01-02 09:00:00 to 2026-01-03 09:00:00.000005 UTC"
    assert format_span(TIMELESS) == ""


def test_json() -> None:
    found = replace(
        result([Counts(1, 2, 1, 0)], timedelta(milliseconds=500)),
        subscribers=(SubscriberCounts(None, "s", Counts(1, 2, 1, 0)),),
        subscribers_in_all=1,
    )
    counts = {"live": 1, "changed": 2, "entering": 1, "leaving": 0}
    begin = "2026-01-02T09:00:00Z"
    assert json.loads(json.dumps(found.to_json())) == {
        "events": 1,
        "subscriptions": 1,
        **counts,
        "first": begin,
        "last": begin,
        "every_s": 0.5,
        "buckets": [{"begin": begin, "events": 1, **counts}],
        "subscribers": [{"subscriber": None, "subscription": "s", **counts}],
        "subscribers_in_all": 1,
    }
    timeless = TIMELESS.to_json()
    assert [timeless[name] for name in ("first", "last", "every_s", "buckets")] == [
        None, None, None, [],
    ]  # fmt: skip
