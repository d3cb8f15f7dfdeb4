"""Splitting leaves that have become too large.

A leaf is split when it has more than `leaf_paths_max` paths. It becomes a CUT node if it is in the
branch of ranges and some cut separates its ranges, else a VALUES node on the next attribute:
with trivial-test elimination the next one that any of its paths cares about. Levels on which all of
them don't care would be nodes with a *-branch only, which every search passes, so the answer is
the same without them. When an entry comes that cares, the node is inserted (`descending.py`).
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import Int
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.tree.kernels.descending import NO_ROOM, place_path, span_of
from tidegate.matching.tree.kernels.layout import (
    B_HIGH,
    B_LOW,
    CUT,
    E_PATHS,
    E_TESTS,
    EXCLUSIVE,
    H_ELIMINATE,
    H_FACTORED,
    H_LEAF_PATHS_MAX,
    H_LEVELS,
    H_LINK_WORDS,
    LEAF,
    N_CHANNEL,
    N_CUT,
    N_GUARD,
    N_KIND,
    N_STAR,
    NONE,
    P_ENTRY,
    P_LEAF,
    P_NEXT,
    P_SIBLING,
    ROOT,
    T_CHILD,
    T_CUTS,
    T_LEVEL,
    T_PARENT,
    T_PATHS,
    VALUES,
    TreeArrays,
    bound_at,
    entry_at,
    node_f64,
    node_i32,
    path_at,
    tie_at,
)
from tidegate.matching.tree.kernels.records import (
    channel_of_bound,
    first_from_level,
    first_leaf,
    has_room,
    next_leaf,
    test_on,
)
from tidegate.matching.tree.kernels.slots import drop_child, find_child, put_child
from tidegate.matching.tree.kernels.trits import annotate_above, annotate_leaf

CUTS_MAX = 12
"""CUT nodes on one attribute, one below the other."""

FACTORED_CUTS_MAX = 4
"""The same for a factored attribute, each of whose ranges has a copy of what does not care."""

LEVELS_MAX = 256
"""Levels that have nodes. A path is counted in all nodes above it, so where each subscription asks
for an attribute of its own, the work of adding them would grow with the square of their number."""

LEFT, SPLIT = 0, 1
"""What has become of a leaf: it is left as it was, a node now, or to be split once there is room.
"""

SAMPLE_PATHS = 24
"""How many paths of a leaf are looked at to choose a cut."""


@lean
def split_leaves_of(tree: TreeArrays, entry: Int) -> bool:
    """Split the leaves of an entry that are too large; returns False if there is no room."""
    path = tree.entry[entry_at(entry, E_PATHS)]
    has_had_room = True
    while path != NONE:
        leaf = np.int64(tree.path[path_at(path, P_LEAF)])
        outcome = _split(tree, leaf)
        has_had_room &= outcome != NO_ROOM
        if outcome == SPLIT:
            has_had_room &= _split_below(tree, leaf)
        path = tree.path[path_at(path, P_SIBLING)]
    return has_had_room


@lean
def _split_below(tree: TreeArrays, top: Int) -> bool:
    """Split all leaves below a node that are too large, and combine their annotations.

    Returns False if some are still to be split, because there is no room.
    """
    leaf = first_leaf(tree, top)
    has_had_room = True
    while leaf != NONE:
        outcome = _split(tree, leaf)
        if outcome == SPLIT:
            leaf = first_leaf(tree, leaf)
            continue
        has_had_room &= outcome != NO_ROOM
        if tree.head[H_LINK_WORDS]:
            annotate_leaf(tree, leaf)
            annotate_above(tree, leaf)
        leaf = next_leaf(tree, leaf, top)
    return has_had_room


@lean
def _split(tree: TreeArrays, leaf: Int) -> Int:
    """Split a leaf if it is too large and can be split; returns SPLIT, LEFT or NO_ROOM."""
    ints, tie, paths = tree.node.view(np.int32), tree.tie, tree.path
    count = np.int64(tie[tie_at(leaf, T_PATHS)])
    # One that could not be split is tried again when it is twice as large: a leaf of many equal
    # filters must not be looked through with each one that is added.
    if count <= tree.head[H_LEAF_PATHS_MAX] or count < 2 * tie[tie_at(leaf, T_CHILD)]:
        return np.int64(LEFT)
    level, cuts = tie[tie_at(leaf, T_LEVEL)], tie[tie_at(leaf, T_CUTS)]
    if not _become_node(tree, leaf):
        tie[tie_at(leaf, T_CHILD)] = count
        return np.int64(LEFT)
    # Placing must not run out of room, so the most that it can need has to be there before: each
    # path may be cut in three, and be copied once more where a value is new.
    copies = _copies_at_most(tree, leaf)
    if copies == NO_ROOM or not has_room(tree, count + 4, 4 * count + 4 + copies):
        ints[node_i32(leaf, N_KIND)] = LEAF
        tie[tie_at(leaf, T_LEVEL)], tie[tie_at(leaf, T_CUTS)] = level, cuts
        return np.int64(NO_ROOM)
    path = np.int64(ints[node_i32(leaf, N_STAR)])
    ints[node_i32(leaf, N_STAR)] = NONE
    ints[node_i32(leaf, N_GUARD)] = NONE
    tie[tie_at(leaf, T_CHILD)] = NONE
    # placing counts the paths again, here and above
    node = leaf
    while node != NONE:
        tie[tie_at(node, T_PATHS)] -= count
        node = np.int64(tie[tie_at(node, T_PARENT)])
    while path != NONE:
        after = np.int64(paths[path_at(path, P_NEXT)])
        paths[path_at(path, P_LEAF)] = leaf
        pending = place_path(tree, path, np.int64(NONE))
        while pending != NONE:
            pending = place_path(tree, pending, np.int64(paths[path_at(pending, P_NEXT)]))
        path = after
    return np.int64(SPLIT)


@lean
def _copies_at_most(tree: TreeArrays, node: Int) -> Int:
    """How many copies are made at most when the paths of a leaf that has become a node go down.

    On a factored level a path without a value goes into the branches of all values. NO_ROOM if
    there is no room to count these: they are entered into the hash table, and taken out again.
    """
    ints = tree.node.view(np.int32)
    if ints[node_i32(node, N_KIND)] != VALUES | EXCLUSIVE:
        return np.int64(0)
    values, others, full = np.int64(0), np.int64(0), False
    for leaving in range(2):
        path = np.int64(ints[node_i32(node, N_STAR)])
        while path != NONE:
            entry = tree.path[path_at(path, P_ENTRY)]
            constraint = test_on(tree, entry, ints[node_i32(node, N_CHANNEL)])
            path = np.int64(tree.path[path_at(path, P_NEXT)])
            low = np.nan if constraint == NONE else tree.bound[bound_at(constraint, B_LOW)] + 0.0
            if constraint == NONE or low != tree.bound[bound_at(constraint, B_HIGH)]:
                others += 1 - leaving
                continue
            bits = np.float64(low).view(np.int64)
            is_entered = find_child(tree.slot, node, bits) != NONE
            if leaving and is_entered:
                drop_child(tree.slot, node, bits)
            elif not leaving and not is_entered:
                full = full or not has_room(tree, values + 1, 0)
                if not full:
                    put_child(tree.slot, node, bits, node)
                    values += 1
    return np.int64(NO_ROOM) if full else values * others


@lean
def _become_node(tree: TreeArrays, leaf: Int) -> bool:
    """Choose what a leaf tests when it is split; returns False if there is nothing to test."""
    tie = tree.tie
    level, cuts = np.int64(tie[tie_at(leaf, T_LEVEL)]), tie[tie_at(leaf, T_CUTS)]
    if cuts != NONE:
        if _become_cut(tree, leaf, level):
            return True
        level += 1
    while level < min(tree.head[H_FACTORED], tree.head[H_LEVELS]):
        values, ranges = _tests_at(tree, leaf, level)
        if values or not ranges:
            # also if nobody cares yet: who comes later and does must still find the table
            _become_values(tree, leaf, level, EXCLUSIVE)
            return True
        tie[tie_at(leaf, T_CUTS)] = 0
        if _become_cut(tree, leaf, level):
            return True
        level += 1
    # The root is on the first level, so that a node for a level that was left out always has a
    # parent below which it can be inserted.
    if tree.head[H_ELIMINATE] and leaf != ROOT:
        level = _next_level(tree, leaf, level)
    if level >= min(tree.head[H_LEVELS], LEVELS_MAX):
        tie[tie_at(leaf, T_CUTS)] = cuts
        return False
    _become_values(tree, leaf, level, 0)
    return True


@lean
def _become_values(tree: TreeArrays, leaf: Int, level: Int, exclusive: Int) -> None:
    ints = tree.node.view(np.int32)
    ints[node_i32(leaf, N_KIND)] = VALUES | exclusive
    ints[node_i32(leaf, N_CHANNEL)] = tree.channel_at[level]
    tree.tie[tie_at(leaf, T_LEVEL)] = level
    tree.tie[tie_at(leaf, T_CUTS)] = NONE


@lean
def _become_cut(tree: TreeArrays, leaf: Int, level: Int) -> bool:
    """Become a CUT node, if there is a cut that separates the paths of a leaf."""
    ints = tree.node.view(np.int32)
    factored = level < tree.head[H_FACTORED]
    limit = FACTORED_CUTS_MAX if factored else CUTS_MAX
    if tree.tie[tie_at(leaf, T_CUTS)] >= limit:
        return False
    channel = tree.channel_at[level]
    cut = _best_cut(tree, leaf, channel)
    if np.isnan(cut):
        return False
    ints[node_i32(leaf, N_KIND)] = CUT | (EXCLUSIVE if factored else 0)
    ints[node_i32(leaf, N_CHANNEL)] = channel
    tree.node[node_f64(leaf, N_CUT)] = cut
    tree.tie[tie_at(leaf, T_LEVEL)] = level
    return True


@lean
def _tests_at(tree: TreeArrays, leaf: Int, level: Int) -> tuple[bool, bool]:
    """Whether some path of a leaf tests a value at a level, and whether some tests a range."""
    values, ranges = False, False
    path = tree.node.view(np.int32)[node_i32(leaf, N_STAR)]
    while path != NONE:
        constraint = test_on(tree, tree.path[path_at(path, P_ENTRY)], tree.channel_at[level])
        if constraint != NONE:
            low = tree.bound[bound_at(constraint, B_LOW)]
            is_value = bool(low == tree.bound[bound_at(constraint, B_HIGH)])
            values |= is_value
            ranges |= not is_value
        path = tree.path[path_at(path, P_NEXT)]
    return values, ranges


@lean
def _next_level(tree: TreeArrays, leaf: Int, level: Int) -> Int:
    """The first level, from one on, at which some path of a leaf has a test; H_LEVELS if none."""
    found = tree.head[H_LEVELS]
    path = tree.node.view(np.int32)[node_i32(leaf, N_STAR)]
    while path != NONE:
        entry = np.int64(tree.path[path_at(path, P_ENTRY)])
        constraint = first_from_level(tree, entry, level)
        if constraint < tree.entry[entry_at(entry, E_TESTS)]:
            found = min(found, np.int64(tree.level_of[channel_of_bound(tree, constraint)]))
        path = tree.path[path_at(path, P_NEXT)]
    return found


@lean
def _best_cut(tree: TreeArrays, leaf: Int, channel: Int) -> float:
    """The cut that leaves the fewest paths on its fuller side; NaN if none separates them well.

    Candidates are the bounds of some paths. A cut is good if at most half of the ranges contain it:
    these go to both sides, or to the *-branch.
    """
    first, last = span_of(tree, leaf)
    best, fewest = np.nan, SAMPLE_PATHS
    candidates = 0
    path = tree.node.view(np.int32)[node_i32(leaf, N_STAR)]
    while path != NONE and candidates < SAMPLE_PATHS:
        constraint = test_on(tree, tree.path[path_at(path, P_ENTRY)], channel)
        for side in range(2):
            if constraint == NONE:
                continue
            cut = tree.bound[bound_at(constraint, B_LOW)]
            if side == 1:
                cut = np.nextafter(tree.bound[bound_at(constraint, B_HIGH)], np.inf)
            if first < cut <= last and np.isfinite(cut):
                left, right, count = _sides(tree, leaf, channel, cut)
                fuller = max(count - left, count - right)
                if left > 0 and right > 0 and 2 * (left + right) >= count and fuller < fewest:
                    best, fewest = cut, fuller
        candidates += 1
        path = tree.path[path_at(path, P_NEXT)]
    return best


@lean
def _sides(tree: TreeArrays, leaf: Int, channel: Int, cut: float) -> tuple[Int, Int, Int]:
    """How many of some paths of a leaf lie left of a cut, how many right of it, and of how many."""
    left, right, count = 0, 0, 0
    path = tree.node.view(np.int32)[node_i32(leaf, N_STAR)]
    while path != NONE and count < SAMPLE_PATHS:
        constraint = test_on(tree, tree.path[path_at(path, P_ENTRY)], channel)
        if constraint != NONE:
            left += tree.bound[bound_at(constraint, B_HIGH)] < cut
            right += tree.bound[bound_at(constraint, B_LOW)] >= cut
        count += 1
        path = tree.path[path_at(path, P_NEXT)]
    return left, right, count
