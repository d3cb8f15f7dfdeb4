from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import strings
from tidegate.matching.rete import range_index as module
from tidegate.matching.rete.range_index import RangeIndex

low_ends = st.integers(0, 8) | st.sampled_from([-float("inf"), 0.5, 2.0**53, 2**53 + 1])
high_ends = st.none() | low_ends
ranges = st.tuples(low_ends, high_ends)


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs so short that they are cut and joined all the time."""
    monkeypatch.setattr(module, "RUN_MAX", 4)


def containing(known: list[tuple[float, float | None]], value: float) -> list[int]:
    return [
        number
        for number, (low, high) in enumerate(known)
        if low <= value and (high is None or value < high)
    ]


@given(st.lists(ranges, unique=True, max_size=40), st.randoms(use_true_random=False))
def test_ranges_are_found_while_they_come_and_go(
    known: list[tuple[float, float | None]], rng: random.Random
) -> None:
    bands = RangeIndex[int]()
    there: set[int] = set()
    for number in rng.choices(range(len(known)), k=3 * len(known)) if known else []:
        if number in there:
            bands.remove(*known[number])
        else:
            bands.add(*known[number], number)
        there ^= {number}
        assert len(bands) == len(there)
        for value in (-1, 0, 0.5, 3, 8, 2.0**53, 2**53 + 1, float("inf")):
            expected = [each for each in containing(known, value) if each in there]
            assert sorted(bands.containing(value)) == expected


@given(st.lists(strings, unique=True), strings)
def test_strings_have_ranges_too(texts: list[str], value: str) -> None:
    bands = RangeIndex[str]()
    for text in texts:
        bands.add(text, text + "b", text)
    assert sorted(bands.containing(value)) == sorted(t for t in texts if t <= value < t + "b")


def test_what_is_not_there_is_a_key_error() -> None:
    bands = RangeIndex[str]()
    with pytest.raises(KeyError):
        bands.remove(1, 2)
    bands.add(1, 2, "a")
    for low, high in ((0, 2), (1, 3), (1, None), (2, 2)):
        with pytest.raises(KeyError):
            bands.remove(low, high)
    assert bands.containing(1) == ["a"]


def test_runs_stay_few() -> None:
    """When most ranges are gone, so are most runs."""
    bands = RangeIndex[int]()
    for number in range(100):
        bands.add(number, number + 1, number)
    assert len(bands._runs) >= 25
    for number in range(100):
        if number % 10:
            bands.remove(number, number + 1)
    assert len(bands._runs) <= 10
    assert [bands.containing(number) for number in (10, 15, 90)] == [[10], [], [90]]


def test_runs_that_do_not_reach_a_value_are_passed_by() -> None:
    """The reach of a run shrinks with what it loses and grows with what it gets."""
    bands = RangeIndex[str]()
    for low in range(3):
        bands.add(low, low + 1, f"{low}")
    bands.add(0, None, "open")
    reaches = [bands._runs[0].reach]
    bands.remove(0, None)
    reaches.append(bands._runs[0].reach)
    bands.remove(2, 3)
    reaches.append(bands._runs[0].reach)
    bands.add(1, 9, "far")
    reaches.append(bands._runs[0].reach)
    assert reaches == [None, 3, 2, 9]
    assert len(bands._runs) == 1
