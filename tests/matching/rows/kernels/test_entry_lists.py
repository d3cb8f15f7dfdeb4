"""Lists of entries are joined, extended and reordered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.kernel_entries import (
    CHANNELS,
    NEVER,
    Entry,
    entries_of,
    entry_lists,
    listed_of,
    one,
    ranges,
)
from tidegate.matching.rows.kernels.entry_lists import concatenate, limited, offsets, permuted
from tidegate.matching.rows.kernels.flags import VERIFY


def test_lists_are_joined() -> None:
    first = entries_of([one(c0=1.0, c1=NEVER), one(), Entry({}, VERIFY, (1.0, 2.0))])
    second = entries_of([Entry({2: [(0.0, 1.0)]}, 0, (3.0,)), one(c0=2.0)])
    second.subscription += np.int32(3)
    assert listed_of(concatenate([first, second])) == listed_of(first) | listed_of(second)
    assert listed_of(concatenate([first])) == listed_of(first)


@given(entry_lists, st.sampled_from([0, 2, CHANNELS - 1, CHANNELS + 5]), st.data())
def test_entries_get_one_more_constraint(
    listed: list[Entry], channel: int, data: st.DataObject
) -> None:
    without = [
        replace(each, constraints={c: b for c, b in each.constraints.items() if c != channel})
        for each in listed
    ]
    added = [data.draw(ranges) for _ in listed]
    wanted = [
        replace(each, constraints=each.constraints | {channel: [bounds]})
        for each, bounds in zip(without, added, strict=True)
    ]
    lows, highs = (np.array([each[side] for each in added], np.float64) for side in (0, 1))
    found = limited(entries_of(without), channel, lows, highs)
    assert listed_of(found) == listed_of(entries_of(wanted))
    for index in range(len(found)):
        channels = found.channel[found.first[index] : found.first[index + 1]].tolist()
        assert channels == sorted(channels)


@given(st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=6), st.data())
def test_rows_are_reordered(rows: list[list[int]], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(rows))))
    first = offsets(np.array([len(row) for row in rows], np.int64))
    source = np.array([each for row in rows for each in row], np.int64)
    begins, elements = permuted(np.array(order, np.int64), first, source)
    found = [elements[begins[at] : begins[at + 1]].tolist() for at in range(len(rows))]
    assert found == [rows[at] for at in order]
