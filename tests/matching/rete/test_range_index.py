from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sound_network import runs_of
from support.strategies import strings
from tidegate.matching.rete.range_index import RangeIndex

low_ends = st.integers(0, 8) | st.sampled_from([-float("inf"), 0.5, 2.0**53, 2**53 + 1])
high_ends = st.none() | low_ends
ranges = st.tuples(low_ends, high_ends)


RUN_MAX = 4
"""So short that runs are cut and joined all the time."""


def containing(known: list[tuple[float, float | None]], value: float) -> list[int]:
    return [
        number
        for number, (low, high) in enumerate(known)
        if low <= value and (high is None or value < high)
    ]


@given(st.lists(ranges, unique=True, max_size=40), st.randoms(use_true_random=False))
def test_ranges_are_found_while_they_are_added_and_removed(
    known: list[tuple[float, float | None]], rng: random.Random
) -> None:
    index = RangeIndex[int](run_max=RUN_MAX)
    added: set[int] = set()
    for number in rng.choices(range(len(known)), k=3 * len(known)) if known else []:
        if number in added:
            index.remove(*known[number])
        else:
            index.add(*known[number], number)
        added ^= {number}
        assert len(index) == len(added)
        for value in (-1, 0, 0.5, 3, 8, 2.0**53, 2**53 + 1, float("inf")):
            expected = [each for each in containing(known, value) if each in added]
            assert sorted(index.containing(value)) == expected


@given(st.lists(strings, unique=True), strings)
def test_strings_have_ranges_too(texts: list[str], value: str) -> None:
    index = RangeIndex[str](run_max=RUN_MAX)
    for text in texts:
        index.add(text, text + "b", text)
    assert sorted(index.containing(value)) == sorted(t for t in texts if t <= value < t + "b")


def test_removing_an_unknown_range_is_a_key_error() -> None:
    index = RangeIndex[str](run_max=RUN_MAX)
    with pytest.raises(KeyError):
        index.remove(1, 2)
    index.add(1, 2, "a")
    for low, high in ((0, 2), (1, 3), (1, None), (2, 2)):
        with pytest.raises(KeyError):
            index.remove(low, high)
    assert index.containing(1) == ["a"]


def test_runs_stay_few() -> None:
    """When most ranges are removed, so are most runs."""
    index = RangeIndex[int](run_max=RUN_MAX)
    for number in range(100):
        index.add(number, number + 1, number)
    assert len(runs_of(index)) >= 25
    for number in range(100):
        if number % 10:
            index.remove(number, number + 1)
    assert len(runs_of(index)) <= 10
    assert [index.containing(number) for number in (10, 15, 90)] == [[10], [], [90]]


def test_the_reach_of_a_run_follows_its_ranges() -> None:
    """It shrinks with a range that is removed, and grows with one that is added."""
    index = RangeIndex[str](run_max=RUN_MAX)
    for low in range(3):
        index.add(low, low + 1, f"{low}")
    index.add(0, None, "open")
    runs = runs_of(index)
    index.remove(0, None)
    runs += runs_of(index)
    index.remove(2, 3)
    runs += runs_of(index)
    index.add(1, 9, "far")
    runs += runs_of(index)
    assert runs == [(4, None), (3, 3), (2, 2), (3, 9)]
