"""Looking up the clusters that events fall into, by hash: the first step of a match.

All entries of a cluster require the same values in the key channels of their group. So a hash of
the group and of an event's values in these channels finds the one cluster that may match, with one
probe, however many entries there are (Fabret et al. 2001 call this a multi-attribute hash). Where
the key channel holds a set, there is a probe for each member of the set.

The table is open, with linear probing, and at most half full (layout.py). All groups share it: the
salt of a group is what its hashes begin with. A slot holds the whole hash, so that a probe for a
key that is not there hardly ever has to read that of another.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, Int
from tidegate.matching.columnar.kernels.part import BEGIN, EMPTY_SLOT, END, PackedPart
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.kernels.jit import inlined, lean

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: what SplitMix64 adds in each step."""


@inlined
def mix(value: np.uint64) -> np.uint64:
    """Scatter the bits of a word (the finalizer of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@lean
def find_by_values(
    part: PackedPart,
    events: F64,
    begin: Int,
    end: Int,
    group: Int,
    pair_event: I32,
    pair_cluster: I32,
    count: Int,
) -> Int:
    """Look up the clusters of a group for the events from ``begin`` to ``end``.

    Writes pairs of an event and its cluster from ``count`` on, at most one for each event; returns
    how many there are then.
    """
    at = part.at
    group_channel = part.i32[at[BEGIN.group_channel] : at[END.group_channel]]
    slot_hash = part.u64[at[BEGIN.slot_hash] : at[END.slot_hash]]
    slot_cluster = part.i32[at[BEGIN.slot_cluster] : at[END.slot_cluster]]
    cluster_key = part.i32[at[BEGIN.cluster_key] : at[END.cluster_key]]
    key_value = part.f64[at[BEGIN.key_value] : at[END.key_value]]
    salt = part.u64[at[BEGIN.group_salt] + group]
    key_begin = part.i32[at[BEGIN.group_first] + group]
    key_end = part.i32[at[BEGIN.group_first] + group + 1]
    # Values are hashed by their bits. Only -0.0 and 0.0 are equal with different bits, and events
    # are encoded with 0.0 for both, as are keys (layout.py).
    bits = events.view(np.uint64)
    mask = np.uint64(len(slot_hash) - 1)
    for event in range(begin, end):
        # The hash is computed even if a value is absent, and then not used, so that the loop over
        # the key has no branches.
        absent = False
        hashed = salt
        for index in range(key_begin, key_end):
            absent |= np.isnan(events[event, group_channel[index]])
            hashed = mix(hashed ^ bits[event, group_channel[index]]) + GOLDEN
        if absent:
            continue
        slot = hashed & mask
        # ends at an empty slot at the latest, of which there is always one
        while slot_cluster[slot] != EMPTY_SLOT and slot_hash[slot] != hashed:
            slot = (slot + np.uint64(1)) & mask
        cluster = slot_cluster[slot]
        if cluster == EMPTY_SLOT:
            continue
        # No two keys of a part have one hash (layout.py sees to it), but the values of an event
        # that are no key may well have the hash of one.
        key = cluster_key[cluster]
        differs = False
        for index in range(key_begin, key_end):
            differs |= key_value[key + index - key_begin] != events[event, group_channel[index]]
        if not differs:
            pair_event[count] = event
            pair_cluster[count] = cluster
            count += 1
    return count


@lean
def find_in_sets(
    part: PackedPart,
    events: F64,
    begin: Int,
    end: Int,
    group: Int,
    set_first: I32,
    set_value: F64,
    pair_event: I32,
    pair_cluster: I32,
    count: Int,
) -> Int:
    """Look up the clusters of a group whose key channel holds sets, one for each member.

    As ``find_by_values``, but an event may have many pairs; returns -1 if there is no room. Such a
    group has no other key channel.
    """
    at = part.at
    slot_hash = part.u64[at[BEGIN.slot_hash] : at[END.slot_hash]]
    slot_cluster = part.i32[at[BEGIN.slot_cluster] : at[END.slot_cluster]]
    salt = part.u64[at[BEGIN.group_salt] + group]
    channel = part.i32[at[BEGIN.group_channel] + part.i32[at[BEGIN.group_first] + group]] ^ SET
    set_bits = set_value.view(np.uint64)
    mask = np.uint64(len(slot_hash) - 1)
    for event in range(begin, end):
        x = events[event, channel]
        if np.isnan(x):
            continue
        # members are numbers of patterns, among which there is no -0.0
        for member in range(set_first[np.int64(x)], set_first[np.int64(x) + 1]):
            hashed = mix(salt ^ set_bits[member]) + GOLDEN
            slot = hashed & mask
            while slot_cluster[slot] != EMPTY_SLOT and slot_hash[slot] != hashed:
                slot = (slot + np.uint64(1)) & mask
            cluster = slot_cluster[slot]
            if cluster == EMPTY_SLOT:
                continue
            key = part.i32[at[BEGIN.cluster_key] + cluster]
            if part.f64[at[BEGIN.key_value] + key] != set_value[member]:
                continue
            if count == len(pair_event):
                return -1
            pair_event[count] = event
            pair_cluster[count] = cluster
            count += 1
    return count
