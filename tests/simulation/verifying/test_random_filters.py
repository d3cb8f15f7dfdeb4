from __future__ import annotations

from random import Random

from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import WantedFilter, covers, wanted_form
from tidegate.matching.subscription import Subscription
from tidegate.simulation.verifying.random_filters import (
    PARAMETRIC_FILTERS,
    random_advertisement,
    random_event,
    random_evolve_mode,
    random_filter,
    random_parameters,
    random_parametric_filter,
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


def test_parametric_filters_use_parameters_variables_and_time() -> None:
    filters = [parse(text) for text in PARAMETRIC_FILTERS]
    assert {name for each in filters for name in each.parameters} == {"n", "m", "word"}
    assert {name for each in filters for name in each.variables} == {"v"}
    evolving = sum(each.evolves for each in filters)
    assert 4 <= evolving <= len(filters) - 4
    assert {str(random_parametric_filter(Random(seed))) for seed in range(300)} == {
        str(each) for each in filters
    }


def test_parametric_filters_match_and_cover_often_enough_to_matter() -> None:
    random = Random(1)
    forms: list[WantedFilter] = []
    for number in range(60):
        filter = random_parametric_filter(random)
        values = random_parameters(random, filter)
        origin_us = number * 100_000
        subscription = Subscription(str(number), filter, values, since=origin_us, origin=origin_us)
        forms.append(wanted_form(subscription))
    events = [Event(random_event(random).attributes, from_us(6_000_000)) for _ in range(60)]
    matched = sum(form.matches(event) for form in forms for event in events) / 3600
    assert 0.1 < matched < 0.7
    pairs = [(one, other) for one in forms for other in forms if one is not other]
    covered = sum(covers(one, other) for one, other in pairs) / len(pairs)
    assert 0.005 < covered < 0.5


def test_some_parameters_have_no_value() -> None:
    random = Random(1)
    filter = parse("x between :n - 2 and :n + :m and kind = :word")
    given = [random_parameters(random, filter) for _ in range(100)]
    assert {len(each) for each in given} == {1, 2, 3}
    assert all(set(each) <= {"n", "m", "word"} for each in given)
    assert random_parameters(random, parse("x = 1")) == {}


def test_all_evolve_modes_are_drawn() -> None:
    random = Random(1)
    drawn = {type(random_evolve_mode(random)) for _ in range(100)}
    assert drawn == {type(None), Lazy, Periodic, Cached}


def test_one_seed_is_one_sequence() -> None:
    def drawn() -> list[str]:
        random = Random(5)
        generators = (
            random_filter, random_advertisement, random_pattern, random_event,
            random_parametric_filter, random_evolve_mode,
        )  # fmt: skip
        return [str(generate(random)) for generate in generators for _ in range(10)]

    assert drawn() == drawn()
