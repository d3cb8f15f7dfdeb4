"""The order in which many entries enter a tree."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tidegate.matching.rows.kernels.entry_lists import Entries, no_entries
from tidegate.matching.tree import entry_order
from tidegate.matching.tree.entry_order import in_branch_order

MISSING = 99


def entries_of(*tests: dict[int, float]) -> Entries:
    """Entries with a value for each channel; the motion of an entry is its number, twice."""
    flat = [(channel, value) for each in tests for channel, value in sorted(each.items())]
    lengths = [0, *(len(each) for each in tests)]
    count = len(tests)
    values = np.array([value for _, value in flat], np.float64)
    return Entries(
        subscription=np.arange(count, dtype=np.int32),
        flags=(np.arange(count) % 3).astype(no_entries().flags.dtype),
        first=np.cumsum(lengths).astype(np.int32),
        channel=np.array([channel for channel, _ in flat], np.int32),
        low=values,
        high=values.copy(),
        motion_first=(2 * np.arange(count + 1)).astype(np.int32),
        motion=np.repeat(np.arange(count), 2).astype(np.float64),
    )


def wanted_by(entries: Entries) -> list[dict[int, float]]:
    return [
        dict(zip(entries.channel[begin:end].tolist(), entries.low[begin:end].tolist(), strict=True))
        for begin, end in zip(entries.first[:-1].tolist(), entries.first[1:].tolist(), strict=True)
    ]


@pytest.fixture(autouse=True)
def _sorts_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_order, "SORTED_MIN", 1)


def test_entries_come_in_the_order_of_the_branches_and_those_that_do_not_care_last() -> None:
    entries = entries_of({0: 1.0}, {5: 1.0}, {5: 0.0, 0: 2.0}, {}, {5: 1.0, 3: 2.0}, {9: 0.0})
    found = wanted_by(in_branch_order(entries, [5, 0, 3]))
    assert found == [{5: 0.0, 0: 2.0}, {5: 1.0, 3: 2.0}, {5: 1.0}, {0: 1.0}, {9: 0.0}, {}]


def test_entries_stay_whole() -> None:
    random = Random(1)
    tests = []
    for _ in range(300):
        channels = random.sample(range(8), random.randrange(8))
        tests.append({channel: float(random.randrange(4)) for channel in channels})
    order = random.sample(range(8), 5)  # three channels have no level yet
    entries = entries_of(*tests)
    moved = in_branch_order(entries, order)
    numbers = moved.subscription.tolist()
    assert sorted(numbers) == list(range(300))
    assert wanted_by(moved) == [tests[number] for number in numbers]
    assert moved.flags.tolist() == [number % 3 for number in numbers]
    assert moved.motion.tolist() == [float(number) for number in numbers for _ in range(2)]
    keys = []
    for number in numbers:
        wanted = tests[number]
        if set(wanted) <= set(order):
            levels = [level for level, channel in enumerate(order) if channel in wanted]
            keys.append([*((level, wanted[order[level]]) for level in levels), (MISSING, 0.0)])
    assert keys == sorted(keys)


def test_few_entries_and_entries_without_tests_are_left_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = entries_of({}, {})
    assert in_branch_order(nothing, [0]) is nothing
    monkeypatch.setattr(entry_order, "SORTED_MIN", 3)
    few = entries_of({1: 2.0}, {1: 1.0})
    assert in_branch_order(few, [1]) is few


def test_an_order_without_levels() -> None:
    found = wanted_by(in_branch_order(entries_of({1: 2.0}, {1: 1.0}), []))
    assert found == [{1: 1.0}, {1: 2.0}]
