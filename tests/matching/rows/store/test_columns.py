"""Columns by number: how numbers are given out and freed, and who is alive when."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.rows.kernels.motion import EVERY
from tidegate.matching.rows.store.columns import NO_END, PAST, SubscriptionColumns
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

Life = tuple[int, int]


def with_lives(*lives: Life) -> SubscriptionColumns:
    """Columns of subscriptions with these lifetimes."""
    columns = SubscriptionColumns()
    numbers = columns.allocate(len(lives))
    columns.since_us[numbers] = [since for since, _ in lives]
    columns.until_us[numbers] = [until for _, until in lives]
    columns.note_lifetimes(numbers)
    return columns


def reloaded(columns: SubscriptionColumns, path: Path) -> SubscriptionColumns:
    into = SectionWriter()
    columns.save(into)
    into.write(path)
    return SubscriptionColumns.load(SectionReader(path))


# -- numbers ----------------------------------------------------------------------------------


def test_freed_numbers_are_given_out_first() -> None:
    columns = SubscriptionColumns()
    assert columns.allocate(3).tolist() == [0, 1, 2]
    columns.free(1)
    assert sorted(columns.allocate(2).tolist()) == [1, 3]
    assert columns.count == 4


def test_what_is_known_stays_when_the_columns_grow() -> None:
    columns = SubscriptionColumns()
    numbers = columns.allocate(3)
    columns.row[numbers] = [5, 6, 7]
    columns.allocate(1000)
    assert columns.row[:3].tolist() == [5, 6, 7]
    assert columns.capacity >= columns.count == 1003


def test_current_are_those_that_are_neither_freed_nor_past() -> None:
    columns = SubscriptionColumns()
    columns.allocate(4)
    columns.state[[1, 3]] = PAST
    columns.free(2)
    assert columns.is_current().tolist() == [True, False, False, False]
    assert columns.past().tolist() == [1, 3]
    columns.free(3)
    assert columns.past().tolist() == [1]


def test_a_copy_has_all_columns() -> None:
    columns = with_lives((1, 2), (3, 4))
    columns.evolve[:2], columns.pinned_at_us[:2], columns.state[:2] = [7, 8], [9, 10], [0, 1]
    copies = columns.allocate(2)
    columns.copy(np.array([1, 0], np.int32), copies)
    for name in ("since_us", "until_us", "evolve", "pinned_at_us", "state"):
        column = getattr(columns, name)
        assert column[copies].tolist() == column[:2][::-1].tolist()


# -- evolve modes -----------------------------------------------------------------------------


def test_pins() -> None:
    """A time for a cached filter that is pinned; the interval of a periodic one."""
    columns = SubscriptionColumns()
    numbers = columns.allocate(4)
    columns.evolve[numbers] = [0, 250, -700, -700]
    columns.set_pinned(numbers, None)
    columns.set_pinned(numbers[[0, 3]], 42)
    assert columns.pins(numbers).tolist() == [EVERY, EVERY + 250, EVERY, 42]
    assert columns.cached().tolist() == [2, 3]
    columns.free(2)
    assert columns.cached().tolist() == [3]


# -- lifetimes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(20, 24, True), (19, 24, False), (20, 25, False), (0, -1, True), (99, 98, True)],
)
def test_whether_all_are_alive(begin: int, end: int, expected: bool) -> None:
    """For sure if there are no times at all: such events are judged regardless of lifetimes."""
    columns = with_lives((int(NO_TIME), int(NO_END)), (20, 30), (int(NO_TIME), 25))
    assert columns.all_alive(begin, end) is expected


times = st.integers(0, 6)


@given(
    st.lists(st.tuples(times, times), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), times | st.just(int(NO_TIME))), max_size=12),
)
def test_who_is_alive_when(lives: list[Life], pairs: list[tuple[int, int]]) -> None:
    columns = with_lives(*lives)
    asked = [(number % len(lives), time) for number, time in pairs]
    numbers = np.array([number for number, _ in asked], np.int32)
    alive = columns.alive_at(numbers, np.array([time for _, time in asked], np.int64))
    assert alive.tolist() == [
        time == NO_TIME or lives[number][0] <= time < lives[number][1] for number, time in asked
    ]
    known = [time for _, time in asked if time != NO_TIME]
    if known and columns.all_alive(min(known), max(known)):
        assert alive.all()


def test_a_later_beginning() -> None:
    columns = with_lives((10, int(NO_END)))
    assert columns.latest_since == 10
    columns.begin(np.array([0], np.int32), np.array([50]))
    assert (columns.latest_since, columns.all_alive(49, 60)) == (50, False)
    assert SubscriptionColumns().latest_since is None


# -- snapshots --------------------------------------------------------------------------------


def test_columns_in_a_snapshot(tmp_path: Path) -> None:
    columns = with_lives((10, 90), (20, 80), (30, int(NO_END)))
    columns.free(1)
    loaded = reloaded(columns, tmp_path / "columns")
    for each in (columns, loaded):
        assert each.is_current().tolist() == [True, False, True]
        assert each.since_us[[0, 2]].tolist() == [10, 30]
        assert (each.all_alive(30, 79), each.all_alive(29, 79), each.all_alive(30, 80)) == (
            *(True, False, False),
        )
        assert each.allocate(2).tolist() == [1, 3]
        each.since_us[3] = 7
        assert each.since_us[:4].tolist() == [10, 20, 30, 7]


def test_no_columns_in_a_snapshot(tmp_path: Path) -> None:
    loaded = reloaded(SubscriptionColumns(), tmp_path / "columns")
    assert (loaded.count, loaded.latest_since) == (0, None)
    assert loaded.allocate(1).tolist() == [0]
