"""The hash table of value branches: from a node and a value to the child.

Open addressing with linear probing. A removed slot is closed by moving later ones back, so there
are no tombstones, and a probe ends at the first empty slot.

Each look-up reads memory that is rarely in the cache, and most nodes have branches for few of all
values. So a node has 64 bits, one of which each value is given by a hash: a value whose bit is not
set has no branch, and need not be looked up. Bits stay set when a branch goes; then the look-up is
made in vain.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I64, Int
from tidegate.matching.rows.kernels.jit import inlined, lean, lean_inlined
from tidegate.matching.tree.kernels.layout import EMPTY, NONE, S_CHILD, S_VALUE, SLOT_WORDS

_CHILD_MASK = 0xFFFFFFFF


@inlined
def _home(node: Int, bits: Int, mask: Int) -> Int:
    """The slot at which the search for a node and a value begins."""
    mixed = (np.uint64(bits) ^ (np.uint64(node) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xD6E8FEB86659FD93
    )
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@inlined
def seen_bit(bits: Int) -> Int:
    """The bit of a value, given as bits, among those of a node."""
    mixed = np.uint64(bits) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(np.uint64(1) << (mixed >> np.uint64(58)))


@lean_inlined
def find_child(slot: I64, node: Int, bits: Int) -> Int:
    """The child of a node for a value, given as bits; NONE if there is none."""
    mask = (len(slot) // SLOT_WORDS) - 1
    at = _home(node, bits, mask)
    while True:
        both = slot[SLOT_WORDS * at + S_CHILD]
        if both == EMPTY:
            return np.int64(NONE)
        if both >> 32 == node and slot[SLOT_WORDS * at + S_VALUE] == bits:
            return both & _CHILD_MASK
        at = (at + 1) & mask


@lean_inlined
def replace_child(slot: I64, node: Int, bits: Int, child: Int) -> None:
    """Put another child in the place of the one that a node has for a value."""
    mask = (len(slot) // SLOT_WORDS) - 1
    at = _home(node, bits, mask)
    while slot[SLOT_WORDS * at + S_CHILD] >> 32 != node or slot[SLOT_WORDS * at + S_VALUE] != bits:
        at = (at + 1) & mask
    slot[SLOT_WORDS * at + S_CHILD] = (np.int64(node) << 32) | np.int64(child)


@lean_inlined
def put_child(slot: I64, node: Int, bits: Int, child: Int) -> None:
    """Add a child of a node for a value that has none; there must be an empty slot."""
    mask = (len(slot) // SLOT_WORDS) - 1
    at = _home(node, bits, mask)
    while slot[SLOT_WORDS * at + S_CHILD] != EMPTY:
        at = (at + 1) & mask
    slot[SLOT_WORDS * at + S_VALUE] = bits
    slot[SLOT_WORDS * at + S_CHILD] = (np.int64(node) << 32) | np.int64(child)


@lean_inlined
def drop_child(slot: I64, node: Int, bits: Int) -> None:
    """Remove the child of a node for a value; it must be there."""
    mask = (len(slot) // SLOT_WORDS) - 1
    at = _home(node, bits, mask)
    while slot[SLOT_WORDS * at + S_CHILD] >> 32 != node or slot[SLOT_WORDS * at + S_VALUE] != bits:
        at = (at + 1) & mask
    # Close the gap: a later slot moves into it unless its home lies between the two.
    after = (at + 1) & mask
    while slot[SLOT_WORDS * after + S_CHILD] != EMPTY:
        home = _home(
            slot[SLOT_WORDS * after + S_CHILD] >> 32, slot[SLOT_WORDS * after + S_VALUE], mask
        )
        if ((after - home) & mask) >= ((after - at) & mask):
            slot[SLOT_WORDS * at + S_VALUE] = slot[SLOT_WORDS * after + S_VALUE]
            slot[SLOT_WORDS * at + S_CHILD] = slot[SLOT_WORDS * after + S_CHILD]
            at = after
        after = (after + 1) & mask
    slot[SLOT_WORDS * at + S_CHILD] = EMPTY


@lean
def move_slots(source: I64, target: I64) -> None:
    """Enter all slots into another, empty table."""
    for at in range(len(source) // SLOT_WORDS):
        both = source[SLOT_WORDS * at + S_CHILD]
        if both != EMPTY:
            put_child(target, both >> 32, source[SLOT_WORDS * at + S_VALUE], both & _CHILD_MASK)
