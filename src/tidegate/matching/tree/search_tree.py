"""A search tree with the entries it holds: arrays that grow, and the kernels that work on them.

Theory of operation. Entries are kept in arrays of their own (``entry``, ``bound``, ``motion``), by
number, with those of one subscription linked. `place` gives them paths in the tree, `remove` takes
them out. Kernels cannot grow arrays: they stop when there is no room, and are called again after
the arrays have grown.

The constraints and motions of removed entries stay behind as garbage. Once it is more than half,
the owner is expected to build the tree anew (``is_wasteful``).

Nothing here takes a lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.matching.arrays import F64, I32, I64, Bools
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.found_pairs import EntryPairs, ResultBuffers
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import MOVING
from tidegate.matching.rows.kernels.program_intervals import INTERVAL_STACK
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.time_window import TimeWindow
from tidegate.matching.tree.kernels.layout import (
    AS_ROOT,
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BOUND_WORDS,
    CHANNEL_MASK,
    E_END,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
    E_MOTION_END,
    E_PATHS,
    E_SUBSCRIPTION,
    E_TESTS,
    EMPTY,
    ENTRY_WORDS,
    H_DELAY,
    H_ELIMINATE,
    H_FACTORED,
    H_FREE_NODE,
    H_FREE_PATH,
    H_LEAF_PATHS_MAX,
    H_LEVELS,
    H_LINK_WORDS,
    H_NODES,
    H_PATHS,
    HEAD_WORDS,
    NODE_WORDS,
    NONE,
    PATH_WORDS,
    S_CHILD,
    SLOT_WORDS,
    TIE_WORDS,
    TreeArrays,
)
from tidegate.matching.tree.kernels.moving import enclose_entries, pin_entries
from tidegate.matching.tree.kernels.placing import place_entries
from tidegate.matching.tree.kernels.records import new_leaf
from tidegate.matching.tree.kernels.removing import remove_entries
from tidegate.matching.tree.kernels.search import evaluate_pairs, match_events, match_links
from tidegate.matching.tree.kernels.slots import move_slots
from tidegate.matching.tree.kernels.splitting import CUTS_MAX
from tidegate.matching.tree.kernels.trits import annotate_all, annotate_entry
from tidegate.matching.tree.level_order import ConstraintCounts, is_testable
from tidegate.matching.tree.link_words import LINK_BITS, as_int, as_words, widened
from tidegate.matching.tree.tuning import DEFAULT_TUNING, TreeTuning

A = TypeVar("A", bound=npt.NDArray[Any])

FIRST_NODES = 64
FIRST_PAIRS = 4_096
"""Nodes of a new tree, and pairs that a search has room for at first."""


class SearchTree:
    """Entries in a search tree whose levels test channels in a given order."""

    def __init__(self, order: Sequence[int] = (), tuning: TreeTuning = DEFAULT_TUNING) -> None:
        self.tuning = tuning
        self.size = 0
        """Number of entries, those among them that are not placed yet."""
        self._entries = 0
        self._bounds = 0
        self._motion = 0
        self._live_bounds = 0
        self._free: list[int] = []
        self._motions: F64 = np.zeros(0)
        self._next_of: I32 = np.zeros(0, np.int32)
        """By entry: the next entry of the same subscription."""
        self._first_of: I32 = np.zeros(0, np.int32)
        """By number of a subscription: its first entry."""
        self._links_of: dict[int, int] = {}
        self._buffers = ResultBuffers()
        self._arrays = _empty_arrays(tuning)
        self.tests = ConstraintCounts()
        self._number_levels(np.array(order, np.int32))
        new_leaf(self._arrays, NONE, AS_ROOT, 0.0, 0, NONE)

    @property
    def order(self) -> list[int]:
        """The channels in the order of their levels."""
        order: list[int] = self._arrays.channel_at[: self._arrays.head[H_LEVELS]].tolist()
        return order

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self._arrays.head[H_NODES])

    @property
    def paths(self) -> int:
        """Number of paths."""
        return int(self._arrays.head[H_PATHS])

    @property
    def is_wasteful(self) -> bool:
        """Whether most constraints in memory belong to entries that were removed."""
        return self._bounds > 1024 and 2 * self._live_bounds < self._bounds

    # -- entries ----------------------------------------------------------------------------------

    def add(self, entries: Entries) -> I64:
        """Store entries without placing them; returns their numbers."""
        numbers = self._allocate(len(entries))
        self._number_levels(np.unique(entries.channel[is_testable(entries)]))
        self._reserve(len(entries.channel), len(entries.motion))
        self._write(entries, numbers)
        self._link_entries(entries.subscription, numbers)
        self.tests.add(entries)
        self.size += len(entries)
        return numbers

    def place(self, numbers: I64) -> None:
        """Place stored entries in the tree, where searches find them."""
        limit = self.tuning.leaf_paths_max
        reserve = 4 * (limit + 8)
        done = 0
        while done < len(numbers):
            done += place_entries(self._arrays, numbers[done:], reserve)
            if done < len(numbers):
                self._grow_nodes()

    def entries_of(self, subscriptions: I32) -> I64:
        """The numbers of the entries of some subscriptions."""
        found: list[int] = []
        for subscription in subscriptions.tolist():
            entry = (
                self._first_of.item(subscription) if subscription < len(self._first_of) else NONE
            )
            while entry != NONE:
                found.append(entry)
                entry = self._next_of.item(entry)
        return np.array(found, np.int64)

    def remove(self, subscriptions: I32) -> None:
        """Remove the entries of some subscriptions, placed or not."""
        numbers = self.entries_of(subscriptions)
        if not len(numbers):
            return
        remove_entries(self._arrays, numbers)
        words = self._entry_words()[numbers]
        self._live_bounds -= int((words[:, E_END] - words[:, E_FIRST]).sum())
        tests = _ranges(words[:, E_FIRST], words[:, E_TESTS])
        bounds = self._arrays.bound.reshape(-1, BOUND_WORDS)[tests]
        channels = (bounds.view(np.int64)[:, B_CHANNEL] & CHANNEL_MASK).astype(np.int32)
        self.tests.count(channels, bounds[:, B_LOW] == bounds[:, B_HIGH], -1)
        self.size -= len(numbers)
        self._free += numbers.tolist()
        self._entry_words()[numbers, E_SUBSCRIPTION] = NONE
        self._first_of[subscriptions[subscriptions < len(self._first_of)]] = NONE

    def moving(self) -> I64:
        """The numbers of the entries whose bounds move."""
        words = self._entry_words()[: self._entries]
        return np.flatnonzero(
            (words[:, E_SUBSCRIPTION] != NONE) & (words[:, E_FLAGS] & MOVING != 0)
        )

    def enclose(self, numbers: I64, window: TimeWindow, program: I32) -> None:
        """Write the envelopes of moving bounds for a window, and place the entries anew."""
        remove_entries(self._arrays, numbers)
        enclose_entries(
            self._arrays, self._motions, program, numbers, window.times, window.variables,
            np.empty(INTERVAL_STACK),
        )  # fmt: skip
        self.place(numbers)

    def pin(self, numbers: I64, pin: int) -> None:
        """Evaluate the functions of entries for another time; envelopes are not written."""
        words = self._entry_words()[numbers]
        pin_entries(self._arrays, self._motions, numbers[words[:, E_FLAGS] & MOVING != 0], pin)

    def take_out(self) -> Entries:
        """A copy of all entries."""
        words = self._entry_words()[: self._entries]
        words = words[words[:, E_SUBSCRIPTION] != NONE]
        bounds = self._arrays.bound.reshape(-1, BOUND_WORDS)
        first = offsets(words[:, E_END] - words[:, E_FIRST])
        which = _ranges(words[:, E_FIRST], words[:, E_END])
        owner = np.repeat(np.arange(len(words)), np.diff(first))
        channel = (bounds.view(np.int64)[which, B_CHANNEL] & CHANNEL_MASK).astype(np.int32)
        in_order = np.lexsort((channel, owner))
        which = which[in_order]
        motion_first = offsets(words[:, E_MOTION_END] - words[:, E_MOTION])
        return Entries(
            subscription=words[:, E_SUBSCRIPTION].copy(),
            flags=words[:, E_FLAGS].astype(np.uint8),
            first=first,
            channel=channel[in_order],
            low=bounds[which, B_LOW],
            high=bounds[which, B_HIGH],
            motion_first=motion_first,
            motion=self._motions[_ranges(words[:, E_MOTION], words[:, E_MOTION_END])],
        )

    def _allocate(self, count: int) -> I64:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        new = np.arange(self._entries, self._entries + count - len(reused))
        self._entries += len(new)
        words = self._arrays.head[H_LINK_WORDS]
        arrays = self._arrays
        self._arrays = arrays._replace(
            entry=_grown(arrays.entry, ENTRY_WORDS * self._entries),
            links=_grown(arrays.links, words * self._entries),
        )
        self._next_of = _grown(self._next_of, self._entries)
        return np.concatenate([np.array(reused, np.int64), new])

    def _reserve(self, bounds: int, motion: int) -> None:
        self._arrays = self._arrays._replace(
            bound=_grown(self._arrays.bound, BOUND_WORDS * (self._bounds + bounds))
        )
        self._motions = _grown(self._motions, self._motion + motion)

    def _write(self, entries: Entries, numbers: I64) -> None:
        """Write the records of entries, with the constraints that branches can test first."""
        arrays = self._arrays
        is_test = is_testable(entries)
        owner = np.repeat(np.arange(len(entries)), np.diff(entries.first))
        level = np.zeros(len(owner), np.int32)
        level[is_test] = arrays.level_of[entries.channel[is_test]]
        order = np.lexsort((level, ~is_test, owner))
        begin = self._bounds
        bound = arrays.bound.reshape(-1, BOUND_WORDS)[begin : begin + len(order)]
        bound[:, B_LOW], bound[:, B_HIGH] = entries.low[order], entries.high[order]
        bound.view(np.int64)[:, B_CHANNEL] = entries.channel[order]  # with a margin of 0
        words = np.empty((len(entries), ENTRY_WORDS), np.int32)
        words[:, E_SUBSCRIPTION], words[:, E_FLAGS] = entries.subscription, entries.flags
        words[:, E_FIRST] = begin + entries.first[:-1]
        words[:, E_TESTS] = words[:, E_FIRST] + np.bincount(
            owner, weights=is_test, minlength=len(entries)
        ).astype(np.int32)
        words[:, E_END] = begin + entries.first[1:]
        words[:, E_MOTION] = self._motion + entries.motion_first[:-1]
        words[:, E_MOTION_END] = self._motion + entries.motion_first[1:]
        words[:, E_PATHS] = NONE
        self._entry_words()[numbers] = words
        self._motions[self._motion : self._motion + len(entries.motion)] = entries.motion
        self._bounds += len(order)
        self._live_bounds += len(order)
        self._motion += len(entries.motion)
        _extend(arrays.extent, entries, is_test)
        self._write_links(numbers, entries.subscription.tolist())

    def _link_entries(self, subscriptions: I32, numbers: I64) -> None:
        """Link the entries of each subscription."""
        if not len(numbers):
            return
        self._first_of = _grown(self._first_of, int(subscriptions.max()) + 1, NONE)
        distinct = np.unique(subscriptions)
        if len(distinct) == len(subscriptions) and np.all(self._first_of[subscriptions] == NONE):
            self._next_of[numbers] = NONE
            self._first_of[subscriptions] = numbers
            return
        for subscription, entry in zip(subscriptions.tolist(), numbers.tolist(), strict=True):
            self._next_of[entry] = self._first_of[subscription]
            self._first_of[subscription] = entry

    def _entry_words(self) -> I32:
        return self._arrays.entry.reshape(-1, ENTRY_WORDS)

    def _number_levels(self, channels: I32) -> None:
        """Give channels that have no level yet the next ones."""
        if not len(channels):
            return
        arrays = self._arrays
        most = int(channels.max()) + 1
        levels = int(arrays.head[H_LEVELS])
        level_of = _grown(arrays.level_of, most, NONE)
        new = [each for each in channels.tolist() if level_of[each] == NONE]
        level_of[new] = np.arange(levels, levels + len(new))
        channel_at = _grown(arrays.channel_at, levels + len(new))
        channel_at[levels : levels + len(new)] = new
        extent = arrays.extent
        if 2 * most > len(extent):
            extent = np.tile([np.inf, -np.inf], 2 * most)
            extent[: len(arrays.extent)] = arrays.extent
        arrays.head[H_LEVELS] += len(new)
        self._arrays = arrays._replace(level_of=level_of, channel_at=channel_at, extent=extent)

    def _grow_nodes(self) -> None:
        """Double the arrays of nodes, paths and slots."""
        arrays = self._arrays
        words = int(arrays.head[H_LINK_WORDS])
        nodes, paths = 2 * len(arrays.node) // NODE_WORDS, 2 * len(arrays.path) // PATH_WORDS
        slot = _empty_slots(4 * nodes)
        move_slots(arrays.slot, slot)
        self._arrays = arrays._replace(
            node=_grown(arrays.node, NODE_WORDS * nodes),
            tie=_grown(arrays.tie, TIE_WORDS * nodes),
            sure=_grown(arrays.sure, words * nodes),
            may=_grown(arrays.may, words * nodes),
            path=_grown(arrays.path, PATH_WORDS * paths),
            slot=slot,
        )

    # -- matching ---------------------------------------------------------------------------------

    def find(
        self, encoded: Encoded, times_us: I64, variables: F64, program: I32
    ) -> tuple[EntryPairs, int, int]:
        """The pairs of an event and an entry that it satisfies, by event, all their flags, and the
        steps. Pairs have the numbers of the subscriptions.
        """
        events, entries, flags = self._buffers.with_room_for(FIRST_PAIRS)
        stack = self._stack()
        while True:
            count, _, steps = match_events(
                self._arrays, encoded.matrix, encoded.set_first, encoded.set_value, stack, events,
                entries, flags,
            )  # fmt: skip
            if count >= 0:
                break
            events, entries, flags = self._buffers.with_room_for(2 * len(events))
        kept, seen = self._evaluated(
            encoded, times_us, variables, program, (events[:count], entries[:count], flags[:count])
        )
        return (events[:kept].copy(), entries[:kept].copy(), flags[:kept].copy()), seen, steps

    def _evaluated(
        self,
        encoded: Encoded,
        times_us: I64,
        variables: F64,
        program: I32,
        pairs: EntryPairs,
    ) -> tuple[int, int]:
        """Evaluate unsure pairs in place; returns how many are left, and their flags."""
        kept, seen = evaluate_pairs(
            self._arrays, self._motions, program, encoded.matrix, times_us, variables,
            np.empty(STACK_MAX), *pairs,
        )  # fmt: skip
        return kept, seen

    def _stack(self) -> I32:
        # a node leaves at most two branches waiting, and a way has a node for each level and cut
        return np.empty(2 * (CUTS_MAX + 1) * (int(self._arrays.head[H_LEVELS]) + 1) + 8, np.int32)

    # -- links ------------------------------------------------------------------------------------

    def set_links(self, subscription: int, links: int) -> None:
        """Set the links over which a subscription is reached."""
        if links:
            self._links_of[subscription] = links
        else:
            self._links_of.pop(subscription, None)
        self._have_link_words(links)
        numbers = self.entries_of(np.array([subscription], np.int32))
        self._write_links(numbers, [subscription] * len(numbers))
        for number in numbers.tolist():
            annotate_entry(self._arrays, number)

    def _have_link_words(self, links: int) -> None:
        """Make room for the annotations of all links in a set."""
        words = -(-links.bit_length() // LINK_BITS)
        arrays = self._arrays
        before = int(arrays.head[H_LINK_WORDS])
        if words <= before:
            return
        arrays.head[H_LINK_WORDS] = words
        nodes = len(arrays.node) // NODE_WORDS
        self._arrays = arrays._replace(
            links=widened(arrays.links, self._entries, before, words),
            sure=widened(arrays.sure, nodes, before, words),
            may=widened(arrays.may, nodes, before, words),
        )
        annotate_all(self._arrays)

    def _write_links(self, numbers: I64, subscriptions: Sequence[int]) -> None:
        words = int(self._arrays.head[H_LINK_WORDS])
        if not words:
            return
        rows = self._arrays.links[: words * (len(self._arrays.links) // words)].reshape(-1, words)
        for number, subscription in zip(numbers.tolist(), subscriptions, strict=True):
            rows[number] = as_words(self._links_of.get(subscription, 0), words)

    def find_links(
        self, encoded: Encoded, times_us: I64, variables: F64, program: I32, mask: int
    ) -> tuple[int, EntryPairs, int]:
        """The links of one event that are found Yes, the entries to look at, and the steps.

        The entries, given as pairs with the numbers of their subscriptions, are those with the link
        COLLECTED, and those that are to be verified.
        """
        words = int(self._arrays.head[H_LINK_WORDS])
        known = mask & ((1 << (words * LINK_BITS)) - 1)
        events, entries, flags = self._buffers.with_room_for(FIRST_PAIRS)
        stack = self._stack()
        while True:
            undecided = as_words(known, words)
            count, steps = match_links(
                self._arrays, encoded.matrix, encoded.set_first, encoded.set_value, stack,
                undecided, mask & COLLECTED, entries, flags,
            )  # fmt: skip
            if count >= 0:
                break
            events, entries, flags = self._buffers.with_room_for(2 * len(events))
        events[:count] = 0
        pairs = events[:count], entries[:count], flags[:count]
        kept, _ = self._evaluated(encoded, times_us, variables, program, pairs)
        found = known & ~as_int(undecided)
        return found, (events[:kept].copy(), entries[:kept].copy(), flags[:kept].copy()), steps

    def take_links(self, other: SearchTree) -> None:
        """Take over the links of all subscriptions from another tree."""
        self._links_of = other._links_of
        self._have_link_words(max(self._links_of.values(), default=0))
        if not self._links_of:
            return
        words = self._entry_words()[: self._entries]
        numbers = np.flatnonzero(words[:, E_SUBSCRIPTION] != NONE)
        self._write_links(numbers, words[numbers, E_SUBSCRIPTION].tolist())
        annotate_all(self._arrays)

    def links_of(self, subscription: int) -> int:
        """The links over which a subscription is reached."""
        return self._links_of.get(subscription, 0)


def _extend(extent: F64, entries: Entries, is_test: Bools) -> None:
    """Extend the extents of channels by the finite bounds of entries."""
    for side in (entries.low, entries.high):
        finite = is_test & np.isfinite(side)
        np.minimum.at(extent, 2 * entries.channel[finite], side[finite])
        np.maximum.at(extent, 2 * entries.channel[finite] + 1, side[finite])


def _empty_arrays(tuning: TreeTuning) -> TreeArrays:
    head = np.zeros(HEAD_WORDS, np.int64)
    head[[H_FREE_NODE, H_FREE_PATH]] = NONE
    head[H_FACTORED] = tuning.factored
    head[H_ELIMINATE] = tuning.eliminates_trivial_tests
    head[H_DELAY] = tuning.delays_branching
    head[H_LEAF_PATHS_MAX] = tuning.leaf_paths_max
    return TreeArrays(
        head=head,
        node=np.zeros(NODE_WORDS * FIRST_NODES),
        tie=np.zeros(TIE_WORDS * FIRST_NODES, np.int32),
        path=np.zeros(PATH_WORDS * FIRST_NODES, np.int32),
        slot=_empty_slots(4 * FIRST_NODES),
        level_of=np.zeros(0, np.int32),
        channel_at=np.zeros(0, np.int32),
        extent=np.zeros(0),
        entry=np.zeros(0, np.int32),
        bound=np.zeros(0),
        links=np.zeros(0, np.uint64),
        sure=np.zeros(0, np.uint64),
        may=np.zeros(0, np.uint64),
    )


def _empty_slots(count: int) -> I64:
    slots: I64 = np.zeros((count, SLOT_WORDS), np.int64)
    slots[:, S_CHILD] = EMPTY
    return slots.ravel()


def _grown(array: A, length: int, fill: int = 0) -> A:
    """An array of at least some length: itself, or a copy with room for as much again."""
    if len(array) >= length:
        return array
    longer = np.full(max(length, 2 * len(array)), fill, array.dtype)
    longer[: len(array)] = array
    return longer  # type: ignore[return-value]


def _ranges(begin: I32, end: I32) -> I64:
    """The integers of several ranges, one range after the other."""
    lengths = (end - begin).astype(np.int64)
    starts = np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    result: I64 = starts + np.arange(lengths.sum())
    return result
