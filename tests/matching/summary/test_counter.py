from __future__ import annotations

import math

import numpy as np

from tidegate.language.values import Value
from tidegate.matching.summary.counter import (
    AttributeRows,
    EntryCounter,
    SatisfiedLists,
    satisfied_lists,
)
from tidegate.matching.summary.kernels.lists import LOOSE
from tidegate.matching.summary.member_lists import MemberLists
from tidegate.matching.summary.tables import ChannelKind


class Always:
    """Rows in which every value is in the same lists."""

    def __init__(self, *lists: int) -> None:
        self.lists = lists

    def find(self, value: object, into: list[int]) -> None:
        into += [] if value is None else self.lists


ROWS = {
    "n": AttributeRows({ChannelKind.NUMBER: Always(0), ChannelKind.BOOLEAN: Always(2)}, None),
    "s": AttributeRows({}, Always(4, 7)),
    "none": AttributeRows({ChannelKind.NUMBER: Always()}, None),
}


def test_a_value_is_looked_for_in_the_table_of_its_kind() -> None:
    cases: list[tuple[Value, list[int]]] = [
        (1, [0]), (1.5, [0]), (True, [2]), ("a", []), (math.nan, []),
    ]  # fmt: skip
    for value, lists in cases:
        assert satisfied_lists({"n": value}, ROWS).lists == lists
    assert satisfied_lists({"s": "a", "unknown": 1}, ROWS).lists == [4, 7]
    assert satisfied_lists({"s": 1}, ROWS).lists == []


def test_the_lists_of_an_attribute_end() -> None:
    satisfied = satisfied_lists({"n": 1, "none": 1, "s": "a"}, ROWS)
    assert (satisfied.lists, satisfied.ends) == ([0, 4, 7], [1, 3])


def test_what_may_have_been_rounded_is_loose() -> None:
    assert satisfied_lists({"n": 2**53 + 1}, ROWS).lists == [0 | LOOSE]
    assert satisfied_lists({"n": 2**53 - 1}, ROWS).lists == [0]


def test_counts_events_one_after_the_other() -> None:
    lists, counter = MemberLists(), EntryCounter()
    first, second = lists.new(np.array([0, 2], np.int32)), lists.new(np.array([4, 7], np.int32))
    entry_of = np.array([0, 1, 0, 2], np.int32)
    for entries in (3, 40):
        needed = np.ones(entries, np.int32)
        needed[0] = 2
        for _ in range(3):
            satisfied = SatisfiedLists()
            satisfied.lists, satisfied.ends = [first << 1, second << 1], [1, 2]
            found = counter.count(lists, entry_of, needed, satisfied)
            assert found.entries.tolist() == [1, 0, 2]
            assert found.sure.tolist() == [True, True, False]
            satisfied.lists, satisfied.ends = [first << 1], [1]
            assert counter.count(lists, entry_of, needed, satisfied).entries.tolist() == [1]
