"""Pairs of an event and an entry or a subscription, as arrays, and operations on them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.batches import Matches
from tidegate.matching.rows.kernels.flags import VERIFY

EntryPairs = tuple[I32, I32, U8]
"""Pairs of an event and an entry that it satisfies: the events, the numbers of the entries'
subscriptions, and the entries' flags. A plain tuple, because each match of one event makes some."""

NO_PAIRS: EntryPairs = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8)


def empty_pairs(length: int) -> EntryPairs:
    """Arrays for so many pairs, without values."""
    return np.empty(length, np.int32), np.empty(length, np.int32), np.empty(length, np.uint8)


class ResultBuffers(threading.local):
    """Arrays that a kernel writes pairs to, kept from call to call; each thread has its own."""

    def __init__(self) -> None:
        self._arrays = empty_pairs(1024)

    def with_room_for(self, length: int) -> EntryPairs:
        """Arrays of at least this length."""
        if len(self._arrays[0]) < length:
            self._arrays = empty_pairs(length)
        return self._arrays


class SubscriptionPairs(NamedTuple):
    """Pairs of an event and the number of a subscription, and the ids of all numbers.

    Numbers are used again after a removal, so they mean something only together with the ids of
    the moment at which the pairs were found.
    """

    events: I64
    numbers: I32
    ids: pa.StringArray


def take(pairs: EntryPairs, chosen: npt.NDArray[Any]) -> EntryPairs:
    """Some of the pairs, chosen by index or by a mask."""
    events, numbers, flags = pairs
    return events[chosen], numbers[chosen], flags[chosen]


def concatenate_pairs(found: Sequence[EntryPairs]) -> EntryPairs:
    """The pairs found in several parts, one part after the other."""
    events, numbers, flags = zip(*found, strict=True)
    return np.concatenate(events), np.concatenate(numbers), np.concatenate(flags)


def in_event_order(pairs: EntryPairs) -> EntryPairs:
    """The pairs in the order of their events."""
    return take(pairs, np.argsort(pairs[0], kind="stable"))


def first_of_each(pairs: EntryPairs) -> EntryPairs:
    """One pair for each event and subscription, in their order; one without VERIFY if there is any.

    A subscription with several disjuncts may be found by several of its entries.
    """
    events, numbers, flags = pairs
    keys = events.astype(np.int64) << 32 | numbers  # both are less than 2**31
    order = np.lexsort((flags & VERIFY, keys))  # by key, and those without VERIFY first
    in_order = keys[order]
    is_first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    return take(pairs, order[is_first[: len(order)]])  # cut, if there are no pairs at all


def matches_of(chunks: Sequence[SubscriptionPairs]) -> Matches:
    """The matches of several chunks of a batch, with ids in place of numbers.

    Between two chunks subscriptions may come and go. As long as the ids are the same array, they
    can serve as the dictionary of all chunks.
    """
    if not chunks:
        return Matches(np.zeros(0, np.int64), pa.array([], pa.string()).dictionary_encode())
    events = np.concatenate([each.events for each in chunks])
    if all(each.ids is chunks[0].ids for each in chunks):
        numbers = np.concatenate([each.numbers for each in chunks])
        return Matches(events, pa.DictionaryArray.from_arrays(numbers, chunks[0].ids))
    ids = pa.concat_arrays([each.ids.take(each.numbers) for each in chunks])
    return Matches(events, ids.dictionary_encode())
