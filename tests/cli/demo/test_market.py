from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from tidegate.cli.demo.market import MINUTES, Market
from tidegate.language.filters import parse

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_quotes_are_numbered_and_fill_their_minutes_in_order() -> None:
    market = Market(301, seed=7)
    minutes = [list(market.minute(minute, START)) for minute in range(MINUTES)]
    quotes = [each for quotes in minutes for each in quotes]
    assert [each.attributes["n"] for each in quotes] == list(range(301))
    times = [each.time for each in quotes if each.time is not None]
    assert all(first < second for first, second in pairwise(times))
    assert [quotes[0].time for quotes in minutes] == [
        START + timedelta(minutes=minute) for minute in range(MINUTES)
    ]
    assert times[-1] < START + timedelta(minutes=MINUTES)


def test_a_seed_is_a_market() -> None:
    first, again, other = (list(Market(30, seed).minute(1, START)) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_all_groups_have_filters_that_hold_their_values() -> None:
    market = Market(30, seed=7)
    for name, wanted in market.groups().items():
        for text, values in wanted[:20]:
            assert set(parse(text).parameters) == set(values), name
    assert [market.limit(3, minute) for minute in range(MINUTES)] == [203, 103, 28]
