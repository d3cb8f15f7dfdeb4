"""Guards: a range that everything behind a *-branch, or in a leaf, requires.

Delayed branching (Gryphon, 2.1): "Traversing *-branches may be delayed until after a set of
predicate tests have been applied", which "prunes paths from those *-branches which are inconsistent
with the tests". Here the tests of a *-branch are one range on one channel. If an event is outside
of it, the branch is not taken.

Why the answer stays the same: a guard is the hull of constraints of which every path behind it has
one, so what the guard excludes, every path would have excluded. New paths widen it or remove it;
paths that go leave it wider than needed.

A guard that would let most events pass costs more than it saves, so one that is wider than
GUARD_WIDTH_MAX of all bounds that were seen on its channel is removed.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import Int
from tidegate.matching.rows.kernels.jit import inlined, lean
from tidegate.matching.tree.kernels.layout import (
    AS_STAR,
    B_HIGH,
    B_LOW,
    E_TESTS,
    H_DELAY,
    N_GUARD,
    N_GUARD_HIGH,
    N_GUARD_LOW,
    N_STAR,
    NONE,
    P_ENTRY,
    P_FROM,
    P_NEXT,
    T_PARENT,
    T_PATHS,
    T_ROLE,
    TreeArrays,
    bound_at,
    entry_at,
    node_f64,
    node_i32,
    path_at,
    tie_at,
)
from tidegate.matching.tree.kernels.records import channel_of_bound, test_on

GUARD_WIDTH_MAX = 0.5
CHOICE_PATHS_MAX = 32
"""A leaf with more paths than this gets no guard: they hardly have one range in common."""


@lean
def guard_leaf(tree: TreeArrays, leaf: Int) -> None:
    """Choose the guard of a leaf anew, which is also that of the *-branch that leads to it."""
    ints = tree.node.view(np.int32)
    ints[node_i32(leaf, N_GUARD)] = NONE
    if tree.head[H_DELAY] and tree.tie[tie_at(leaf, T_PATHS)] <= CHOICE_PATHS_MAX:
        _choose(tree, leaf)
    if tree.tie[tie_at(leaf, T_ROLE)] == AS_STAR:
        parent = tree.tie[tie_at(leaf, T_PARENT)]
        ints[node_i32(parent, N_GUARD)] = ints[node_i32(leaf, N_GUARD)]
        tree.node[node_f64(parent, N_GUARD_LOW)] = tree.node[node_f64(leaf, N_GUARD_LOW)]
        tree.node[node_f64(parent, N_GUARD_HIGH)] = tree.node[node_f64(leaf, N_GUARD_HIGH)]


@lean
def _choose(tree: TreeArrays, leaf: Int) -> None:
    ints, paths = tree.node.view(np.int32), tree.path
    first = ints[node_i32(leaf, N_STAR)]
    if first == NONE:
        return
    entry = paths[path_at(first, P_ENTRY)]
    narrowest = GUARD_WIDTH_MAX
    for constraint in range(paths[path_at(first, P_FROM)], tree.entry[entry_at(entry, E_TESTS)]):
        channel = channel_of_bound(tree, constraint)
        low = tree.bound[bound_at(constraint, B_LOW)]
        high = tree.bound[bound_at(constraint, B_HIGH)]
        path = paths[path_at(first, P_NEXT)]
        while path != NONE:
            other = test_on(tree, paths[path_at(path, P_ENTRY)], channel)
            if other == NONE:
                low, high = -np.inf, np.inf
                break
            low = min(low, tree.bound[bound_at(other, B_LOW)])
            high = max(high, tree.bound[bound_at(other, B_HIGH)])
            path = paths[path_at(path, P_NEXT)]
        width = _width(tree, channel, low, high)
        if width < narrowest:
            narrowest = width
            ints[node_i32(leaf, N_GUARD)] = channel
            tree.node[node_f64(leaf, N_GUARD_LOW)] = low
            tree.node[node_f64(leaf, N_GUARD_HIGH)] = high


@inlined
def _width(tree: TreeArrays, channel: Int, low: float, high: float) -> float:
    """The width of a range, as a part of the extent of its channel."""
    if low == high:
        return 0.0
    least, most = tree.extent[2 * channel], tree.extent[2 * channel + 1]
    low, high = max(low, least), min(high, most)
    if not (most > least and high > low):
        return 1.0
    # the difference of two large numbers may be infinite, the half of a small one zero
    scale = 1.0 if np.isfinite(most - least) else 0.5
    width: float = (scale * high - scale * low) / (scale * most - scale * least)
    return width


@lean
def widen_guard(tree: TreeArrays, node: Int, entry: Int) -> None:
    """Widen the guard of a node's *-branch for an entry that takes it."""
    ints = tree.node.view(np.int32)
    channel = ints[node_i32(node, N_GUARD)]
    if channel == NONE:
        return
    constraint = test_on(tree, entry, channel)
    if constraint == NONE:
        ints[node_i32(node, N_GUARD)] = NONE
        return
    low = min(tree.node[node_f64(node, N_GUARD_LOW)], tree.bound[bound_at(constraint, B_LOW)])
    high = max(tree.node[node_f64(node, N_GUARD_HIGH)], tree.bound[bound_at(constraint, B_HIGH)])
    tree.node[node_f64(node, N_GUARD_LOW)] = low
    tree.node[node_f64(node, N_GUARD_HIGH)] = high
    if _width(tree, channel, low, high) >= GUARD_WIDTH_MAX:
        ints[node_i32(node, N_GUARD)] = NONE
