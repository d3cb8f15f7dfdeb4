"""When a broker floods: only where it saves more than spurious messages cost."""

from __future__ import annotations

from tidegate.routing.links.flooding_rule import (
    EVENTS_PER_SAMPLE,
    SAMPLES,
    SPURIOUS_SEARCHES,
    FloodingRule,
)


def after(samples: int, *, local_steps: int = 20, spurious: int = 0) -> FloodingRule:
    """A rule after some samples of 100 steps; ``spurious`` of them have a spurious message."""
    rule = FloodingRule()
    for number in range(samples):
        rule.add_sample(100, local_steps, spurious=int(number < spurious))
    return rule


def test_one_event_in_sixteen_is_a_sample() -> None:
    rule = FloodingRule()
    taken = [rule.takes_sample() for _ in range(4 * EVENTS_PER_SAMPLE)]
    assert taken.count(True) == 4
    assert not taken[0]


def test_a_broker_does_not_flood_before_it_has_all_samples() -> None:
    assert not after(0).floods
    assert not after(SAMPLES - 1).floods
    assert after(SAMPLES).floods


def test_a_broker_does_not_flood_if_that_saves_nothing() -> None:
    assert not after(SAMPLES, local_steps=100).floods


def test_savings_are_weighed_against_spurious_messages() -> None:
    # A spurious message costs 21 searches of 100 steps; flooding saves 63 times 80, or 10, steps.
    assert after(SAMPLES, local_steps=20, spurious=2).floods
    assert not after(SAMPLES, local_steps=20, spurious=3).floods
    assert not after(SAMPLES, local_steps=90, spurious=1).floods


def test_no_broker_floods_where_less_than_95_percent_of_events_go_over_all_links() -> None:
    for spurious in range(SAMPLES + 1):
        if after(SAMPLES, local_steps=0, spurious=spurious).floods:
            assert 1 - spurious / SAMPLES > 1 - 1 / SPURIOUS_SEARCHES > 0.95


def test_a_broker_that_floods_stops_at_once_when_there_is_too_much_in_vain() -> None:
    rule = after(SAMPLES)
    for _ in range(SAMPLES // SPURIOUS_SEARCHES):
        rule.add_sample(100, 20, spurious=1)
        assert rule.floods
    rule.add_sample(100, 20, spurious=1)
    assert not rule.floods


def test_a_broker_floods_again_when_all_links_say_yes_again() -> None:
    rule = after(SAMPLES)
    for _ in range(SAMPLES):
        rule.add_sample(100, 20, spurious=2)
    assert not rule.floods
    for _ in range(2 * SAMPLES):
        rule.add_sample(100, 20, spurious=0)
    assert rule.floods
