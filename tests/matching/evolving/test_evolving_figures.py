"""The figures of "Self-Evolving Subscriptions": a rectangle of 6 by 4 that moves with a player.

Each says which subscription area an event at a point and a moment is judged by.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidegate import Cached, Engine, Lazy, Periodic
from tidegate.language.evolve import Evolve
from tidegate.matching.registry import MATCHERS

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PLAYER = "x >= -3 + t and x <= 3 + t and y >= -2 + t and y <= 2 + t"
every_matcher = pytest.mark.parametrize("matcher", sorted(MATCHERS))


def after(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def with_player(matcher: str, evolve: Evolve | None) -> Engine:
    engine = Engine(matcher=matcher)
    engine.subscribe(PLAYER, id="player", since=BEGIN, evolve=evolve)
    return engine


def offset(engine: Engine, seconds: float) -> float:
    """How far the rectangle has come, as seen by events around its upper right corner.

    Events are sent at one moment, so that the first decides which version the others see.
    """
    tenths = range(-10, 60)
    inside = [
        tenth / 10
        for tenth in tenths
        if engine.match({"x": 3 + tenth / 10, "y": 2 + tenth / 10}, time=after(seconds))
    ]
    return max(inside)


@every_matcher
@pytest.mark.parametrize("evolve", [None, Lazy()])
def test_the_apple_is_in_reach_one_and_two_seconds_later(
    matcher: str, evolve: Evolve | None
) -> None:
    """3.2.1: at (4, 3), not in the area at first, on its border after one second."""
    engine = with_player(matcher, evolve)
    apple = {"x": 4, "y": 3, "action": "pickup", "object": "apple"}
    found = [bool(engine.match(apple, time=after(seconds))) for seconds in (0, 0.9, 1, 2, 4, 6)]
    assert found == [False, False, True, True, True, False]


@every_matcher
def test_figure_1_periodic(matcher: str) -> None:
    """Rectangles one second apart; between two of them the older one is in force."""
    engine = with_player(matcher, Periodic(1.0))
    at = [0, 0.5, 0.999999, 1, 1.5, 2, 2.7, 3, 3.2]
    assert [offset(engine, seconds) for seconds in at] == [0, 0, 0, 1, 1, 2, 2, 3, 3]


@every_matcher
def test_figure_1_loses_events_between_two_evolutions(matcher: str) -> None:
    """4.1: false negatives before the border, false positives behind it."""
    engine = with_player(matcher, Periodic(1.0))
    assert engine.match({"x": 4.4, "y": 3.4}, time=after(1.5)) == []
    assert engine.match({"x": -1.9, "y": -0.9}, time=after(1.5)) == ["player"]


@every_matcher
def test_figure_2_lazy(matcher: str) -> None:
    """The area moves without steps."""
    engine = with_player(matcher, Lazy())
    at = [0, 0.5, 1, 1.5, 2, 2.7, 3, 3.2]
    assert [offset(engine, seconds) for seconds in at] == at


@every_matcher
def test_figure_3_cached(matcher: str) -> None:
    """Publications at 1, 1.5 and 3 seconds: the second goes by the version of the first."""
    engine = with_player(matcher, Cached(1.0))
    assert [offset(engine, seconds) for seconds in (1, 1.5, 3)] == [1, 1, 3]


@every_matcher
def test_a_cached_version_is_good_until_it_expires_inclusive(matcher: str) -> None:
    """5.4: valid if Exp(S) is equal to or greater than the time T."""
    engine = with_player(matcher, Cached(1.0))
    at = [1, 1.5, 2, 2.000001, 3, 3.000001]
    assert [round(offset(engine, seconds), 1) for seconds in at] == [1, 1, 1, 2, 2, 2]
    assert offset(engine, 3.1) == 3.1


@every_matcher
def test_an_event_without_the_attributes_makes_no_version(matcher: str) -> None:
    engine = with_player(matcher, Cached(1.0))
    engine.match({"x": 0}, time=after(0.5))
    assert [offset(engine, seconds) for seconds in (1, 1.5)] == [1, 1]


@every_matcher
@pytest.mark.parametrize("evolve", [Lazy(), Periodic(1.0), Cached(1.0)])
def test_an_explanation_shows_the_values_that_were_used(matcher: str, evolve: Evolve) -> None:
    engine = with_player(matcher, evolve)
    engine.match({"x": 0, "y": 0}, time=after(1.25))
    explained = engine.explain("player", {"x": 4.4, "y": 0}, time=after(1.5))
    used = {"lazy": 1.5, "periodic 1 s": 1.0, "cached 1 s": 1.25}[str(evolve)]
    assert explained.t == used
    assert explained.matches == (3 + used >= 4.4)
    assert f"4.4 against {3 + used}" in str(explained)
    later = engine.explain("player", {"x": 0, "y": 0}, time=after(3.7))
    assert later.t == {"lazy": 3.7, "periodic 1 s": 3.0, "cached 1 s": 3.7}[str(evolve)]
