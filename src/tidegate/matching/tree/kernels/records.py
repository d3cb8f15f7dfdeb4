"""Allocating, linking and freeing the nodes and paths of a tree.

Records that were freed are linked as a list and used again first. Whoever allocates has made sure
with `has_room` that there is room; arrays grow between kernels only.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import Int
from tidegate.matching.rows.kernels.jit import inlined, lean
from tidegate.matching.tree.kernels.layout import (
    AS_LEFT,
    AS_RIGHT,
    AS_STAR,
    AS_VALUE,
    B_CHANNEL,
    CHANNEL_MASK,
    E_FIRST,
    E_PATHS,
    E_TESTS,
    H_FREE_NODE,
    H_FREE_PATH,
    H_LINK_WORDS,
    H_NODES,
    H_NODES_TOP,
    H_PATHS,
    H_PATHS_TOP,
    H_SLOTS,
    KIND_MASK,
    LEAF,
    N_CHANNEL,
    N_GUARD,
    N_KEY,
    N_KIND,
    N_LEFT,
    N_RIGHT,
    N_SEEN,
    N_STAR,
    NODE_WORDS,
    NONE,
    P_ENTRY,
    P_FROM,
    P_LEAF,
    P_NEXT,
    P_PREV,
    P_SIBLING,
    PATH_WORDS,
    PENDING,
    SLOT_WORDS,
    T_CHILD,
    T_CUTS,
    T_LEVEL,
    T_NEXT,
    T_PARENT,
    T_PATHS,
    T_PREV,
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
from tidegate.matching.tree.kernels.slots import drop_child, put_child, replace_child, seen_bit


@inlined
def has_room(tree: TreeArrays, nodes: Int, paths: Int) -> bool:
    """Whether so many nodes, each the child of a value, and paths can be added."""
    head = tree.head
    return bool(
        head[H_NODES] + nodes <= len(tree.node) // NODE_WORDS
        and head[H_PATHS] + paths <= len(tree.path) // PATH_WORDS
        # at most half of the slots are taken, so that probes are short
        and 2 * (head[H_SLOTS] + nodes) <= len(tree.slot) // SLOT_WORDS
    )


# -- nodes ----------------------------------------------------------------------------------------


@lean
def new_leaf(tree: TreeArrays, parent: Int, role: Int, key: float, level: Int, cuts: Int) -> Int:
    """Add an empty leaf below a node, or as the root; returns its number."""
    head, tie = tree.head, tree.tie
    ints = tree.node.view(np.int32)
    node = head[H_FREE_NODE]
    if node == NONE:
        node = head[H_NODES_TOP]
        head[H_NODES_TOP] += 1
    else:
        head[H_FREE_NODE] = tie[tie_at(node, T_NEXT)]
    head[H_NODES] += 1
    ints[node_i32(node, N_CHANNEL)] = 0
    make_leaf(tree, node)
    tree.node[node_f64(node, N_KEY)] = key
    tie[tie_at(node, T_PARENT)] = parent
    tie[tie_at(node, T_ROLE)] = role
    tie[tie_at(node, T_PREV)] = NONE
    tie[tie_at(node, T_NEXT)] = NONE
    tie[tie_at(node, T_PATHS)] = 0
    tie[tie_at(node, T_LEVEL)] = level
    tie[tie_at(node, T_CUTS)] = cuts
    words = head[H_LINK_WORDS]
    for word in range(words):
        tree.sure[words * node + word] = 0
        tree.may[words * node + word] = 0
    if parent != NONE:
        _attach(tree, node, parent, role, key)
    return node


@lean
def make_leaf(tree: TreeArrays, node: Int) -> None:
    """Turn a node without children into an empty leaf."""
    ints = tree.node.view(np.int32)
    ints[node_i32(node, N_KIND)] = LEAF
    ints[node_i32(node, N_STAR)] = NONE
    ints[node_i32(node, N_LEFT)] = NONE
    ints[node_i32(node, N_RIGHT)] = NONE
    ints[node_i32(node, N_GUARD)] = NONE
    tree.node.view(np.int64)[node_f64(node, N_SEEN)] = 0
    tree.tie[tie_at(node, T_CHILD)] = 0  # of a leaf: how many paths it had when it could not split


@lean
def _attach(tree: TreeArrays, node: Int, parent: Int, role: Int, key: float) -> None:
    tie, ints = tree.tie, tree.node.view(np.int32)
    first = tie[tie_at(parent, T_CHILD)]
    tie[tie_at(node, T_NEXT)] = first
    if first != NONE:
        tie[tie_at(first, T_PREV)] = node
    tie[tie_at(parent, T_CHILD)] = node
    if role == AS_VALUE:
        bits = np.float64(key).view(np.int64)
        put_child(tree.slot, parent, bits, node)
        tree.node.view(np.int64)[node_f64(parent, N_SEEN)] |= seen_bit(bits)
        tree.head[H_SLOTS] += 1
    elif role == AS_STAR:
        ints[node_i32(parent, N_STAR)] = node
    elif role == AS_LEFT:
        ints[node_i32(parent, N_LEFT)] = node
    elif role == AS_RIGHT:
        ints[node_i32(parent, N_RIGHT)] = node


@lean
def insert_above(tree: TreeArrays, node: Int, level: Int) -> Int:
    """Put a new VALUES node in the place of another, which comes behind its *-branch.

    Returns its number. The other node is not the root.
    """
    tie, ints = tree.tie, tree.node.view(np.int32)
    parent, role = np.int64(tie[tie_at(node, T_PARENT)]), tie[tie_at(node, T_ROLE)]
    key = tree.node[node_f64(node, N_KEY)]
    before, after = tie[tie_at(node, T_PREV)], tie[tie_at(node, T_NEXT)]
    new = new_leaf(tree, NONE, role, key, level, NONE)
    ints[node_i32(new, N_KIND)] = VALUES
    ints[node_i32(new, N_CHANNEL)] = tree.channel_at[level]
    ints[node_i32(new, N_STAR)] = node
    tie[tie_at(new, T_PARENT)] = parent
    tie[tie_at(new, T_CHILD)] = node
    tie[tie_at(new, T_PATHS)] = tie[tie_at(node, T_PATHS)]
    tie[tie_at(new, T_PREV)] = before
    tie[tie_at(new, T_NEXT)] = after
    if before != NONE:
        tie[tie_at(before, T_NEXT)] = new
    else:
        tie[tie_at(parent, T_CHILD)] = new
    if after != NONE:
        tie[tie_at(after, T_PREV)] = new
    if role == AS_VALUE:
        replace_child(tree.slot, parent, np.float64(key).view(np.int64), new)
    elif role == AS_STAR:
        ints[node_i32(parent, N_STAR)] = new
    elif role == AS_LEFT:
        ints[node_i32(parent, N_LEFT)] = new
    elif role == AS_RIGHT:
        ints[node_i32(parent, N_RIGHT)] = new
    tie[tie_at(node, T_PARENT)] = new
    tie[tie_at(node, T_ROLE)] = AS_STAR
    tie[tie_at(node, T_PREV)] = NONE
    tie[tie_at(node, T_NEXT)] = NONE
    # all that was below is behind the *-branch, so the annotation is the same
    words = tree.head[H_LINK_WORDS]
    for word in range(words):
        tree.sure[words * new + word] = tree.sure[words * node + word]
        tree.may[words * new + word] = tree.may[words * node + word]
    return new


@lean
def drop_node(tree: TreeArrays, node: Int) -> None:
    """Remove a node, which has neither children nor paths, from its parent, and free it."""
    tie, ints, head = tree.tie, tree.node.view(np.int32), tree.head
    parent, role = tie[tie_at(node, T_PARENT)], tie[tie_at(node, T_ROLE)]
    before, after = tie[tie_at(node, T_PREV)], tie[tie_at(node, T_NEXT)]
    if before != NONE:
        tie[tie_at(before, T_NEXT)] = after
    else:
        tie[tie_at(parent, T_CHILD)] = after
    if after != NONE:
        tie[tie_at(after, T_PREV)] = before
    if role == AS_VALUE:
        drop_child(tree.slot, parent, tree.node.view(np.int64)[node_f64(node, N_KEY)])
        head[H_SLOTS] -= 1
    elif role == AS_STAR:
        ints[node_i32(parent, N_STAR)] = NONE
        ints[node_i32(parent, N_GUARD)] = NONE
    elif role == AS_LEFT:
        ints[node_i32(parent, N_LEFT)] = NONE
    elif role == AS_RIGHT:
        ints[node_i32(parent, N_RIGHT)] = NONE
    tie[tie_at(node, T_NEXT)] = head[H_FREE_NODE]
    head[H_FREE_NODE] = node
    head[H_NODES] -= 1


# -- paths ----------------------------------------------------------------------------------------


@lean
def new_path(tree: TreeArrays, entry: Int, start: Int, first: Int, pending: Int) -> Int:
    """Add a path of an entry that is to be placed from a node on; returns its number.

    ``first`` is its first constraint that is not proved, ``pending`` the path to be placed next.
    """
    head, paths = tree.head, tree.path
    path = head[H_FREE_PATH]
    if path == NONE:
        path = head[H_PATHS_TOP]
        head[H_PATHS_TOP] += 1
    else:
        head[H_FREE_PATH] = paths[path_at(path, P_NEXT)]
    head[H_PATHS] += 1
    paths[path_at(path, P_ENTRY)] = entry
    paths[path_at(path, P_LEAF)] = start
    paths[path_at(path, P_NEXT)] = pending
    paths[path_at(path, P_PREV)] = PENDING
    paths[path_at(path, P_FROM)] = first
    paths[path_at(path, P_SIBLING)] = tree.entry[entry_at(entry, E_PATHS)]
    tree.entry[entry_at(entry, E_PATHS)] = path
    return path


@lean
def free_path(tree: TreeArrays, path: Int) -> None:
    """Free a path, which no leaf has; the caller takes it from the list of its entry."""
    tree.path[path_at(path, P_NEXT)] = tree.head[H_FREE_PATH]
    tree.head[H_FREE_PATH] = path
    tree.head[H_PATHS] -= 1


@lean
def forget_sibling(tree: TreeArrays, path: Int) -> None:
    """Take a path from the list of its entry's paths."""
    paths, entry = tree.path, tree.path[path_at(path, P_ENTRY)]
    after = paths[path_at(path, P_SIBLING)]
    each = tree.entry[entry_at(entry, E_PATHS)]
    if each == path:
        tree.entry[entry_at(entry, E_PATHS)] = after
        return
    while paths[path_at(each, P_SIBLING)] != path:
        each = paths[path_at(each, P_SIBLING)]
    paths[path_at(each, P_SIBLING)] = after


@lean
def put_path(tree: TreeArrays, path: Int, leaf: Int) -> None:
    """Add a path to the list of a leaf."""
    ints, paths = tree.node.view(np.int32), tree.path
    first = ints[node_i32(leaf, N_STAR)]
    paths[path_at(path, P_LEAF)] = leaf
    paths[path_at(path, P_PREV)] = NONE
    paths[path_at(path, P_NEXT)] = first
    if first != NONE:
        paths[path_at(first, P_PREV)] = path
    ints[node_i32(leaf, N_STAR)] = path


@lean
def take_path(tree: TreeArrays, path: Int) -> None:
    """Take a path from the list of its leaf."""
    ints, paths = tree.node.view(np.int32), tree.path
    before, after = paths[path_at(path, P_PREV)], paths[path_at(path, P_NEXT)]
    if before != NONE:
        paths[path_at(before, P_NEXT)] = after
    else:
        ints[node_i32(paths[path_at(path, P_LEAF)], N_STAR)] = after
    if after != NONE:
        paths[path_at(after, P_PREV)] = before


@lean
def has_path_in(tree: TreeArrays, entry: Int, leaf: Int) -> bool:
    """Whether a leaf has a path of an entry."""
    path = tree.entry[entry_at(entry, E_PATHS)]
    while path != NONE:
        if tree.path[path_at(path, P_LEAF)] == leaf:
            return True
        path = tree.path[path_at(path, P_SIBLING)]
    return False


# -- constraints ----------------------------------------------------------------------------------


@inlined
def channel_of_bound(tree: TreeArrays, constraint: Int) -> Int:
    """The channel of a constraint."""
    return tree.bound.view(np.int64)[bound_at(constraint, B_CHANNEL)] & CHANNEL_MASK


@lean
def test_on(tree: TreeArrays, entry: Int, channel: Int) -> Int:
    """The constraint of an entry on a channel that a branch can test; NONE if it does not care."""
    for constraint in range(
        tree.entry[entry_at(entry, E_FIRST)], tree.entry[entry_at(entry, E_TESTS)]
    ):
        if channel_of_bound(tree, constraint) == channel:
            return np.int64(constraint)
    return np.int64(NONE)


@lean
def first_from_level(tree: TreeArrays, entry: Int, level: Int) -> Int:
    """The first constraint of an entry that is tested at a level or further down."""
    end = tree.entry[entry_at(entry, E_TESTS)]
    for constraint in range(tree.entry[entry_at(entry, E_FIRST)], end):
        if tree.level_of[channel_of_bound(tree, constraint)] >= level:
            return np.int64(constraint)
    return np.int64(end)


# -- walks ----------------------------------------------------------------------------------------


@lean
def first_leaf(tree: TreeArrays, node: Int) -> Int:
    """The first leaf below a node, or the node itself if it is one."""
    ints = tree.node.view(np.int32)
    while ints[node_i32(node, N_KIND)] & KIND_MASK != LEAF:
        node = np.int64(tree.tie[tie_at(node, T_CHILD)])
    return node


@lean
def next_leaf(tree: TreeArrays, leaf: Int, top: Int) -> Int:
    """The leaf after another below a node; NONE after the last."""
    node = leaf
    while node != top:
        after = np.int64(tree.tie[tie_at(node, T_NEXT)])
        if after != NONE:
            return first_leaf(tree, after)
        node = np.int64(tree.tie[tie_at(node, T_PARENT)])
    return np.int64(NONE)
