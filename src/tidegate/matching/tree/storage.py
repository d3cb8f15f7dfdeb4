"""The arrays of a search tree, and how they grow.

Kernels cannot grow arrays: they stop when there is no room, and are called again once there is.
Growing at least doubles an array, so the cost of adding does not depend on the size of the tree. It
replaces ``arrays``; whoever works on them asks for them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.matching.arrays import I32, I64
from tidegate.matching.rows.link_words import widened
from tidegate.matching.tree.kernels.layout import (
    AS_ROOT,
    BOUND_WORDS,
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
    HEAD_WORDS,
    NODE_WORDS,
    NONE,
    PATH_WORDS,
    S_CHILD,
    SLOT_WORDS,
    TEST_COUNTS,
    TIE_WORDS,
    TreeArrays,
)
from tidegate.matching.tree.kernels.records import new_leaf
from tidegate.matching.tree.kernels.slots import move_slots
from tidegate.matching.tree.tuning import TreeTuning

A = TypeVar("A", bound=npt.NDArray[Any])

FIRST_NODES = 64
"""Nodes, and paths, that a new tree has room for."""


class TreeStorage:
    """The arrays of a tree, which is an empty leaf at first."""

    def __init__(self, order: Sequence[int], tuning: TreeTuning) -> None:
        self.arrays = _empty_arrays(tuning)
        self.number_levels(np.array(order, np.int32))
        new_leaf(self.arrays, NONE, AS_ROOT, 0.0, 0, NONE)

    @property
    def order(self) -> list[int]:
        """The channels in the order of their levels."""
        order: list[int] = self.arrays.channel_at[: self.arrays.head[H_LEVELS]].tolist()
        return order

    @property
    def link_words(self) -> int:
        """How many words of 64 bits the links of an entry take."""
        return int(self.arrays.head[H_LINK_WORDS])

    def number_levels(self, channels: I32) -> None:
        """Give channels that have no level yet the next ones."""
        if not len(channels):
            return
        arrays = self.arrays
        most = int(channels.max()) + 1
        levels = int(arrays.head[H_LEVELS])
        level_of = grown(arrays.level_of, most, NONE)
        new = [each for each in channels.tolist() if level_of[each] == NONE]
        level_of[new] = np.arange(levels, levels + len(new))
        channel_at = grown(arrays.channel_at, levels + len(new))
        channel_at[levels : levels + len(new)] = new
        extent = arrays.extent
        if 2 * most > len(extent):
            extent = np.tile([np.inf, -np.inf], 2 * most)
            extent[: len(arrays.extent)] = arrays.extent
        arrays.head[H_LEVELS] += len(new)
        self.arrays = arrays._replace(
            level_of=level_of,
            channel_at=channel_at,
            extent=extent,
            tests=grown(arrays.tests, TEST_COUNTS * most),
        )

    def grow_nodes(self) -> None:
        """Double the arrays of nodes, paths and slots."""
        arrays, words = self.arrays, self.link_words
        nodes, paths = 2 * len(arrays.node) // NODE_WORDS, 2 * len(arrays.path) // PATH_WORDS
        slot = _empty_slots(4 * nodes)
        move_slots(arrays.slot, slot)
        self.arrays = arrays._replace(
            node=grown(arrays.node, NODE_WORDS * nodes),
            tie=grown(arrays.tie, TIE_WORDS * nodes),
            sure=grown(arrays.sure, words * nodes),
            may=grown(arrays.may, words * nodes),
            path=grown(arrays.path, PATH_WORDS * paths),
            slot=slot,
        )

    def reserve(self, entries: int, bounds: int, motion: int) -> None:
        """Make room for so many entries, constraints and words of motions in all."""
        arrays = self.arrays
        self.arrays = arrays._replace(
            entry=grown(arrays.entry, ENTRY_WORDS * entries),
            links=grown(arrays.links, self.link_words * entries),
            bound=grown(arrays.bound, BOUND_WORDS * bounds),
            motion=grown(arrays.motion, motion),
        )

    def reserve_links(self, words: int) -> bool:
        """Make room for so many words of links; returns whether there was less."""
        arrays, before = self.arrays, self.link_words
        if words <= before:
            return False
        nodes, entries = len(arrays.node) // NODE_WORDS, len(arrays.entry) // ENTRY_WORDS
        arrays.head[H_LINK_WORDS] = words
        self.arrays = arrays._replace(
            links=widened(grown(arrays.links, before * entries), entries, before, words),
            sure=widened(arrays.sure, nodes, before, words),
            may=widened(arrays.may, nodes, before, words),
        )
        return True


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
        tests=np.zeros(0, np.int64),
        entry=np.zeros(0, np.int32),
        bound=np.zeros(0),
        motion=np.zeros(0),
        links=np.zeros(0, np.uint64),
        sure=np.zeros(0, np.uint64),
        may=np.zeros(0, np.uint64),
    )


def _empty_slots(count: int) -> I64:
    slots: I64 = np.zeros((count, SLOT_WORDS), np.int64)
    slots[:, S_CHILD] = EMPTY
    return slots.ravel()


def grown(array: A, length: int, fill: int = 0) -> A:
    """An array of at least some length: itself, or a copy with room for as much again."""
    if len(array) >= length:
        return array
    longer = np.full(max(length, 2 * len(array)), fill, array.dtype)
    longer[: len(array)] = array
    return longer  # type: ignore[return-value]
