from __future__ import annotations

from itertools import islice, pairwise, takewhile
from random import Random

import pytest

from tidegate.simulation.arrivals import Bursts, arrivals

MINUTES_US = 600_000_000


@pytest.mark.parametrize("bursts", [None, Bursts()])
def test_the_mean_rate(bursts: Bursts | None) -> None:
    times = list(takewhile(lambda us: us < MINUTES_US, arrivals(Random(1), 50.0, bursts)))
    assert 0.9 < len(times) / (50 * 600) < 1.1
    assert times == sorted(times)


def test_bursts_have_silence_between_them() -> None:
    def longest_gap_us(bursts: Bursts | None) -> int:
        times = islice(arrivals(Random(1), 100.0, bursts), 5_000)
        return max(after - before for before, after in pairwise(times))

    assert longest_gap_us(None) < 200_000
    assert longest_gap_us(Bursts()) > 3_000_000


def test_a_rate_of_0_has_no_arrivals() -> None:
    assert list(arrivals(Random(1), 0.0)) == []
