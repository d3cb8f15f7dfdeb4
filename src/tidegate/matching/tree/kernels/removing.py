"""Removing entries from the tree, and joining what has become small.

A path is taken from its leaf; a leaf without paths goes, and so do the nodes above it that have
nothing left. The highest node above that has at most half as many paths as a leaf may have becomes
a leaf again with all of them: branches join, and so do the pieces of ranges that were cut.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I64, Int
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.tree.kernels.guards import guard_leaf
from tidegate.matching.tree.kernels.layout import (
    E_PATHS,
    H_LEAF_PATHS_MAX,
    H_LINK_WORDS,
    KIND_MASK,
    LEAF,
    N_KIND,
    N_STAR,
    NONE,
    P_ENTRY,
    P_FROM,
    P_LEAF,
    P_NEXT,
    P_PREV,
    P_SIBLING,
    PENDING,
    ROOT,
    T_CHILD,
    T_CUTS,
    T_LEVEL,
    T_PARENT,
    T_PATHS,
    TreeArrays,
    entry_at,
    node_i32,
    path_at,
    tie_at,
)
from tidegate.matching.tree.kernels.records import (
    drop_node,
    first_from_level,
    first_leaf,
    forget_sibling,
    free_path,
    has_path_in,
    make_leaf,
    put_path,
    take_path,
)
from tidegate.matching.tree.kernels.trits import (
    annotate_above,
    annotate_leaf,
    forget_child,
    forget_links,
)


@lean
def remove_entry(tree: TreeArrays, entry: Int) -> None:
    """Remove all paths of an entry, also those that are still to be placed."""
    while tree.entry[entry_at(entry, E_PATHS)] != NONE:
        path = np.int64(tree.entry[entry_at(entry, E_PATHS)])
        tree.entry[entry_at(entry, E_PATHS)] = tree.path[path_at(path, P_SIBLING)]
        if tree.path[path_at(path, P_PREV)] != PENDING:
            _remove_path(tree, path)
        free_path(tree, path)


@lean
def _remove_path(tree: TreeArrays, path: Int) -> None:
    """Take a path from its leaf; drop nodes that have nothing left, and join what is small."""
    tie, ints = tree.tie, tree.node.view(np.int32)
    leaf = np.int64(tree.path[path_at(path, P_LEAF)])
    words, entry = tree.head[H_LINK_WORDS], np.int64(tree.path[path_at(path, P_ENTRY)])
    links = tree.links[words * entry : words * entry + words]
    take_path(tree, path)
    if tie[tie_at(leaf, T_CHILD)] > 0:
        tie[tie_at(leaf, T_CHILD)] -= 1  # perhaps those are going that could not be separated
    node, small = leaf, np.int64(NONE)
    while node != NONE:
        tie[tie_at(node, T_PATHS)] -= 1
        if 2 * tie[tie_at(node, T_PATHS)] <= tree.head[H_LEAF_PATHS_MAX]:
            small = node  # the highest of them remains
        node = np.int64(tie[tie_at(node, T_PARENT)])
    node = leaf
    while node != ROOT and tie[tie_at(node, T_PATHS)] == 0:
        parent = np.int64(tie[tie_at(node, T_PARENT)])
        drop_node(tree, node)
        node = parent
    if ints[node_i32(node, N_KIND)] & KIND_MASK != LEAF and tie[tie_at(node, T_PATHS)] == 0:
        make_leaf(tree, node)  # the root has lost its last child
        tie[tie_at(node, T_LEVEL)] = 0
        tie[tie_at(node, T_CUTS)] = NONE
    if small != NONE and tie[tie_at(small, T_PATHS)] > 0:
        _join(tree, small)
        node = small
    if ints[node_i32(node, N_KIND)] & KIND_MASK != LEAF:
        forget_child(tree, node, links)
        return
    guard_leaf(tree, node)
    if node == leaf:
        forget_links(tree, node, links)
    else:
        annotate_leaf(tree, node)
        annotate_above(tree, node)


@lean
def _join(tree: TreeArrays, node: Int) -> None:
    """Turn a node into a leaf with all paths below it."""
    tie, ints, paths = tree.tie, tree.node.view(np.int32), tree.path
    if ints[node_i32(node, N_KIND)] & KIND_MASK == LEAF:
        return
    taken = np.int64(NONE)
    while tie[tie_at(node, T_CHILD)] != NONE:
        leaf = first_leaf(tree, node)
        path = np.int64(ints[node_i32(leaf, N_STAR)])
        while path != NONE:
            after = np.int64(paths[path_at(path, P_NEXT)])
            paths[path_at(path, P_NEXT)] = taken
            taken = path
            path = after
        while leaf != node and (
            ints[node_i32(leaf, N_KIND)] & KIND_MASK == LEAF or tie[tie_at(leaf, T_CHILD)] == NONE
        ):
            parent = np.int64(tie[tie_at(leaf, T_PARENT)])
            drop_node(tree, leaf)
            leaf = parent
    make_leaf(tree, node)
    if tie[tie_at(node, T_CUTS)] == NONE:
        # levels that were left out above the node can be tested again
        parent = tie[tie_at(node, T_PARENT)]
        tie[tie_at(node, T_LEVEL)] = 0 if parent == NONE else tie[tie_at(parent, T_LEVEL)] + 1
    level, dropped = tie[tie_at(node, T_LEVEL)], 0
    while taken != NONE:
        path, taken = taken, np.int64(paths[path_at(taken, P_NEXT)])
        entry = np.int64(paths[path_at(path, P_ENTRY)])
        if has_path_in(tree, entry, node):
            forget_sibling(tree, path)
            free_path(tree, path)
            dropped += 1
        else:
            # what the tests below had proved is to be tested here again
            paths[path_at(path, P_FROM)] = min(
                np.int64(paths[path_at(path, P_FROM)]), first_from_level(tree, entry, level)
            )
            put_path(tree, path, node)
    above = node
    while dropped and above != NONE:
        tie[tie_at(above, T_PATHS)] -= dropped
        above = np.int64(tie[tie_at(above, T_PARENT)])


@lean
def remove_entries(tree: TreeArrays, entries: I64) -> None:
    """Remove all paths of entries, one entry after the other."""
    for index in range(len(entries)):
        remove_entry(tree, entries[index])
