from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.network.observing.counters import SECONDS, Counters, Histogram


@given(st.lists(st.floats(0, 10)))
def test_buckets_are_cumulative(numbers: list[float]) -> None:
    histogram = Histogram(SECONDS)
    for number in numbers:
        histogram.observe(number)
    assert histogram.cumulative() == [
        *((str(bound), sum(each <= bound for each in numbers)) for bound in SECONDS),
        ("+Inf", len(numbers)),
    ]
    assert histogram.sum == sum(numbers)


def test_quantile_of_nothing() -> None:
    histogram = Histogram((1.0,))
    assert histogram.quantile(0.5) is None
    histogram.observe(5)
    assert histogram.quantile(0.5) == float("inf")


def test_counters_begin_at_zero() -> None:
    counters = Counters()
    counters.missed["block"] += 3
    assert Counters().missed == {}
    assert (counters.turns.count, counters.published) == (0, 0)
