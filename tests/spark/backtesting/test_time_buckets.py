"""Time buckets: their width, their number and their beginnings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tidegate import BadValueError
from tidegate.language.values import to_us
from tidegate.spark.backtesting.time_buckets import BUCKETS_MAX, CHOSEN_MAX, TimeBuckets

SECOND_US = 1_000_000


@pytest.mark.parametrize("span_us", [0, 1, 999, 10**6, 10**8, 10**10, 10**13, 10**15, 10**17])
def test_a_width_is_chosen_that_gives_a_line(span_us: int) -> None:
    buckets = TimeBuckets.over(12345, 12345 + span_us, None)
    assert 1 <= buckets.count <= CHOSEN_MAX + 1
    places = buckets.indexes(np.array([12345, 12345 + span_us]))
    assert places.tolist() == [0, buckets.count - 1]


def test_buckets_begin_at_round_times() -> None:
    first = datetime(2026, 1, 2, 9, 59, 59, tzinfo=UTC)
    buckets = TimeBuckets.over(to_us(first), to_us(first) + SECOND_US, timedelta(hours=1))
    assert [buckets.begin(place).hour for place in range(buckets.count)] == [9, 10]
    assert buckets.width == timedelta(hours=1)


def test_the_first_bucket_of_all() -> None:
    first = to_us(datetime.min.replace(tzinfo=UTC))
    buckets = TimeBuckets.over(first, first, timedelta(days=7))
    assert buckets.begin(0) == datetime.min.replace(tzinfo=UTC)


def test_limits() -> None:
    with pytest.raises(BadValueError, match=r"100,001 buckets of 1 s, and at most 10,000"):
        TimeBuckets.over(0, 100_000 * SECOND_US, timedelta(seconds=1))
    assert (
        TimeBuckets.over(0, BUCKETS_MAX * SECOND_US - 1, timedelta(seconds=1)).count == BUCKETS_MAX
    )
    with pytest.raises(BadValueError, match="wider than 0"):
        TimeBuckets.over(0, 1, timedelta(0))
