"""The indexes of current subscriptions and of past versions, side by side."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from support.small_parts import small_sizes
from tidegate.language.filters import parse
from tidegate.matching.arrays import I32
from tidegate.matching.columnar.index_pair import IndexPair
from tidegate.matching.rows.encoding import encode_variables
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.time_window import EventTimes, TimeWindow, WindowLength
from tidegate.matching.subscription import Subscription

SECOND = 1_000_000


class Pair:
    """A pair of indexes with its table."""

    def __init__(self, past_max: int = 8) -> None:
        self.table, self.channels = SubscriptionTable(), Channels()
        self.sizes = small_sizes(past_max)
        self.length = WindowLength()
        self.indexes = IndexPair(self.table, self.channels, self.length, self.sizes)

    def add(self, *subscriptions: Subscription) -> I32:
        numbers = self.table.stage(subscriptions)
        self.table.publish(numbers)
        self.indexes.add(numbers)
        return numbers

    def add_past(self, versions: Iterable[Subscription]) -> I32:
        numbers = self.table.stage(list(versions))
        self.table.publish(numbers, past=True)
        self.indexes.add_past(numbers)
        return numbers

    def visited(self, time_us: int) -> int:
        """How many parts an event of a time has to look at."""
        return sum(part.may_match(EventTimes.at(time_us)) for part in self.indexes.parts)

    def is_enclosed(self, begin: int, end: int, **variables: float) -> bool:
        row = encode_variables(variables, self.channels)
        return self.indexes.is_enclosed(EventTimes(begin, end, False), row)

    def window(self, begin: int, end: int) -> TimeWindow:
        row = encode_variables({}, self.channels)
        return TimeWindow.of(EventTimes(begin, end, False), row)


def version(number: int, since: int, until: int, text: str = "x = 1") -> Subscription:
    return Subscription(f"v{number}", parse(text), {}, since, None, until)


# -- lifetimes --------------------------------------------------------------------------------


def test_an_event_looks_at_the_parts_of_its_time_only() -> None:
    """Even if the versions come in any order, and some lived a thousand times as long."""
    short = [version(number, 10 * number, 10 * number + 10) for number in range(400)]
    long = [version(number, 100 * number, 100 * number + 10_000) for number in range(400, 416)]
    mixed = [*short, *long]
    random.Random(1).shuffle(mixed)
    pair = Pair()
    pair.add_past(mixed)
    for time_us in (0, 1234, 2000, 3999):
        assert 1 <= pair.visited(time_us) <= 2
    assert 1 <= pair.visited(45_000) <= 3
    assert pair.visited(-1) == pair.visited(10**6) == 0


def test_parts_of_removed_versions_are_no_more_looked_at() -> None:
    pair = Pair()
    numbers = pair.add_past(version(each, 0, 10) for each in range(40))
    assert pair.visited(5) == 5
    pair.indexes.remove_past(numbers[:35].tolist())
    assert pair.visited(5) <= 2
    pair.indexes.remove_past(numbers[35:].tolist())
    assert pair.visited(5) == 0


def test_current_subscriptions_are_looked_at_whatever_the_time() -> None:
    pair = Pair()
    pair.add(version(0, 1000, 2000))
    pair.indexes.flush()
    assert pair.visited(0) == pair.visited(10**6) == 1


# -- entries that wait ------------------------------------------------------------------------


def test_entries_are_pending_until_they_are_flushed() -> None:
    pair = Pair()
    indexes = pair.indexes
    numbers = pair.add(version(0, 0, 10), version(1, 0, 10))
    flushed = [indexes.is_flushed]
    for step in (
        indexes.flush,
        partial(indexes.reindex, numbers[:1]),
        indexes.flush,
        partial(indexes.reindex, numbers[:0]),
        partial(pair.add_past, [version(2, 0, 10)]),
    ):
        step()
        flushed.append(indexes.is_flushed)
    assert flushed == [False, True, False, True, True, True]


# -- time windows -----------------------------------------------------------------------------


def test_static_filters_need_no_window() -> None:
    pair = Pair()
    pair.add(version(0, 0, 10))
    assert pair.is_enclosed(-(10**15), 10**15)


def test_moving_bounds_are_enclosed_first_for_when_their_subscriptions_begin() -> None:
    pair = Pair()
    pair.add(version(0, 5 * SECOND, 99 * SECOND, "x > t"))
    assert not pair.is_enclosed(5 * SECOND, 5 * SECOND)
    pair.indexes.flush()
    assert pair.is_enclosed(5 * SECOND, 5 * SECOND + 1)
    assert not pair.is_enclosed(99 * SECOND, 99 * SECOND)


def test_both_indexes_are_enclosed_for_one_window() -> None:
    pair = Pair()
    pair.add(version(0, 0, 99 * SECOND, "x > t"))
    pair.indexes.flush()
    pair.indexes.enclose(pair.window(50 * SECOND, 60 * SECOND))
    pair.add_past([version(1, 0, SECOND, "x > t")])
    assert pair.is_enclosed(50 * SECOND, 60 * SECOND)
    pair.indexes.enclose(pair.window(0, SECOND))
    assert pair.is_enclosed(0, SECOND)
    assert not pair.is_enclosed(50 * SECOND, 60 * SECOND)


def keep_up(pair: Pair, seconds: float) -> list[int]:
    """Do what an event of a time makes due; returns how many entries of each part are enclosed."""
    at = EventTimes.at(round(seconds * SECOND))
    assert pair.is_enclosed(at.begin, at.end)
    if pair.indexes.is_behind(at):
        pair.indexes.keep_up(pair.window(at.begin, at.end))
    assert not pair.indexes.is_behind(at)
    return [part.enclosed for part in pair.indexes.parts]


def test_the_coming_window_is_enclosed_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    monkeypatch.setattr(pair.length, "has_enclosed", lambda _: None)
    pair.sizes = pair.sizes._replace(piece_entries=3)
    pair.indexes = IndexPair(pair.table, pair.channels, pair.length, pair.sizes)
    pair.add(*(version(each, 0, 99 * SECOND, f"x > {each} * t") for each in range(16)))
    pair.indexes.flush()
    pair.indexes.enclose(pair.window(0, 0))  # and a second ahead, an eighth of that back
    window = pair.indexes.current.window
    assert window is not None
    assert (window.begin, window.end) == (-SECOND // 8, SECOND)
    assert keep_up(pair, 0.5) == [0, 16]
    assert pair.indexes.current.coming is None
    assert [keep_up(pair, seconds)[1] for seconds in (0.76, 0.80, 0.84, 0.88, 0.92)] == [
        *(0, 4, 7, 10, 13)
    ]
    assert not pair.is_enclosed(0, 0)  # right for the times that both windows have
    keep_up(pair, 0.98)
    assert pair.indexes.current.coming is None
    after = pair.indexes.current.window
    assert after is not None
    assert 0 < after.begin < SECOND < after.end


def test_what_is_left_of_the_coming_window_is_enclosed_when_time_jumps_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = Pair()
    monkeypatch.setattr(pair.length, "has_enclosed", lambda _: None)
    pair.add(*(version(each, 0, 99 * SECOND, f"x > {each} * t") for each in range(16)))
    pair.indexes.flush()
    pair.indexes.enclose(pair.window(0, 0))
    keep_up(pair, 0.9)
    coming = pair.indexes.current.coming
    assert coming is not None
    now = pair.window(SECOND + 1, SECOND + 1)
    assert coming.includes(now)
    pair.indexes.enclose(now)
    assert pair.indexes.current.window is coming
    assert pair.indexes.current.coming is None


def test_the_coming_window_reaches_back_to_the_events_of_a_thread_that_is_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = Pair()
    monkeypatch.setattr(pair.length, "has_enclosed", lambda _: None)
    pair.add(version(0, 0, 99 * SECOND, "x > t"))
    pair.indexes.flush()
    pair.indexes.enclose(pair.window(50 * SECOND, 50 * SECOND))
    pair.indexes.enclose(pair.window(40 * SECOND, 40 * SECOND), contended=True)
    for seconds in (50.2, 50.8, 50.99, 51.2):
        keep_up(pair, seconds)
        assert pair.is_enclosed(round((seconds - 10) * SECOND), round(seconds * SECOND))


def test_contended_windows_are_joined() -> None:
    pair = Pair()
    pair.add(version(0, 0, 99 * SECOND, "x > t"))
    pair.indexes.flush()
    pair.indexes.enclose(pair.window(0, SECOND))
    pair.indexes.enclose(pair.window(50 * SECOND, 51 * SECOND), contended=True)
    assert pair.is_enclosed(0, 51 * SECOND)


def test_a_variable_that_comes_later_needs_another_window() -> None:
    pair = Pair()
    pair.add(version(0, 0, 99 * SECOND, "x > t"))
    pair.indexes.flush()
    assert pair.is_enclosed(0, 1)
    pair.add(version(1, 0, 99 * SECOND, "x > @load * t"))
    pair.indexes.flush()
    assert pair.is_enclosed(0, 1)
    assert not pair.is_enclosed(0, 1, load=2.0)


# -- snapshots --------------------------------------------------------------------------------


def test_a_snapshot_is_right_for_what_two_windows_have_in_common(tmp_path: Path) -> None:
    pair = Pair()
    pair.add(*(version(each, 0, 99 * SECOND, f"x > {each} * t") for each in range(16)))
    pair.indexes.flush()
    window = pair.indexes.current.window
    assert window is not None
    for share in (0.8, 0.9):
        keep_up(pair, share * window.end / SECOND)
    coming = pair.indexes.current.coming
    assert coming is not None
    into = SectionWriter()
    pair.indexes.save(into)
    into.write(tmp_path / "indexes")
    loaded = IndexPair(pair.table, pair.channels, WindowLength(), pair.sizes)
    loaded.load(SectionReader(tmp_path / "indexes"))
    row = encode_variables({}, pair.channels)
    for time_us in (window.begin, coming.begin - 1, coming.begin, window.end, window.end + 1):
        expected = coming.begin <= time_us <= window.end
        assert loaded.is_enclosed(EventTimes.at(time_us), row) == expected


def test_both_indexes_come_back_from_a_snapshot(tmp_path: Path) -> None:
    pair = Pair()
    pair.add(*(version(each, 0, 10, "x > t") for each in range(9)))
    pair.indexes.flush()
    numbers = pair.add_past(version(each, 100, 110) for each in range(9, 21))
    into = SectionWriter()
    pair.indexes.save(into)
    into.write(tmp_path / "indexes")
    loaded = IndexPair(pair.table, pair.channels, WindowLength(), pair.sizes)
    loaded.load(SectionReader(tmp_path / "indexes"))
    for each in (pair.indexes, loaded):
        assert [len(part) for part in each.parts if len(part)] == [9, 6, 6]
        assert each.is_enclosed(EventTimes.at(0), np.full((1, 1), np.nan))
        each.remove_past(numbers.tolist())
        assert [len(part) for part in each.parts if len(part)] == [9]
