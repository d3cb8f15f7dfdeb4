"""The arrays of a search tree, and their memory layout.

The tables below are the only declaration of these layouts; who writes and who reads both use their
constants. Nodes, paths, entries and constraints are records in flat arrays and refer to each other
by number, NONE for nothing.

A **node** has a record of NODE_WORDS words of 64 bits, one cache line, with what a search reads:

    word             type    meaning
    N_KIND           int32   LEAF, VALUES or CUT, | EXCLUSIVE
    N_CHANNEL        int32   the channel that is tested; of a leaf: unused
    N_STAR           int32   the *-branch; of a leaf: its first path
    N_LEFT           int32   CUT: the branch of `x < cut`; VALUES: the branch of ranges
    N_RIGHT          int32   CUT: the branch of `x >= cut`
    N_GUARD          int32   the channel of the guard, see below; NONE if there is none
    N_CUT            float   the cut
    N_GUARD_LOW      float   bounds of the guard
    N_GUARD_HIGH     float
    N_KEY            float   the value by which the parent finds this node, if by a value
    N_SEEN           int64   VALUES: a bit for each value that has had a branch, see slots.py

A VALUES node has a branch for each value of an equality, found in a hash table by node and value;
a branch of ranges, a tree of CUT nodes on the same channel; and a *-branch for entries that do not
care. An EXCLUSIVE one (factoring) takes the branch of the value or else the *-branch, never both.

The *guard* of a leaf is a range that every path of the leaf requires; that of another node is one
that every path below its *-branch requires (delayed branching).

What only changes need is in a second record, of TIE_WORDS numbers of 32 bits:

    T_PARENT         the parent
    T_ROLE           which branch of the parent this is: AS_VALUE, AS_STAR, AS_LEFT, AS_RIGHT
    T_CHILD          the first of the children; they are a list, linked both ways. Of a leaf: how
                     many paths it had when it was last found that it cannot be split, less those
                     that have gone since
    T_NEXT, T_PREV   the neighbours in the parent's list of children; T_NEXT also links free nodes
    T_PATHS          number of paths below
    T_LEVEL          the level of the channel that is tested; of a leaf: the first not yet tested
    T_CUTS           number of CUT nodes above on the channel of the level; NONE outside of ranges

A **path** is one way of an entry from the root to a leaf, PATH_WORDS numbers of 32 bits. An entry
has several if a range of it was cut, or if it does not care about a factored attribute.

    P_ENTRY          its entry
    P_LEAF           its leaf; of a path that is still to be placed: the node to start from
    P_NEXT, P_PREV   the neighbours in the leaf's list of paths; P_NEXT also links free paths and
                     those still to be placed, whose P_PREV is PENDING
    P_SIBLING        the next path of the same entry
    P_FROM           number of the first constraint that the way here has not proved

An **entry** is ENTRY_WORDS numbers of 32 bits:

    E_SUBSCRIPTION   number of its subscription; also links free entries
    E_FLAGS          flags, see rows/kernels/flags.py
    E_FIRST          number of its first constraint
    E_TESTS          end of the constraints that branches can test, in the order of their levels
    E_END            end of all constraints
    E_MOTION         place of its motion
    E_MOTION_END     end of its motion
    E_PATHS          its first path; NONE if it is not in the tree, because it was not placed yet or
                     because nothing satisfies it: it is DEAD, or the bounds of a test are NaN

A **constraint** is BOUND_WORDS words of 64 bits: B_LOW, B_HIGH, floats; B_CHANNEL, in its lower
half the channel, in its upper half the margin, a float of 32 bits (see rows/kernels/envelopes.py).

A **slot** of the hash table is SLOT_WORDS words of 64 bits: S_VALUE, the bits of the value, and
S_CHILD, `parent << 32 | child`, or EMPTY.

**Trits** (Gryphon, 3.1) are two bits in two arrays, `sure` and `may`, of `link_words` words of 64
bits for each node:

    trit     sure    may
    Yes      1       1
    Maybe    0       1
    No       0       0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U64, Int
from tidegate.matching.rows.kernels.jit import inlined

NONE = -1

LEAF, VALUES, CUT, EXCLUSIVE = 0, 1, 2, 4
KIND_MASK = 3

# 32-bit words of a node, and its 64-bit words; the first three of these hold the former
N_KIND, N_CHANNEL, N_STAR, N_LEFT, N_RIGHT, N_GUARD = range(6)
N_CUT, N_GUARD_LOW, N_GUARD_HIGH, N_KEY, N_SEEN = range(3, 8)
NODE_WORDS = 8

T_PARENT, T_ROLE, T_CHILD, T_NEXT, T_PREV, T_PATHS, T_LEVEL, T_CUTS, TIE_WORDS = range(9)
AS_ROOT, AS_VALUE, AS_STAR, AS_LEFT, AS_RIGHT = range(5)

P_ENTRY, P_LEAF, P_NEXT, P_PREV, P_SIBLING, P_FROM, PATH_WORDS = range(7)
PENDING = -2

(
    E_SUBSCRIPTION, E_FLAGS, E_FIRST, E_TESTS, E_END, E_MOTION, E_MOTION_END, E_PATHS, ENTRY_WORDS,
) = range(9)  # fmt: skip

B_LOW, B_HIGH, B_CHANNEL, BOUND_WORDS = range(4)
CHANNEL_MASK = 0xFFFFFFFF

S_VALUE, S_CHILD, SLOT_WORDS = range(3)
EMPTY = -1

(
    H_NODES, H_NODES_TOP, H_FREE_NODE, H_PATHS, H_PATHS_TOP, H_FREE_PATH, H_SLOTS, H_LEVELS,
    H_FACTORED, H_ELIMINATE, H_DELAY, H_LEAF_PATHS_MAX, H_LINK_WORDS, HEAD_WORDS,
) = range(14)  # fmt: skip
"""Words of ``TreeArrays.head``: of nodes and of paths, how many are in use, how many ever were, and
the first that is free again; how many slots are taken; and the settings of the tree."""

VALUE_TESTS, RANGE_TESTS, TEST_COUNTS = range(3)
"""Words of ``TreeArrays.tests``, and how many there are for a channel."""

ROOT = 0


class TreeArrays(NamedTuple):
    """The arrays of a tree."""

    head: I64
    node: F64
    tie: I32
    path: I32
    slot: I64
    level_of: I32
    """By channel: its level; NONE for one that the tree does not test."""
    channel_at: I32
    """By level: its channel."""
    extent: F64
    """By channel, two floats: the least and the greatest finite bound seen, to judge guards."""
    tests: I64
    """By channel, two numbers: how many entries test a value of it, and how many a range."""
    entry: I32
    bound: F64
    motion: F64
    """The motions of all entries, see rows/kernels/motion.py."""
    links: U64
    """By entry: its links, `link_words` words each."""
    sure: U64
    may: U64


@inlined
def node_i32(node: Int, word: Int) -> Int:
    """Index of a 32-bit word of a node."""
    return 2 * NODE_WORDS * np.int64(node) + word


@inlined
def node_f64(node: Int, word: Int) -> Int:
    """Index of a 64-bit word of a node."""
    return NODE_WORDS * np.int64(node) + word


@inlined
def tie_at(node: Int, word: Int) -> Int:
    """Index of a word of a node's second record."""
    return TIE_WORDS * np.int64(node) + word


@inlined
def path_at(path: Int, word: Int) -> Int:
    """Index of a word of a path."""
    return PATH_WORDS * np.int64(path) + word


@inlined
def entry_at(entry: Int, word: Int) -> Int:
    """Index of a word of an entry."""
    return ENTRY_WORDS * np.int64(entry) + word


@inlined
def bound_at(constraint: Int, word: Int) -> Int:
    """Index of a word of a constraint."""
    return BOUND_WORDS * np.int64(constraint) + word


@inlined
def margin_at(bound: Int) -> Int:
    """Index of a constraint's margin, in the view of the same memory as floats of 32 bits.

    ``bound`` is the index of the constraint's first word; memory is little-endian.
    """
    return 2 * (bound + B_CHANNEL) + 1
