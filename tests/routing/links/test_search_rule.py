"""In how many searches a broker finds links and own subscribers, and when it floods."""

from __future__ import annotations

from tidegate.routing.links.search_rule import (
    EVENTS_PER_FIRST_SAMPLE,
    EVENTS_PER_SAMPLE,
    SAMPLES,
    SPURIOUS_SEARCHES,
    Sample,
    SearchRule,
)


def after(samples: int, *, links: int = 90, own: int = 20, spurious: int = 0) -> SearchRule:
    """A rule after some samples of 100 steps; ``spurious`` of them have a spurious message."""
    rule = SearchRule()
    for number in range(samples):
        rule.add_sample(Sample(100, links, own, spurious=int(number < spurious)))
    return rule


def test_one_event_in_64_is_a_sample_but_more_of_the_first() -> None:
    rule = SearchRule()
    first = [rule.takes_sample() for _ in range(4 * EVENTS_PER_FIRST_SAMPLE)]
    assert first.count(True) == 4
    assert not first[0]
    rule = after(SAMPLES)
    later = [rule.takes_sample() for _ in range(4 * EVENTS_PER_SAMPLE)]
    assert later.count(True) == 4


def test_the_way_stays_before_there_are_all_samples() -> None:
    for samples in (0, SAMPLES - 1):
        rule = after(samples, links=10)
        assert not rule.floods
        assert not rule.searches_apart
    rule = after(SAMPLES, links=10)
    assert rule.floods
    assert rule.searches_apart


def test_two_searches_are_taken_if_they_need_fewer_steps_than_one() -> None:
    assert after(SAMPLES, links=79, own=20).searches_apart
    assert not after(SAMPLES, links=80, own=20).searches_apart
    rule = after(SAMPLES, links=79, own=20)
    for _ in range(SAMPLES):
        rule.add_sample(Sample(100, 81, 20, 0))
    assert not rule.searches_apart


def test_a_broker_does_not_flood_if_that_saves_nothing() -> None:
    assert not after(SAMPLES, own=100).floods
    assert not after(SAMPLES, links=0, own=20).floods


def test_savings_are_weighed_against_spurious_messages() -> None:
    # A spurious message costs 21 searches of 100 steps; flooding saves 63 times 80, 40 or 10 steps.
    assert after(SAMPLES, own=20, spurious=2).floods
    assert not after(SAMPLES, own=20, spurious=3).floods
    assert after(SAMPLES, links=40, own=20, spurious=1).floods
    assert not after(SAMPLES, links=40, own=20, spurious=2).floods
    assert not after(SAMPLES, own=90, spurious=1).floods


def test_no_broker_floods_where_less_than_95_percent_of_events_go_over_all_links() -> None:
    for spurious in range(SAMPLES + 1):
        if after(SAMPLES, links=100, own=0, spurious=spurious).floods:
            assert 1 - spurious / SAMPLES > 1 - 1 / SPURIOUS_SEARCHES > 0.95


def test_a_broker_that_floods_stops_at_once_when_there_is_too_much_in_vain() -> None:
    rule = after(SAMPLES)
    for _ in range(SAMPLES // SPURIOUS_SEARCHES):
        rule.add_sample(Sample(100, 90, 20, spurious=1))
        assert rule.floods
    rule.add_sample(Sample(100, 90, 20, spurious=1))
    assert not rule.floods


def test_a_broker_floods_again_when_all_links_say_yes_again() -> None:
    rule = after(SAMPLES)
    for _ in range(SAMPLES):
        rule.add_sample(Sample(100, 90, 20, spurious=2))
    assert not rule.floods
    for _ in range(2 * SAMPLES):
        rule.add_sample(Sample(100, 90, 20, spurious=0))
    assert rule.floods
