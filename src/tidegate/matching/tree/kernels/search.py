"""The search: all paths from the root that an event satisfies (Gryphon, 2), and how many steps.

A search starts at the root and goes on at each branch that applies: that of the event's value, the
side of a cut, and the *-branch. Subsearches wait on a stack. At a leaf the tests that are left are
made, one path after the other.

A matching step is the visit of a node (Gryphon, 4.1). Tests at a leaf count as steps too, and so
does a guard that keeps a search from a *-branch: both stand for nodes of the plain tree. A factored
attribute is a look-up in a table and not a step.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.rows.kernels.constraints import in_set, satisfied
from tidegate.matching.rows.kernels.flags import MOVING, SET, UNSURE, VERIFY
from tidegate.matching.rows.kernels.functions import check_functions
from tidegate.matching.rows.kernels.jit import inlined, lean
from tidegate.matching.tree.kernels.layout import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BOUND_WORDS,
    CHANNEL_MASK,
    E_END,
    E_FLAGS,
    E_MOTION,
    E_MOTION_END,
    E_SUBSCRIPTION,
    EXCLUSIVE,
    H_LINK_WORDS,
    KIND_MASK,
    LEAF,
    N_CHANNEL,
    N_CUT,
    N_GUARD,
    N_GUARD_HIGH,
    N_GUARD_LOW,
    N_KIND,
    N_LEFT,
    N_RIGHT,
    N_SEEN,
    N_STAR,
    NODE_WORDS,
    NONE,
    P_ENTRY,
    P_FROM,
    P_NEXT,
    PATH_WORDS,
    ROOT,
    VALUES,
    TreeArrays,
    entry_at,
    margin_at,
)
from tidegate.matching.tree.kernels.slots import find_child, seen_bit

NO_ROOM = -1


@inlined
def branch(
    node: F64,
    ints: I32,
    slot: I64,
    number: Int,
    events: F64,
    event: Int,
    stack: I32,
    top: Int,
) -> tuple[Int, Int]:
    """Push the branches of a node that an event takes; returns the top of the stack and steps."""
    at, words = 2 * NODE_WORDS * number, NODE_WORDS * number
    kind = ints[at + N_KIND]
    x = events[event, ints[at + N_CHANNEL]]
    exclusive, taken, steps = kind & EXCLUSIVE, False, np.int64(0)
    if not np.isnan(x):
        if kind & KIND_MASK == VALUES:
            bits = np.float64(x).view(np.int64)
            child = np.int64(NONE)
            if np.float64(node[words + N_SEEN]).view(np.int64) & seen_bit(bits):
                child = find_child(slot, number, bits)
            if child != NONE:
                stack[top] = child
                top += 1
                taken = True
            child = np.int64(ints[at + N_LEFT])
        else:
            is_left = x < node[words + N_CUT]
            child = np.int64(ints[at + N_LEFT] if is_left else ints[at + N_RIGHT])
            taken = True
        if child != NONE:
            stack[top] = child
            top += 1
    star = ints[at + N_STAR]
    if star != NONE and not (exclusive and taken):
        guard = ints[at + N_GUARD]
        if guard == NONE:
            stack[top] = star
            top += 1
        else:
            y = events[event, guard]
            if y >= node[words + N_GUARD_LOW] and y <= node[words + N_GUARD_HIGH]:
                stack[top] = star
                top += 1
            else:
                steps += 1
    return top, steps


@inlined
def passes_guard(node: F64, ints: I32, leaf: Int, events: F64, event: Int) -> bool:
    """Whether an event passes the guard of a leaf."""
    guard = ints[2 * NODE_WORDS * leaf + N_GUARD]
    if guard == NONE:
        return True
    x = events[event, guard]
    words = NODE_WORDS * leaf
    return bool(x >= node[words + N_GUARD_LOW] and x <= node[words + N_GUARD_HIGH])


@inlined
def check_path(
    first: Int,
    end: Int,
    flags: Int,
    bound: F64,
    bits: I64,
    margins: F32,
    events: F64,
    event: Int,
    set_first: I32,
    set_value: F64,
) -> tuple[Int, Int]:
    """The flags of a path's entry if an event satisfies the tests left, else -1; and the steps."""
    steps, sure = np.int64(0), True
    place = BOUND_WORDS * first
    while place < BOUND_WORDS * end:
        steps += 1
        channel = bits[place + B_CHANNEL] & CHANNEL_MASK
        low, high = bound[place + B_LOW], bound[place + B_HIGH]
        if channel & SET:
            if not in_set(events[event, channel ^ SET], low, high, set_first, set_value):
                return np.int64(-1), steps
        else:
            x = events[event, channel]
            if not satisfied(x, low, high):
                return np.int64(-1), steps
            if flags & MOVING:
                margin = margins[margin_at(place)]
                sure &= (margin == 0.0) | ((x >= low + margin) & (x <= high - margin))
        place += BOUND_WORDS
    return (flags if sure else flags | UNSURE), steps


@lean
def match_events(
    node: F64,
    slot: I64,
    path: I32,
    entry: I32,
    bound: F64,
    events: F64,
    set_first: I32,
    set_value: F64,
    stack: I32,
    out_event: I32,
    out_entry: I32,
    out_flags: U8,
) -> tuple[Int, Int, Int]:
    """Write the pairs of an event and an entry that it satisfies, event by event.

    Returns how many there are, NO_ROOM if they do not fit; all their flags; and the steps. UNSURE
    pairs are still to be evaluated. Takes the arrays of a tree that it reads one by one, because
    for a single event the call counts (see rewriting.py).
    """
    ints = node.view(np.int32)
    bits, margins = bound.view(np.int64), bound.view(np.float32)
    count, seen, steps = np.int64(0), np.int64(0), np.int64(0)
    for event in range(events.shape[0]):
        stack[0] = ROOT
        top = np.int64(1)
        while top > 0:
            top -= 1
            number = np.int64(stack[top])
            kind = ints[2 * NODE_WORDS * number + N_KIND]
            steps += (kind & EXCLUSIVE) == 0
            if kind & KIND_MASK != LEAF:
                top, guarded = branch(node, ints, slot, number, events, event, stack, top)
                steps += guarded
                continue
            if not passes_guard(node, ints, number, events, event):
                continue
            each = np.int64(ints[2 * NODE_WORDS * number + N_STAR])
            while each != NONE:
                words = PATH_WORDS * each
                owner = np.int64(path[words + P_ENTRY])
                flags, tests = check_path(
                    np.int64(path[words + P_FROM]), np.int64(entry[entry_at(owner, E_END)]),
                    np.int64(entry[entry_at(owner, E_FLAGS)]), bound, bits, margins, events, event,
                    set_first, set_value,
                )  # fmt: skip
                steps += tests
                if flags >= 0:
                    if count == len(out_event):
                        return np.int64(NO_ROOM), seen, steps
                    out_event[count] = event
                    out_entry[count] = owner
                    out_flags[count] = flags
                    seen |= flags
                    count += 1
                each = np.int64(path[words + P_NEXT])
    return count, seen, steps


@lean
def evaluate_pairs(
    entry: I32,
    motion: F64,
    program: I32,
    events: F64,
    times_us: I64,
    variables: F64,
    stack: F64,
    pair_event: I32,
    pair_entry: I32,
    pair_flags: U8,
) -> tuple[Int, Int]:
    """Evaluate the functions of UNSURE pairs, and move the pairs that match to the front.

    Entries are replaced by their subscriptions. Returns how many pairs match, and their flags.
    """
    words = motion.view(np.int64)
    kept, seen = np.int64(0), np.int64(0)
    for pair in range(len(pair_flags)):
        owner, event = np.int64(pair_entry[pair]), np.int64(pair_event[pair])
        flags = np.int64(pair_flags[pair])
        if flags & UNSURE:
            flags = check_functions(
                flags ^ UNSURE, np.int64(entry[entry_at(owner, E_MOTION)]),
                np.int64(entry[entry_at(owner, E_MOTION_END)]), motion, words, program,
                events, event, times_us[event], variables, stack,
            )  # fmt: skip
        if flags >= 0:
            pair_event[kept] = event
            pair_entry[kept] = entry[entry_at(owner, E_SUBSCRIPTION)]
            pair_flags[kept] = flags
            seen |= flags
            kept += 1
    return kept, seen


@lean
def match_links(
    tree: TreeArrays,
    events: F64,
    set_first: I32,
    set_value: F64,
    stack: I32,
    undecided: U64,
    collect: Int,
    out_entry: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Refine the mask of one event (Gryphon, 3.3): the links in ``undecided`` that are found Yes
    are removed from it.

    The first link is COLLECTED if ``collect``: it never becomes Yes by an annotation, and each
    entry that has it is written. Entries that are not sure (VERIFY, UNSURE) are written as well,
    for the caller to decide. Returns how many are written, NO_ROOM if they do not fit, and the
    steps.

    The paper's subsearches have masks of their own, and what one finds is made Yes in the mask of
    the search above when it returns. Subsearches are made one after the other, so one mask does:
    what is Yes in it is Yes in all masks that are still to be refined.
    """
    node, slot, path, entry = tree.node, tree.slot, tree.path, tree.entry
    ints = node.view(np.int32)
    bound = tree.bound
    bits, margins = bound.view(np.int64), bound.view(np.float32)
    words = tree.head[H_LINK_WORDS]
    count, steps = np.int64(0), np.int64(0)
    stack[0] = ROOT
    top = np.int64(1)
    while top > 0:
        top -= 1
        number = np.int64(stack[top])
        maybe = False
        for word in range(words):
            at = words * number + word
            yes = undecided[word] & tree.sure[at]
            if collect and word == 0:
                yes &= ~np.uint64(1)
            undecided[word] &= ~yes
            maybe |= (undecided[word] & tree.may[at]) != 0
        kind = ints[2 * NODE_WORDS * number + N_KIND]
        steps += (kind & EXCLUSIVE) == 0
        if not maybe:
            continue
        if kind & KIND_MASK != LEAF:
            top, guarded = branch(node, ints, slot, number, events, 0, stack, top)
            steps += guarded
            continue
        if not passes_guard(node, ints, number, events, 0):
            continue
        each = np.int64(ints[2 * NODE_WORDS * number + N_STAR])
        while each != NONE:
            at = PATH_WORDS * each
            owner = np.int64(path[at + P_ENTRY])
            wanted = False
            for word in range(words):
                wanted |= (undecided[word] & tree.links[words * owner + word]) != 0
            if wanted:
                flags, tests = check_path(
                    np.int64(path[at + P_FROM]), np.int64(entry[entry_at(owner, E_END)]),
                    np.int64(entry[entry_at(owner, E_FLAGS)]), bound, bits, margins, events, 0,
                    set_first, set_value,
                )  # fmt: skip
                steps += tests
                if flags >= 0:
                    sure = flags & (VERIFY | UNSURE) == 0
                    keep = not sure
                    for word in range(words):
                        links = tree.links[words * owner + word]
                        if collect and word == 0:
                            keep |= (links & np.uint64(1)) != 0
                            links &= ~np.uint64(1)
                        if sure:
                            undecided[word] &= ~links
                    if keep:
                        if count == len(out_entry):
                            return np.int64(NO_ROOM), steps
                        out_entry[count] = owner
                        out_flags[count] = flags
                        count += 1
            each = np.int64(path[at + P_NEXT])
    return count, steps
