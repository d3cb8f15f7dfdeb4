"""Settings that make no sense are refused."""

from __future__ import annotations

import pytest

from tidegate.errors import RoutingError
from tidegate.routing.summaries.settings import LONGEST_US, SummarySettings


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("period_us", -1, "the period of summaries is 0 us or more, and a year at most, not -1"),
        ("period_us", LONGEST_US + 1, "the period of summaries is 0 us or more, and a year"),
        ("batch_max", 0, "a batch of summaries has 1 or more changes, not 0"),
        ("degree_max", 0, "a virtual degree is 1 or more, not 0"),
        ("window_us", 0, "the window of a summary is 1 us or more, and a year at most, not 0"),
        ("window_us", LONGEST_US + 1, "the window of a summary is 1 us or more, and a year"),
    ],
)
def test_what_is_refused(field: str, value: int, problem: str) -> None:
    with pytest.raises(RoutingError, match=problem):
        SummarySettings(**{field: value})  # type: ignore[arg-type]


def test_what_is_possible() -> None:
    assert SummarySettings(period_us=0, degree_max=1).subsumption
    assert SummarySettings(period_us=LONGEST_US, window_us=LONGEST_US).degree_max is None
