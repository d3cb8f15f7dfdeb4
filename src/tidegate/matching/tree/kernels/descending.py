"""The way of a path from a node down to its leaf.

An entry goes down from the root: at a VALUES node into the branch of its value, the branch of
ranges, or the *-branch if it does not care about the attribute; at a CUT node to the side in which
its range lies. A range that contains the cut is cut: one piece goes to either side, each as a path
of its own, as long as the entry has fewer than PATHS_MAX paths. Otherwise, and if the range
contains the whole span of the node, it takes the *-branch. Nothing is lost where a range is not
cut: the path notes which constraints are proved (P_FROM), and the leaf tests the others.

Factoring: at an EXCLUSIVE node a search takes one branch only. So an entry that does not care about
the attribute, or has a range there, is copied into all branches that it agrees with, those that are
made later included. Each search then meets one copy of what it would have met in the *-branch.

In the paper such copies may be one subtree with several parents, so that the tree "will no longer
be a tree but instead a directed acyclic graph" (2.1). Here entries are copied and subtrees never
shared: each node has one parent, so a change touches the nodes above its leaves and no others. The
price is memory.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import Int
from tidegate.matching.rows.kernels.flags import MOVING
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.tree.kernels.guards import guard_leaf, widen_guard
from tidegate.matching.tree.kernels.layout import (
    AS_LEFT,
    AS_RIGHT,
    AS_STAR,
    AS_VALUE,
    B_HIGH,
    B_LOW,
    CUT,
    E_FLAGS,
    E_PATHS,
    E_TESTS,
    EXCLUSIVE,
    H_FACTORED,
    KIND_MASK,
    LEAF,
    N_CHANNEL,
    N_CUT,
    N_GUARD,
    N_KEY,
    N_KIND,
    N_LEFT,
    N_RIGHT,
    N_STAR,
    NONE,
    P_ENTRY,
    P_FROM,
    P_LEAF,
    P_NEXT,
    P_SIBLING,
    ROOT,
    T_CHILD,
    T_CUTS,
    T_LEVEL,
    T_NEXT,
    T_PARENT,
    T_PATHS,
    T_ROLE,
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
    has_path_in,
    has_room,
    insert_above,
    new_leaf,
    new_path,
    next_leaf,
    put_path,
    test_on,
)
from tidegate.matching.tree.kernels.slots import find_child

PATHS_MAX = 4
"""Paths that an entry may have because its ranges are cut; copies of factoring are not limited."""

NO_ROOM = -2
"""In place of a path: there is no room for what has to be added."""


@lean
def place_path(tree: TreeArrays, path: Int, pending: Int) -> Int:
    """Place a path from the node on that P_LEAF names; returns the paths that are still pending.

    NO_ROOM if there is no room for what has to be added; the path may be unplaced then.
    """
    ints = tree.node.view(np.int32)
    entry = np.int64(tree.path[path_at(path, P_ENTRY)])
    node = np.int64(tree.path[path_at(path, P_LEAF)])
    while True:
        kind = ints[node_i32(node, N_KIND)]
        if kind & KIND_MASK == LEAF:
            break
        if not has_room(tree, 2, 2):
            return np.int64(NO_ROOM)
        skipped = _skipped_level(tree, node, entry)
        if skipped != NONE:
            node = insert_above(tree, node, skipped)
            kind = ints[node_i32(node, N_KIND)]
        constraint = test_on(tree, entry, ints[node_i32(node, N_CHANNEL)])
        if kind == VALUES:
            node = _below_values(tree, node, path, constraint)
        elif kind == CUT:
            node, pending = _below_cut(tree, node, path, constraint, pending)
        elif kind == VALUES | EXCLUSIVE:
            node, pending = _below_factored(tree, node, path, constraint, pending)
        else:
            node, pending = _below_factored_cut(tree, node, path, constraint, pending)
        if pending == NO_ROOM:
            return pending
    _settle(tree, path, node)
    return pending


@lean
def _skipped_level(tree: TreeArrays, node: Int, entry: Int) -> Int:
    """A level above a node that was left out, and that an entry tests; NONE if there is none.

    The level was left out because nobody below cared about it (trivial-test elimination).
    """
    if node == ROOT or tree.tie[tie_at(node, T_CUTS)] != NONE:
        return np.int64(NONE)
    parent = tree.tie[tie_at(node, T_PARENT)]
    first = max(np.int64(tree.tie[tie_at(parent, T_LEVEL)]) + 1, tree.head[H_FACTORED])
    constraint = first_from_level(tree, entry, first)
    if constraint == tree.entry[entry_at(entry, E_TESTS)]:
        return np.int64(NONE)
    level = np.int64(tree.level_of[channel_of_bound(tree, constraint)])
    return level if level < tree.tie[tie_at(node, T_LEVEL)] else np.int64(NONE)


@lean
def _settle(tree: TreeArrays, path: Int, leaf: Int) -> None:
    """Put a path into its leaf, and count it there and above."""
    put_path(tree, path, leaf)
    # counted last, so that a path for which there was no room is counted nowhere
    node = leaf
    while node != NONE:
        tree.tie[tie_at(node, T_PATHS)] += 1
        node = np.int64(tree.tie[tie_at(node, T_PARENT)])
    guard_leaf(tree, leaf)


@lean
def _prove(tree: TreeArrays, path: Int, constraint: Int) -> None:
    """Note that the way of a path proves one of its constraints."""
    entry = tree.path[path_at(path, P_ENTRY)]
    first = tree.path[path_at(path, P_FROM)]
    tree.path[path_at(path, P_FROM)] = _first_after(tree, entry, first, constraint)


@lean
def _first_after(tree: TreeArrays, entry: Int, first: Int, constraint: Int) -> Int:
    """The first constraint that is not proved, once one more is.

    An envelope proves nothing: a value inside of it may still be outside of the moving bounds. So
    all constraints of an entry whose bounds move are left to its leaf.
    """
    if first == constraint and not tree.entry[entry_at(entry, E_FLAGS)] & MOVING:
        return np.int64(first + 1)
    return np.int64(first)


@lean
def _star(tree: TreeArrays, node: Int, entry: Int) -> Int:
    """The child behind the *-branch, which is added if there is none; its guard is widened."""
    ints, tie = tree.node.view(np.int32), tree.tie
    star = np.int64(ints[node_i32(node, N_STAR)])
    if star == NONE:
        ints[node_i32(node, N_GUARD)] = NONE
        star = new_leaf(tree, node, AS_STAR, 0.0, tie[tie_at(node, T_LEVEL)] + 1, NONE)
    elif ints[node_i32(star, N_KIND)] & KIND_MASK != LEAF:
        widen_guard(tree, node, entry)  # if it is a leaf, its guard is chosen anew
    return star


@lean
def _value_branch(tree: TreeArrays, node: Int, value: float) -> Int:
    """The child behind the branch of a value, which is added if there is none."""
    child = find_child(tree.slot, node, np.float64(value).view(np.int64))
    if child == NONE:
        level = tree.tie[tie_at(node, T_LEVEL)] + 1
        child = new_leaf(tree, node, AS_VALUE, value, level, NONE)
    return child


@lean
def _below_values(tree: TreeArrays, node: Int, path: Int, constraint: Int) -> Int:
    entry = np.int64(tree.path[path_at(path, P_ENTRY)])
    if constraint == NONE:
        return _star(tree, node, entry)
    value = tree.bound[bound_at(constraint, B_LOW)] + 0.0  # of the two zeros, as events have it
    if value == tree.bound[bound_at(constraint, B_HIGH)]:
        _prove(tree, path, constraint)
        return _value_branch(tree, node, value)
    ranges = np.int64(tree.node.view(np.int32)[node_i32(node, N_LEFT)])
    if ranges == NONE:
        ranges = new_leaf(tree, node, AS_LEFT, 0.0, tree.tie[tie_at(node, T_LEVEL)], 0)
    return ranges


@lean
def span_of(tree: TreeArrays, node: Int) -> tuple[float, float]:
    """The values, from the first to the last, with which a search comes to a node among CUTs."""
    ints, tie = tree.node.view(np.int32), tree.tie
    low, high = -np.inf, np.inf
    while node != ROOT:
        role, node = tie[tie_at(node, T_ROLE)], np.int64(tie[tie_at(node, T_PARENT)])
        if ints[node_i32(node, N_KIND)] & KIND_MASK != CUT:
            break
        cut = tree.node[node_f64(node, N_CUT)]
        if role == AS_LEFT:
            high = min(high, np.nextafter(cut, -np.inf))
        else:
            low = max(low, cut)
    return low, high


@lean
def _side(tree: TreeArrays, node: Int, role: Int) -> Int:
    """The child on one side of a CUT, which is added if there is none."""
    word = N_LEFT if role == AS_LEFT else N_RIGHT
    child = np.int64(tree.node.view(np.int32)[node_i32(node, word)])
    if child == NONE:
        level, cuts = tree.tie[tie_at(node, T_LEVEL)], tree.tie[tie_at(node, T_CUTS)]
        child = new_leaf(tree, node, role, 0.0, level, cuts + 1)
    return child


@lean
def _path_count(tree: TreeArrays, entry: Int) -> Int:
    count, path = 0, tree.entry[entry_at(entry, E_PATHS)]
    while path != NONE:
        count += 1
        path = tree.path[path_at(path, P_SIBLING)]
    return count


@lean
def _below_cut(
    tree: TreeArrays, node: Int, path: Int, constraint: Int, pending: Int
) -> tuple[Int, Int]:
    entry = np.int64(tree.path[path_at(path, P_ENTRY)])
    cut = tree.node[node_f64(node, N_CUT)]
    low, high = tree.bound[bound_at(constraint, B_LOW)], tree.bound[bound_at(constraint, B_HIGH)]
    if high < cut:
        return _side(tree, node, AS_LEFT), pending
    if low >= cut:
        return _side(tree, node, AS_RIGHT), pending
    first, last = span_of(tree, node)
    if low <= first and high >= last:
        _prove(tree, path, constraint)
        return _star(tree, node, entry), pending
    if _path_count(tree, entry) >= PATHS_MAX:
        return _star(tree, node, entry), pending
    right = _side(tree, node, AS_RIGHT)
    pending = new_path(tree, entry, right, tree.path[path_at(path, P_FROM)], pending)
    if not has_room(tree, 1, 1):
        return node, np.int64(NO_ROOM)
    return _side(tree, node, AS_LEFT), pending


# -- factored attributes --------------------------------------------------------------------------


@lean
def _below_factored(
    tree: TreeArrays, node: Int, path: Int, constraint: Int, pending: Int
) -> tuple[Int, Int]:
    tie, paths = tree.tie, tree.path
    entry = np.int64(paths[path_at(path, P_ENTRY)])
    low, high = -np.inf, np.inf
    if constraint != NONE:
        low = tree.bound[bound_at(constraint, B_LOW)] + 0.0  # as in ``_below_values``
        high = tree.bound[bound_at(constraint, B_HIGH)]
    if low == high:
        is_new = find_child(tree.slot, node, np.float64(low).view(np.int64)) == NONE
        if is_new and not _new_factored_value(tree, node, low):
            return node, np.int64(NO_ROOM)
        _prove(tree, path, constraint)
        return _value_branch(tree, node, low), pending
    first = paths[path_at(path, P_FROM)]
    star = _star(tree, node, entry)
    child = np.int64(tie[tie_at(node, T_CHILD)])
    while child != NONE:
        key = tree.node[node_f64(child, N_KEY)]
        if child != star and low <= key and key <= high:
            if not has_room(tree, 1, 2):
                return node, np.int64(NO_ROOM)
            # in this branch the range is proved
            proved = _first_after(tree, entry, first, constraint)
            pending = new_path(tree, entry, child, proved, pending)
        child = np.int64(tie[tie_at(child, T_NEXT)])
    return star, pending


@lean
def _new_factored_value(tree: TreeArrays, node: Int, value: float) -> bool:
    """Add the branch of a value, with a copy of all that agrees with it in the *-branch.

    Returns False, with nothing changed, if there is no room.
    """
    ints, tie, paths = tree.node.view(np.int32), tree.tie, tree.path
    star = np.int64(ints[node_i32(node, N_STAR)])
    if not has_room(tree, 2, 2 + (0 if star == NONE else tie[tie_at(star, T_PATHS)])):
        return False
    child = _value_branch(tree, node, value)
    if star == NONE:
        return True
    channel, level = ints[node_i32(node, N_CHANNEL)], tie[tie_at(node, T_LEVEL)]
    leaf = first_leaf(tree, star)
    while leaf != NONE:
        path = np.int64(ints[node_i32(leaf, N_STAR)])
        while path != NONE:
            other = np.int64(paths[path_at(path, P_ENTRY)])
            constraint = test_on(tree, other, channel)
            agrees = constraint == NONE or (
                tree.bound[bound_at(constraint, B_LOW)] <= value
                and value <= tree.bound[bound_at(constraint, B_HIGH)]
            )
            # an entry whose ranges were cut has several paths there, but needs one copy
            if agrees and not has_path_in(tree, other, child):
                first = min(
                    np.int64(paths[path_at(path, P_FROM)]), first_from_level(tree, other, level)
                )
                first = _first_after(tree, other, first, constraint)
                _settle(tree, new_path(tree, other, child, first, NONE), child)
            path = np.int64(paths[path_at(path, P_NEXT)])
        leaf = next_leaf(tree, leaf, star)
    return True


@lean
def _below_factored_cut(
    tree: TreeArrays, node: Int, path: Int, constraint: Int, pending: Int
) -> tuple[Int, Int]:
    """To all sides that the entry agrees with, and to the *-branch if it does not care."""
    entry = np.int64(tree.path[path_at(path, P_ENTRY)])
    first = tree.path[path_at(path, P_FROM)]
    cut = tree.node[node_f64(node, N_CUT)]
    low, high = -np.inf, np.inf
    if constraint != NONE:
        low = tree.bound[bound_at(constraint, B_LOW)]
        high = tree.bound[bound_at(constraint, B_HIGH)]
    if high < cut:
        return _side(tree, node, AS_LEFT), pending
    if low >= cut:
        return _side(tree, node, AS_RIGHT), pending
    if not has_room(tree, 3, 3):
        return node, np.int64(NO_ROOM)
    pending = new_path(tree, entry, _side(tree, node, AS_RIGHT), first, pending)
    if constraint == NONE:
        pending = new_path(tree, entry, _star(tree, node, entry), first, pending)
    return _side(tree, node, AS_LEFT), pending
