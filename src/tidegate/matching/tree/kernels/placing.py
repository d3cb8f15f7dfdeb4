"""Placing entries in the tree: each goes down to its leaves, and those that are full are split."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I64, Int
from tidegate.matching.rows.kernels.flags import DEAD
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.tree.kernels.descending import NO_ROOM, place_path
from tidegate.matching.tree.kernels.layout import (
    B_LOW,
    E_FIRST,
    E_FLAGS,
    E_TESTS,
    H_LEAF_PATHS_MAX,
    H_LINK_WORDS,
    NONE,
    P_NEXT,
    ROOT,
    TreeArrays,
    bound_at,
    entry_at,
    path_at,
)
from tidegate.matching.tree.kernels.records import (
    has_room,
    new_path,
)
from tidegate.matching.tree.kernels.removing import remove_entry
from tidegate.matching.tree.kernels.splitting import split_leaves_of
from tidegate.matching.tree.kernels.trits import annotate_entry


@lean
def place_entries(tree: TreeArrays, entries: I64) -> Int:
    """Place entries one after the other; returns how many were placed before there was no room."""
    for index in range(len(entries)):
        if not place_entry(tree, entries[index]):
            return index
    return len(entries)


@lean
def place_entry(tree: TreeArrays, entry: Int) -> bool:
    """Place an entry; returns False, with the entry out of the tree, if there is no room."""
    if tree.entry[entry_at(entry, E_FLAGS)] & DEAD or _is_empty(tree, entry):
        return True  # it matches nothing
    # so many that most leaves can be split as well
    reserve = 4 * (tree.head[H_LEAF_PATHS_MAX] + 8)
    if not has_room(tree, reserve, reserve):
        return False
    first = tree.entry[entry_at(entry, E_FIRST)]
    pending = new_path(tree, entry, ROOT, first, NONE)
    while pending != NONE:
        path = pending
        pending = place_path(tree, path, tree.path[path_at(path, P_NEXT)])
        if pending == NO_ROOM:
            remove_entry(tree, entry)
            return False
    if not split_leaves_of(tree, entry):
        remove_entry(tree, entry)
        return False
    if tree.head[H_LINK_WORDS]:
        annotate_entry(tree, entry)
    return True


@lean
def _is_empty(tree: TreeArrays, entry: Int) -> bool:
    """Whether an update has left nothing that satisfies one of the tests of an entry."""
    for test in range(tree.entry[entry_at(entry, E_FIRST)], tree.entry[entry_at(entry, E_TESTS)]):
        if np.isnan(tree.bound[bound_at(test, B_LOW)]):
            return True
    return False
