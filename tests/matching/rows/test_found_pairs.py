"""Pairs of events and entries: one for each subscription, and ids in place of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.found_pairs import (
    NO_PAIRS,
    EntryPairs,
    ResultBuffers,
    SubscriptionPairs,
    concatenate_pairs,
    first_of_each,
    in_event_order,
    matches_of,
    take,
)
from tidegate.matching.rows.kernels.flags import SHARED, VERIFY

Pair = tuple[int, int, int]

lists_of_pairs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([0, SHARED, SHARED | VERIFY]))
)


def pairs_of(listed: list[Pair]) -> EntryPairs:
    events, numbers, flags = zip(*listed, strict=True) if listed else ((), (), ())
    return np.array(events, np.int32), np.array(numbers, np.int32), np.array(flags, np.uint8)


def listed(pairs: EntryPairs) -> list[Pair]:
    return list(zip(*(each.tolist() for each in pairs), strict=True))


@given(lists_of_pairs)
def test_one_pair_for_each_event_and_subscription(some: list[Pair]) -> None:
    """One that needs no verifying, if there is any: the subscription matches for sure."""
    expected = [
        (event, number, min(each[2] & VERIFY for each in some if each[:2] == (event, number)))
        for event, number in sorted({each[:2] for each in some})
    ]
    first = first_of_each(pairs_of(some))
    assert [(event, number, flags & VERIFY) for event, number, flags in listed(first)] == expected


@given(st.lists(lists_of_pairs, min_size=1, max_size=4))
def test_pairs_of_several_parts_in_the_order_of_events(parts: list[list[Pair]]) -> None:
    joined = concatenate_pairs([pairs_of(each) for each in parts])
    everything = [pair for part in parts for pair in part]
    assert listed(joined) == everything
    assert listed(in_event_order(joined)) == sorted(everything, key=lambda pair: pair[0])


def test_some_of_the_pairs() -> None:
    pairs = pairs_of([(0, 5, 0), (0, 6, VERIFY), (1, 5, 0)])
    assert listed(take(pairs, np.array([True, False, True]))) == [(0, 5, 0), (1, 5, 0)]
    assert listed(take(pairs, np.array([1]))) == [(0, 6, VERIFY)]
    assert listed(NO_PAIRS) == []


# -- matches ----------------------------------------------------------------------------------


def chunk(events: list[int], numbers: list[int], ids: pa.StringArray) -> SubscriptionPairs:
    return SubscriptionPairs(np.array(events, np.int64), np.array(numbers, np.int32), ids)


def test_chunks_with_the_same_ids_share_them_as_a_dictionary() -> None:
    ids = pa.array(["a", "b", "c"])
    found = matches_of([chunk([0, 1], [2, 0], ids), chunk([7], [2], ids)])
    assert found.events.tolist() == [0, 1, 7]
    assert found.subscriptions.to_pylist() == ["c", "a", "c"]
    assert found.subscriptions.dictionary.to_pylist() == ["a", "b", "c"]


def test_a_number_that_went_to_another_subscription_between_two_chunks() -> None:
    chunks = [chunk([0], [1], pa.array(["a", "b"])), chunk([7], [1], pa.array(["a", "x"]))]
    found = matches_of(chunks)
    assert (found.events.tolist(), found.subscriptions.to_pylist()) == ([0, 7], ["b", "x"])


def test_no_chunks() -> None:
    found = matches_of([])
    assert (found.events.tolist(), found.subscriptions.to_pylist()) == ([], [])
    assert (
        found.subscriptions.type == matches_of([chunk([], [], pa.array(["a"]))]).subscriptions.type
    )


def test_buffers_are_kept_until_more_room_is_asked_for() -> None:
    buffers = ResultBuffers()
    first = buffers.with_room_for(10)
    assert buffers.with_room_for(len(first[0])) is first
    assert [len(array) for array in buffers.with_room_for(5_000)] == [5_000] * 3
