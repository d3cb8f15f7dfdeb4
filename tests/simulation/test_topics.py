from __future__ import annotations

from collections import Counter
from random import Random

from tidegate.simulation.topics import PORTFOLIO_MAX, Portfolio, Topics


def drawn(topics: Topics) -> Counter[str]:
    random = Random(1)
    return Counter(topics.draw(random) for _ in range(20_000))


def test_popularity_follows_zipfs_law() -> None:
    counts = drawn(Topics(100, skew=1.0))
    assert counts.most_common(1)[0][0] == "t0"
    assert 1.8 < counts["t0"] / counts["t1"] < 2.2
    assert 8 < counts["t0"] / counts["t9"] < 12


def test_without_skew_all_are_equally_popular() -> None:
    counts = drawn(Topics(10, skew=0.0))
    assert len(counts) == 10
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_a_region_has_a_ranking_of_its_own() -> None:
    assert drawn(Topics(100, 1.0, shift=50)).most_common(1)[0][0] == "t50"


def test_a_publisher_advertises_what_it_publishes() -> None:
    random = Random(1)
    portfolio = Portfolio.random(Topics(100, 1.0), "it's east", random)
    assert len(portfolio.topics) == PORTFOLIO_MAX
    advertisement = portfolio.advertisement()
    assert all(advertisement.allows(portfolio.event(random, 5)) for _ in range(200))


def test_filters_match_events_of_their_topic() -> None:
    random = Random(1)
    topics = Topics(3, 1.0)
    portfolio = Portfolio.random(topics, "east", random)
    filters = [topics.random_filter(random) for _ in range(20)]
    events = [portfolio.event(random, 5) for _ in range(50)]
    assert any(each.matches(event) for each in filters for event in events)
    assert not all(each.matches(event) for each in filters for event in events)
