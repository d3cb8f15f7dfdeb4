"""Changing the bounds of a test while its entry is in the tree.

Most changes do not change the way of an entry: the bounds are tested only at its leaves, or by a
branch that the new ones take as well. Then they are written where the old ones were, and the guards
above follow. Otherwise the entry is taken out of the tree first, and the caller places it again.

Why the answer stays the same where the entry is left in the tree. A path is right if every event
that satisfies its entry comes to one of the entry's leaves, and if what is proved on the way
(P_FROM) is true. `_keeps_way` makes sure of both, node by node, for the nodes that test the channel
that changes; other nodes do not depend on it. At a node with a branch of values the value must be
the same, at one with a branch of ranges the test must still be a range. At a CUT the new range must
reach the sides that the old one reached: then it also takes both sides, one of them or the *-branch
as before. A range is proved only behind a *-branch, by the span of its node, which the new one must
contain too. On a factored level copies of the entry lie in all branches that it agreed with, which
are too many to look at: it is always taken out.

An annotation depends on the paths of a leaf, on what is proved and on flags, but not on bounds, so
it stays true as well.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import Int
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.tree.kernels.descending import span_of
from tidegate.matching.tree.kernels.guards import guard_leaf, widen_guard
from tidegate.matching.tree.kernels.layout import (
    AS_STAR,
    AS_VALUE,
    B_HIGH,
    B_LOW,
    E_PATHS,
    EXCLUSIVE,
    KIND_MASK,
    LEAF,
    N_CHANNEL,
    N_CUT,
    N_GUARD,
    N_KIND,
    NONE,
    P_FROM,
    P_LEAF,
    P_SIBLING,
    RANGE_TESTS,
    ROOT,
    T_PARENT,
    T_ROLE,
    TEST_COUNTS,
    VALUE_TESTS,
    VALUES,
    TreeArrays,
    bound_at,
    entry_at,
    node_f64,
    node_i32,
    path_at,
    tie_at,
)
from tidegate.matching.tree.kernels.records import channel_of_bound
from tidegate.matching.tree.kernels.removing import remove_entry


@lean
def change_bounds(tree: TreeArrays, entry: Int, test: Int, low: float, high: float) -> None:
    """Write the bounds of an entry's test; NaN if nothing satisfies it.

    The entry is taken out of the tree, if it is in it, unless it keeps its way.
    """
    old_low, old_high = tree.bound[bound_at(test, B_LOW)], tree.bound[bound_at(test, B_HIGH)]
    if low == old_low and high == old_high:
        return
    if tree.entry[entry_at(entry, E_PATHS)] != NONE and not _keeps_ways(
        tree, entry, test, low, high
    ):
        remove_entry(tree, entry)
    tree.bound[bound_at(test, B_LOW)] = low
    tree.bound[bound_at(test, B_HIGH)] = high
    channel = channel_of_bound(tree, test)
    counts = TEST_COUNTS * channel
    tree.tests[counts + (VALUE_TESTS if old_low == old_high else RANGE_TESTS)] -= 1
    tree.tests[counts + (VALUE_TESTS if low == high else RANGE_TESTS)] += 1
    _extend(tree, channel, low)
    _extend(tree, channel, high)
    _follow_guards(tree, entry, channel)


@lean
def _extend(tree: TreeArrays, channel: Int, bound: float) -> None:
    """Extend the extent of a channel by a bound."""
    if np.isfinite(bound):
        tree.extent[2 * channel] = min(tree.extent[2 * channel], bound)
        tree.extent[2 * channel + 1] = max(tree.extent[2 * channel + 1], bound)


@lean
def _keeps_ways(tree: TreeArrays, entry: Int, test: Int, low: float, high: float) -> bool:
    """Whether all paths of an entry are right with other bounds of a test."""
    if np.isnan(low):
        return False
    path = tree.entry[entry_at(entry, E_PATHS)]
    while path != NONE:
        if not _keeps_way(tree, path, test, low, high):
            return False
        path = tree.path[path_at(path, P_SIBLING)]
    return True


@lean
def _keeps_way(tree: TreeArrays, path: Int, test: Int, low: float, high: float) -> bool:
    ints, tie = tree.node.view(np.int32), tree.tie
    channel = channel_of_bound(tree, test)
    old_low, old_high = tree.bound[bound_at(test, B_LOW)], tree.bound[bound_at(test, B_HIGH)]
    is_proved = tree.path[path_at(path, P_FROM)] > test
    node = np.int64(tree.path[path_at(path, P_LEAF)])
    while node != ROOT:
        role, node = tie[tie_at(node, T_ROLE)], np.int64(tie[tie_at(node, T_PARENT)])
        if ints[node_i32(node, N_CHANNEL)] != channel:
            continue
        kind = ints[node_i32(node, N_KIND)]
        if kind & EXCLUSIVE:
            return False
        if kind == VALUES:
            if role == AS_VALUE or low == high:
                return False
            continue
        cut = tree.node[node_f64(node, N_CUT)]
        if (low < cut) != (old_low < cut) or (high >= cut) != (old_high >= cut):
            return False
        if role == AS_STAR and is_proved:
            first, last = span_of(tree, node)
            if low > first or high < last:
                return False
    return True


@lean
def _follow_guards(tree: TreeArrays, entry: Int, channel: Int) -> None:
    """Choose the guards of an entry's leaves anew, and widen those above on a channel."""
    ints, tie = tree.node.view(np.int32), tree.tie
    path = tree.entry[entry_at(entry, E_PATHS)]
    while path != NONE:
        node = np.int64(tree.path[path_at(path, P_LEAF)])
        guard_leaf(tree, node)
        while node != ROOT:
            child, node = node, np.int64(tie[tie_at(node, T_PARENT)])
            if (
                tie[tie_at(child, T_ROLE)] == AS_STAR
                and ints[node_i32(node, N_GUARD)] == channel
                # the guard of a leaf is that of the *-branch to it, and is right already
                and ints[node_i32(child, N_KIND)] & KIND_MASK != LEAF
            ):
                widen_guard(tree, node, entry)
        path = tree.path[path_at(path, P_SIBLING)]
