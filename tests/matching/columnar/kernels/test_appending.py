"""Appending to a part leaves it as if it had been made of all its entries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.columnar.kernels.appending import Room, append_entries
from tidegate.matching.columnar.kernels.layout import flat, take_out
from tidegate.matching.columnar.kernels.part import PackedPart, Part, unpack
from tidegate.matching.rows.kernels.entry_lists import Entries, concatenate, no_entries, offsets
from tidegate.matching.rows.kernels.flags import SET

PROGRAM = np.array([7, 8, 9], np.int32)

bounds = st.sampled_from([-1.5, 0.0, 2.0, 1e300, -np.inf, np.inf, np.nan])
constraints = st.lists(st.tuples(st.sampled_from([0, 1, 5, SET | 2]), bounds, bounds), max_size=4)
entries = st.lists(st.tuples(constraints, st.lists(bounds, max_size=3)), max_size=5)


def listed(made: list[tuple[list[tuple[int, float, float]], list[float]]], first: int) -> Entries:
    ordered = [sorted(each, key=lambda one: one[0]) for each, _ in made]
    rows = [row for each in ordered for row in each]
    count = len(made)
    return Entries(
        subscription=np.arange(first, first + count, dtype=np.int32),
        flags=np.arange(count, dtype=np.int32),
        first=offsets(np.array([len(each) for each in ordered], np.int64)),
        channel=np.array([row[0] for row in rows], np.int32),
        low=np.array([row[1] for row in rows], np.float64),
        high=np.array([row[2] for row in rows], np.float64),
        motion_first=offsets(np.array([len(motion) for _, motion in made], np.int64)),
        motion=np.array([word for _, motion in made for word in motion], np.float64),
    )


def append(packed: PackedPart, more: Entries) -> int:
    at, i32, _, f32, f64, _, _ = packed
    columns: int = append_entries(
        at, i32, f32, f64, more.subscription, more.flags, more.first, more.channel, more.low,
        more.high, more.motion_first, more.motion,
    )  # fmt: skip
    return columns


def same(found: Part, expected: Part) -> None:
    for name, one, other in zip(Part._fields, found, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


@given(st.lists(entries, min_size=1, max_size=4))
def test_appended_is_as_made_at_once(chunks: list[object]) -> None:
    lists = [listed(chunk, 10 * n) for n, chunk in enumerate(chunks)]  # type: ignore[arg-type]
    packed = Room(20, 80, 60).packed(flat(lists[0], PROGRAM))
    for each in lists[1:]:
        append(packed, each)
        # what lies behind the end is read by nobody: the ends moved with the entries
    same(unpack(packed), flat(concatenate([no_entries(), *lists]), PROGRAM))


def test_the_columns_that_are_needed() -> None:
    packed = Room(4, 8, 0).packed(flat(no_entries(), PROGRAM))
    assert append(packed, listed([([(3, 1.0, 2.0), (SET | 6, 1.0, 1.0)], [])], 0)) == 7
    assert append(packed, listed([([], [])], 1)) == 0


def test_entries_that_were_appended_are_taken_out_again() -> None:
    packed = Room(4, 8, 4).packed(flat(no_entries(), PROGRAM))
    made = listed([([(0, 1.0, 2.0)], [4.0]), ([(1, 3.0, 3.0), (5, 0.0, 1.0)], [])], 6)
    append(packed, made)
    taken = take_out(unpack(packed))
    for field in ("subscription", "flags", "first", "channel", "low", "high", "motion"):
        np.testing.assert_array_equal(getattr(taken, field), getattr(made, field))


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [((4, 8, 2), True), ((5, 8, 2), False), ((4, 9, 2), False)],
)
def test_room(wanted: tuple[int, int, int], fits: bool) -> None:
    assert Room(4, 8, 2).has(*wanted) == fits
