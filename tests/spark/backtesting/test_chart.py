"""Charts of backtests can be drawn for every result."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate import BadValueError
from tidegate.spark.backtesting.chart import FORMATS, draw_backtest
from tidegate.spark.backtesting.result import Backtest, BucketCounts, Counts

pytestmark = pytest.mark.slow

START = datetime(2026, 1, 2, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NO_ROWS: Any = None
BEGINNINGS = {".pdf": b"%PDF", ".png": b"\x89PNG", ".svg": b"<?xml"}


def result(counts: list[Counts], first: datetime = START, every: timedelta = SECOND) -> Backtest:
    buckets = tuple(BucketCounts(first + n * every, 1, each) for n, each in enumerate(counts))
    last, total = buckets[-1].begin, sum(counts, Counts())
    return Backtest(len(counts), 1, total, first, last, every, buckets, (), 0, NO_ROWS)


@pytest.mark.parametrize("suffix", FORMATS)
def test_each_format_is_what_it_is_called(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"chart{suffix}"
    draw_backtest(result([Counts(1, 2, 1, 0), Counts(), Counts(3, 1, 0, 2)]), path)
    assert path.read_bytes().startswith(BEGINNINGS[suffix])


def test_the_counts_stand_in_the_chart(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw_backtest(result([Counts(1_000, 2_000, 1_500, 500)] * 2), path)
    text = path.read_text()
    for label in ("live, 2,000", "changed, 4,000", "entering, 3,000", "leaving, 1,000"):
        assert f"<!-- {label} -->" in text
    assert "<!-- Deliveries every 1 s, 2026-01-02 09:00:00 to 09:00:01 UTC -->" in text


@pytest.mark.parametrize(
    ("first", "every"),
    [
        (START, SECOND),
        (START, timedelta(days=365)),
        (datetime.min.replace(tzinfo=UTC), timedelta(days=1)),
        (datetime(9999, 12, 31, tzinfo=UTC), timedelta(days=1)),  # it ends when time has ended
    ],
)
@pytest.mark.filterwarnings("error")
def test_one_bucket_of_nothing(tmp_path: Path, first: datetime, every: timedelta) -> None:
    path = tmp_path / "chart.png"
    draw_backtest(result([Counts()], first, every), path)
    assert path.stat().st_size > 10_000


def test_a_chart_needs_times(tmp_path: Path) -> None:
    timeless = Backtest(1, 1, Counts(), None, None, None, (), (), 0, NO_ROWS)
    with pytest.raises(BadValueError, match="a chart shows counts over time"):
        draw_backtest(timeless, tmp_path / "chart.png")
    assert not list(tmp_path.iterdir())
