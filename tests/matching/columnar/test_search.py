"""The search of parts: what it finds in each, in which order, with buffers that grow."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.columnar.index_part import IndexPart
from tidegate.matching.columnar.kernels.layout import flat
from tidegate.matching.columnar.kernels.part import pack
from tidegate.matching.columnar.search import PartSearch
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import SHARED, VERIFY
from tidegate.matching.rows.time_window import EventTimes, WindowLength

NO_PROGRAM = np.zeros(1, np.int32)
NO_VARIABLES = np.full((1, 1), np.nan)


def part_of(first: int, lows: list[float], flags: int = 0) -> IndexPart:
    """A part with entries `x >= low`, of subscriptions with numbers from ``first`` on."""
    count = len(lows)
    return IndexPart(
        pack(
            flat(
                Entries(
                    subscription=np.arange(first, first + count, dtype=np.int32),
                    flags=np.full(count, flags, np.int32),
                    first=offsets(np.ones(count, np.int64)),
                    channel=np.zeros(count, np.int32),
                    low=np.array(lows),
                    high=np.full(count, np.inf),
                    motion_first=np.zeros(count + 1, np.int32),
                    motion=np.zeros(0),
                ),
                NO_PROGRAM,
            )
        )
    )


def find(parts: list[IndexPart], *values: float) -> tuple[list[tuple[int, int]], int]:
    encoded = Encoded(np.array(values)[:, None], np.zeros(1, np.int32), np.zeros(0))
    times_us = np.full(len(values), NO_TIME)
    (events, numbers, _), flags = PartSearch(WindowLength()).find(
        parts, encoded, times_us, EventTimes.of(times_us), NO_VARIABLES
    )
    return list(zip(events.tolist(), numbers.tolist(), strict=True)), flags


def test_pairs_of_all_parts_come_in_the_order_of_events() -> None:
    parts = [part_of(0, [1.0, 2.0]), part_of(2, []), part_of(2, [1.5])]
    found, _ = find(parts, 1.7, 0.0, 2.0)
    assert [event for event, _ in found] == [0, 0, 2, 2, 2]
    assert sorted(found) == [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2)]


def test_one_event() -> None:
    parts = [part_of(0, [1.0, 2.0]), part_of(2, [1.5])]
    assert sorted(find(parts, 1.7)[0]) == [(0, 0), (0, 2)]
    assert find(parts[:1], 1.7)[0] == [(0, 0)]


def test_without_parts_there_is_nothing() -> None:
    assert find([], 1.0) == find([part_of(0, [])], 1.0) == ([], 0)


def test_flags_of_all_that_is_found() -> None:
    parts = [part_of(0, [1.0], SHARED), part_of(1, [2.0], VERIFY)]
    assert [find(parts, x)[1] for x in (0.0, 1.0, 2.0)] == [0, SHARED, SHARED | VERIFY]


@pytest.mark.parametrize("events", [1, 50])
def test_more_pairs_than_the_first_buffers_have_room_for(events: int) -> None:
    found, _ = find([part_of(0, [0.0] * 5000)], *[1.0] * events)
    assert len(found) == 5000 * events
    assert len(set(found)) == len(found)
