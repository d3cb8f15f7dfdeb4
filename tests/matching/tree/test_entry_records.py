"""Records of entries: which a subscription has, statistics, garbage, copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tidegate.matching.arrays import I32
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import MOVING, SET
from tidegate.matching.tree.entry_records import GARBAGE_MIN, EntryRecords
from tidegate.matching.tree.kernels.layout import (
    B_CHANNEL,
    BOUND_WORDS,
    E_END,
    E_FIRST,
    E_TESTS,
    ENTRY_WORDS,
    NONE,
)
from tidegate.matching.tree.storage import TreeStorage
from tidegate.matching.tree.tuning import TreeTuning

Constraint = tuple[int, float, float]


def entries(
    subscriptions: Sequence[int], constraints: Sequence[Constraint], flags: int = 0
) -> Entries:
    """An entry for each subscription, all with the same constraints."""
    count, each = len(subscriptions), len(constraints)
    channel, low, high = zip(*list(constraints) * count, strict=True)
    return Entries(
        subscription=np.array(subscriptions, np.int32),
        flags=np.full(count, flags, np.int32),
        first=offsets(np.full(count, each)),
        channel=np.array(channel, np.int32),
        low=np.array(low, np.float64),
        high=np.array(high, np.float64),
        motion_first=offsets(np.ones(count)),
        motion=np.arange(count, dtype=np.float64),
    )


def numbers(*subscriptions: int) -> I32:
    return np.array(subscriptions, np.int32)


@pytest.fixture
def storage() -> TreeStorage:
    return TreeStorage([1, 0], TreeTuning())


def test_tests_come_first_by_level_and_then_the_rest(storage: TreeStorage) -> None:
    records = EntryRecords(storage)
    some: list[Constraint] = [(0, 3, 3), (1, 5, 9), (2, 8, 4), (7 | SET, 1, 1)]
    (entry,) = records.add(entries([4], some))
    words = storage.arrays.entry.reshape(-1, ENTRY_WORDS)[entry]
    assert words[[E_FIRST, E_TESTS, E_END]].tolist() == [0, 2, 4]
    channels = storage.arrays.bound.reshape(-1, BOUND_WORDS).view(np.int64)[:4, B_CHANNEL]
    assert channels.tolist() == [1, 0, 2, 7 | SET]
    assert records.tests.values.tolist()[:2] == [1, 0]
    assert records.tests.ranges.tolist()[:2] == [0, 1]
    assert storage.arrays.extent[:4].tolist() == [3, 3, 5, 9]


def test_which_entries_subscriptions_have(storage: TreeStorage) -> None:
    records = EntryRecords(storage)
    first, second, third = records.add(entries([3, 5, 3], [(0, 1, 1)])).tolist()
    assert sorted(records.of(numbers(3, 9, 5)).tolist()) == [first, second, third]
    assert [records.only_of(each) for each in (3, 5, 0, 9)] == [NONE, second, NONE, NONE]
    assert records.only_of_each(numbers(3, 5, 0, 9)).tolist() == [NONE, second, NONE, NONE]
    assert records.only_of_each(numbers()).tolist() == []
    found, owners = records.subscriptions()
    assert found.tolist() == [first, second, third]
    assert owners.tolist() == [3, 5, 3]


def test_freed_entries_are_used_again_and_counted_no_longer(storage: TreeStorage) -> None:
    records = EntryRecords(storage)
    added = records.add(entries([0, 1, 2], [(0, 1, 1), (1, 2, 4)]))
    records.free(numbers(1), added[1:2])
    assert records.size == 2
    assert records.of(numbers(1)).tolist() == []
    assert records.tests.on(0).tolist() == [2, 0]
    assert records.tests.on(1).tolist() == [0, 2]
    assert records.add(entries([7], [(0, 1, 2)])).tolist() == [1]
    assert records.only_of(7) == 1


def test_it_is_wasteful_once_most_is_garbage(storage: TreeStorage) -> None:
    records = EntryRecords(storage)
    count = GARBAGE_MIN + 2
    added = records.add(entries(range(count), [(0, 1, 1)]))
    half = count // 2
    records.free(np.arange(half, dtype=np.int32), added[:half])
    assert not records.is_wasteful
    records.free(numbers(half), added[half : half + 1])
    assert records.is_wasteful


def test_a_copy_has_all_entries_as_they_were_added(storage: TreeStorage) -> None:
    records = EntryRecords(storage)
    some: list[Constraint] = [(0, 3, 3), (1, 5, 9), (2, 8, 4)]
    added = records.add(entries([4, 2, 6], some, flags=MOVING))
    records.free(numbers(2), added[1:2])
    copied, expected = records.take_out(), entries([4, 6], some, flags=MOVING)
    for name in ("subscription", "flags", "first", "channel", "low", "high", "motion_first"):
        assert getattr(copied, name).tolist() == getattr(expected, name).tolist()
    assert copied.motion.tolist() == [0, 2]
    assert records.moving().tolist() == [added[0], added[2]]
