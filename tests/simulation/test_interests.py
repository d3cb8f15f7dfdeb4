from __future__ import annotations

from random import Random

from tidegate.simulation.interests import (
    random_advertisement,
    random_event,
    random_filter,
    random_pattern,
)


def test_filters_cover_each_other_and_match_often_enough_to_matter() -> None:
    random = Random(1)
    filters = [random_filter(random) for _ in range(60)]
    events = [random_event(random) for _ in range(60)]
    pairs = [(one, other) for one in filters for other in filters if one is not other]
    covered = sum(one.covers(other) for one, other in pairs) / len(pairs)
    matched = sum(each.matches(event) for each in filters for event in events) / 3600
    assert 0.01 < covered < 0.5
    assert 0.05 < matched < 0.6


def test_advertisements_allow_some_events_and_not_others() -> None:
    random = Random(1)
    offers = [random_advertisement(random) for _ in range(60)]
    events = [random_event(random) for _ in range(60)]
    assert 0.2 < sum(each.allows(event) for each in offers for event in events) / 3600 < 0.95


def test_patterns_have_two_to_four_steps() -> None:
    random = Random(1)
    assert {len(random_pattern(random).steps) for _ in range(100)} == {2, 3, 4}


def test_the_same_generator_gives_the_same() -> None:
    def made() -> list[str]:
        random = Random(5)
        makers = (random_filter, random_advertisement, random_pattern, random_event)
        return [str(make(random)) for make in makers for _ in range(10)]

    assert made() == made()
