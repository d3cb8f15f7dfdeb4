"""The steps around an index: who holds the lock, and how pairs become matches.

The index is a fake that finds what a test says, so that only the steps are tested.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_index import FakeIndex, Pair, RecordedLock, WatchedVariables
from support.strategies import events_aimed_at, filters
from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.matching.arrays import I32, I64, NO_TIME
from tidegate.matching.batches import EventBatch
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows import event_matching
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.event_matching import (
    CHUNK_EVENTS,
    STAGED_MAX,
    EventMatching,
    add_staged,
    is_match,
)
from tidegate.matching.rows.kernels.flags import SHARED, VERIFY
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.subscription import Moment, Subscription

ONE = Event({"x": 1})
MATCH = ["share", "find", "unshare"]


class Steps:
    """A table, an index that finds given pairs, and the log of both and of the lock."""

    def __init__(self, *subscriptions: Subscription, found: list[Pair] | None = None) -> None:
        self.log: list[str] = []
        self.lock = RecordedLock(self.log)
        self.table, self.channels = SubscriptionTable(), Channels()
        self.table.publish(self.table.stage(subscriptions))
        self.found = [(0, n, 0) for n in range(len(subscriptions))] if found is None else found
        self.index = FakeIndex(self.log, self.finds)
        self.matching = EventMatching(
            self.lock, self.table, self.channels, self.index, lambda: None
        )

    def finds(self, times_us: I64) -> list[Pair]:
        del times_us
        return self.found

    def match(self, event: Event = ONE, moment: Moment | None = None) -> list[str]:
        return self.matching.match(event, moment or Moment())


def subscription(id: str, text: str = "x = 1") -> Subscription:
    return Subscription(id, parse(text))


# -- locking and readiness ------------------------------------------------------------------------


def test_an_index_that_is_ready_is_searched_under_the_shared_lock() -> None:
    steps = Steps(subscription("a"))
    assert steps.match() == ["a"]
    assert steps.log == MATCH


def test_pending_entries_are_flushed_by_who_holds_the_lock_alone() -> None:
    steps = Steps(subscription("a"))
    steps.index.is_flushed = False
    assert steps.match() == ["a"]
    assert steps.log == ["share", "unshare", "alone", "flush", "release", *MATCH]


def test_moving_bounds_are_enclosed_for_the_time_of_the_event() -> None:
    steps = Steps(subscription("a"))
    steps.index.enclosed = [False, False]
    steps.match(moment=Moment(7))
    assert steps.log == ["share", "unshare", "alone", "enclose", "flush", "release", *MATCH]
    ((window, contended),) = steps.index.windows
    assert (window.begin, window.end, window.timeless, contended) == (7, 7, False, False)


def test_a_match_that_lost_its_window_to_another_thread_is_contended() -> None:
    steps = Steps(subscription("a"))
    steps.index.enclosed = [False, False, False, False]
    steps.match(moment=Moment(7))
    assert [contended for _, contended in steps.index.windows] == [False, True]


def test_work_for_a_coming_window_is_done_before_the_event_is_matched() -> None:
    steps = Steps(subscription("a"))
    steps.index.behind = [True, True]
    assert steps.match(moment=Moment(7)) == ["a"]
    assert steps.log == ["share", "unshare", "alone", "keep up", "flush", "release", *MATCH]
    ((window, _),) = steps.index.windows
    assert (window.begin, window.end) == (7, 7)


def test_a_window_that_another_thread_enclosed_meanwhile_is_kept() -> None:
    steps = Steps(subscription("a"))
    steps.index.enclosed = [False, True]
    steps.match(moment=Moment(7))
    assert steps.index.windows == []


def test_an_event_is_given_encoded_while_the_lock_is_shared() -> None:
    steps = Steps(subscription("a"))
    channel = steps.channels.channel("x", 6)
    with steps.matching.ready_for(Event({"x": 2.5}), Moment(7)) as ready:
        assert steps.log == ["share"]
        assert ready.encoded.matrix[0, channel] == 2.5
        assert (ready.times_us.tolist(), ready.times) == ([7], (7, 7, False))
    assert steps.log == ["share", "unshare"]


def test_an_event_without_a_time_is_timeless() -> None:
    steps = Steps(subscription("a"))
    with steps.matching.ready_for(ONE, Moment()) as ready:
        assert ready.times_us.tolist() == [NO_TIME]
        assert ready.times.timeless


def test_variables_are_encoded_under_the_lock_as_the_channels_number_them() -> None:
    steps = Steps(subscription("a"))
    steps.channels.variable("mode")
    steps.channels.variable("load")
    with steps.matching.ready_for(ONE, Moment(None, {"load": 3})) as ready:
        assert ready.variables[0, 1] == 3


def fail() -> None:
    """Raise in a place where a statement would make the rest unreachable."""
    raise ZeroDivisionError


def test_the_lock_is_released_if_what_is_done_with_an_event_fails() -> None:
    steps = Steps(subscription("a"))
    with pytest.raises(ZeroDivisionError), steps.matching.ready_for(ONE, Moment()):
        fail()
    with steps.lock:
        assert steps.log == ["share", "unshare", "alone"]


@pytest.mark.parametrize("is_flushed", [True, False])
def test_the_lock_is_released_if_a_provider_of_variables_fails(is_flushed: bool) -> None:
    steps = Steps(subscription("a"))
    steps.channels.variable("load")
    steps.index.is_flushed = is_flushed
    with pytest.raises(KeyError):
        steps.match(moment=Moment(7, WatchedVariables()))
    with steps.lock:
        assert steps.log == ["share", "unshare", "alone"]


# -- from pairs to matches ------------------------------------------------------------------------


def test_a_subscription_is_found_once_by_several_entries() -> None:
    found = [(0, 1, SHARED), (0, 0, SHARED), (0, 1, SHARED), (0, 2, 0)]
    steps = Steps(*(subscription(id) for id in "abc"), found=found)
    assert sorted(steps.match()) == ["a", "b", "c"]


def test_one_sure_entry_spares_the_verification() -> None:
    watched = WatchedVariables(load=0)
    text = "x > @load or x < -3"
    found = [(0, 0, SHARED | VERIFY), (0, 0, SHARED), (0, 0, SHARED | VERIFY)]
    assert Steps(subscription("a", text), found=found).match(moment=Moment(None, watched)) == ["a"]
    assert watched.lookups == 0


def test_only_entries_that_ask_for_it_are_verified() -> None:
    texts = {"wrong, but sure": "x = 2", "wrong": "x = 2", "right": "x = 1"}
    found = [(0, 0, 0), (0, 1, VERIFY), (0, 2, VERIFY)]
    steps = Steps(*(subscription(id, text) for id, text in texts.items()), found=found)
    assert steps.match() == ["wrong, but sure", "right"]


def test_subscriptions_that_are_not_alive_are_dropped_before_the_verification() -> None:
    watched = WatchedVariables(load=0)
    filter = parse("x > @load")
    past = Subscription("past", filter, since=0, until=5)
    future = Subscription("future", filter, since=9)
    found = [(0, 0, VERIFY), (0, 1, VERIFY)]
    steps = Steps(past, future, found=found)
    assert steps.match(moment=Moment(7, watched)) == []
    assert watched.lookups == 0
    assert steps.match(moment=Moment(4, watched)) == ["past"]
    assert watched.lookups == 1


def test_an_event_without_a_time_is_judged_regardless_of_lifetimes() -> None:
    past = Subscription("past", parse("x = 1"), since=0, until=5)
    assert Steps(past).match() == ["past"]


def test_nothing_found_is_no_match() -> None:
    assert Steps(subscription("a"), found=[]).match() == []


def test_a_pair_is_verified_as_the_oracle_would() -> None:
    moving = Subscription("a", parse("x = t"), since=0)
    assert is_match(moving, ONE, Moment(1_000_000))
    assert not is_match(moving, ONE, Moment(2_000_000))


times = st.none() | st.integers(0, 9)
lifetimes = st.tuples(times, times)


@given(st.lists(st.tuples(filters, lifetimes), max_size=5), times, st.data())
def test_an_index_that_finds_too_much_gives_the_answers_of_the_oracle(
    drawn: list[tuple[Filter, tuple[int | None, int | None]]],
    time_us: int | None,
    data: st.DataObject,
) -> None:
    subscriptions = [
        Subscription(str(number), filter, {}, since, None, until)
        for number, (filter, (since, until)) in enumerate(drawn)
    ]
    naive = NaiveMatcher()
    naive.add(subscriptions)
    often = st.lists(st.sampled_from(range(len(drawn))), max_size=5) if drawn else st.just([])
    every = [*range(len(drawn)), *data.draw(often)]
    steps = Steps(*subscriptions, found=[(0, number, VERIFY | SHARED) for number in every])
    event = Event(data.draw(events_aimed_at(*(filter.node for filter, _ in drawn))))
    moment = Moment(time_us, {"load": 1})
    assert sorted(steps.match(event, moment)) == sorted(naive.match(event, moment))


# -- batches --------------------------------------------------------------------------------------


def test_a_batch_is_matched_in_chunks_each_under_one_hold_of_the_lock() -> None:
    steps = Steps(subscription("a"), found=[(0, 0, 0), (2, 0, 0)])
    batch = EventBatch(CHUNK_EVENTS + 3, [("x", pa.array([1] * (CHUNK_EVENTS + 3)))], None)
    chunks = steps.matching.match_chunks(batch)
    assert steps.log == [*MATCH, *MATCH]
    assert [each.events.tolist() for each in chunks] == [[0, 2], [CHUNK_EVENTS, CHUNK_EVENTS + 2]]
    assert [each.ids.to_pylist() for each in chunks] == [["a"]] * 2


def test_chunks_are_small_after_a_writer_has_waited_and_grow_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = Steps(subscription("a"))
    seconds = itertools.count()
    monkeypatch.setattr(event_matching, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(steps.lock, "let_writers_pass", lambda: steps.log.append("pass"))
    lengths: list[int] = []

    def finds(times_us: I64) -> list[Pair]:
        steps.lock.waits += not lengths
        lengths.append(len(times_us))
        return []

    monkeypatch.setattr(steps.index, "_finds", finds)
    count = CHUNK_EVENTS + 100
    steps.matching.match_chunks(EventBatch(count, [("x", pa.array([1] * count))], None))
    assert lengths == [CHUNK_EVENTS, 32, 37, 31]
    assert steps.log == [*MATCH, "pass", *MATCH * 3]


def test_each_event_of_a_batch_is_judged_by_itself_at_its_own_time() -> None:
    lasting = Subscription("a", parse("x = t"), since=1_000_000, until=9_000_000)
    steps = Steps(lasting, found=[(event, 0, VERIFY) for event in range(4)])
    seconds = [0, 3, 4, 9]
    times_us = np.array(seconds, np.int64) * 1_000_000
    batch = EventBatch(4, [("x", pa.array([-1, 2, 4, 8]))], times_us)
    (chunk,) = steps.matching.match_chunks(batch)
    assert chunk.events.tolist() == [1]


def test_events_of_a_later_chunk_have_their_own_values_and_times() -> None:
    lasting = Subscription("a", parse("x = t"), since=0, until=9_000_000)
    steps = Steps(lasting, found=[(event, 0, VERIFY) for event in range(3)])
    before = [-1] * CHUNK_EVENTS
    times_us = np.array([*before, 2_000_000, 4_000_000, 9_000_000], np.int64)
    batch = EventBatch(len(times_us), [("x", pa.array([*before, 2, 3, 9]))], times_us)
    first, second = steps.matching.match_chunks(batch)
    assert (first.events.tolist(), second.events.tolist()) == ([], [CHUNK_EVENTS])


def test_a_batch_is_enclosed_for_all_its_times() -> None:
    steps = Steps(subscription("a"), found=[])
    steps.index.enclosed = [False, False]
    times_us = np.array([5, NO_TIME, 3, 9], np.int64)
    steps.matching.match_chunks(EventBatch(4, [], times_us))
    ((window, _),) = steps.index.windows
    assert (window.begin, window.end, window.timeless) == (3, 9, True)


def test_an_empty_batch_has_no_chunks() -> None:
    assert Steps(subscription("a")).matching.match_chunks(EventBatch(0, [], None)) == []


# -- staging --------------------------------------------------------------------------------------


class Adding:
    """A table to which subscriptions are added, and the numbers that its index was given."""

    def __init__(self) -> None:
        self.lock, self.table = SharedLock(), SubscriptionTable()
        self.indexed: list[int] = []

    def add(self, subscriptions: Iterator[Subscription]) -> None:
        add_staged(subscriptions, self.lock, self.table, self._index)

    def _index(self, numbers: I32) -> None:
        self.indexed += numbers.tolist()


def many(count: int, prefix: str = "s") -> Iterator[Subscription]:
    filter = parse("x = 1")
    return (Subscription(f"{prefix}{number}", filter) for number in range(count))


def test_subscriptions_are_added_and_indexed() -> None:
    adding = Adding()
    adding.add(many(3))
    adding.add(many(0, "none"))
    assert (len(adding.table), adding.indexed) == (3, [0, 1, 2])
    assert "s2" in adding.table


def test_matches_get_in_between_and_see_nothing_of_what_is_staged() -> None:
    adding = Adding()
    seen: list[int] = []

    def source() -> Iterator[Subscription]:
        for number, each in enumerate(many(2 * STAGED_MAX + 1)):
            if number % STAGED_MAX == 0:
                adding.lock.share()  # would wait for ever if the lock were held
                seen.append(len(adding.table) + len(adding.indexed))
                adding.lock.unshare()
            yield each

    adding.add(source())
    assert seen == [0, 0, 0]
    assert len(adding.table) == len(adding.indexed) == 2 * STAGED_MAX + 1


def test_nothing_is_added_if_the_source_fails() -> None:
    adding = Adding()

    def source() -> Iterator[Subscription]:
        yield from many(STAGED_MAX + 1)
        fail()

    with pytest.raises(ZeroDivisionError):
        adding.add(source())
    assert (len(adding.table), adding.indexed) == (0, [])
    adding.add(many(STAGED_MAX + 1))
    assert adding.table.columns.count == STAGED_MAX + 1, "numbers are given out again"


def test_nothing_is_added_if_an_id_is_taken() -> None:
    adding = Adding()
    adding.add(iter([subscription("s1")]))
    with pytest.raises(SubscriptionError, match="s1"):
        adding.add(many(3))
    assert (len(adding.table), adding.indexed) == (1, [0])
    assert "s0" not in adding.table
    adding.add(many(3, "t"))
    assert len(adding.table) == adding.table.columns.count == 4, "numbers are given out again"
