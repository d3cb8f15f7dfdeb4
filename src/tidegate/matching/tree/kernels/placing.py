"""Placing entries in the tree: each goes down to its leaves, and those that are full are split."""

from __future__ import annotations

from tidegate.matching.arrays import I64, Int
from tidegate.matching.rows.kernels.flags import DEAD
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.tree.kernels.descending import NO_ROOM, place_path
from tidegate.matching.tree.kernels.layout import (
    E_FIRST,
    E_FLAGS,
    H_LINK_WORDS,
    NONE,
    P_NEXT,
    ROOT,
    TreeArrays,
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
def place_entries(tree: TreeArrays, entries: I64, reserve: Int) -> Int:
    """Place entries one after the other; returns how many were placed before there was no room.

    ``reserve`` is how many nodes and paths must be free before an entry is placed, so that leaves
    can be split.
    """
    for index in range(len(entries)):
        if not has_room(tree, reserve, reserve) or not _place_entry(tree, entries[index]):
            return index
    return len(entries)


@lean
def _place_entry(tree: TreeArrays, entry: Int) -> bool:
    """Place an entry; returns False, with nothing changed, if there is no room."""
    if tree.entry[entry_at(entry, E_FLAGS)] & DEAD:
        return True  # it matches nothing
    if not has_room(tree, 1, 1):
        return False
    first = tree.entry[entry_at(entry, E_FIRST)]
    pending = new_path(tree, entry, ROOT, first, NONE)
    while pending != NONE:
        path = pending
        pending = place_path(tree, path, tree.path[path_at(path, P_NEXT)])
        if pending == NO_ROOM:
            remove_entry(tree, entry)
            return False
    split_leaves_of(tree, entry)
    if tree.head[H_LINK_WORDS]:
        annotate_entry(tree, entry)
    return True
