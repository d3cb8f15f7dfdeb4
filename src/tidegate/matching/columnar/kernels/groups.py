"""Choosing the group of each entry: which of its equalities are the key that finds it.

The equalities of an entry could all be its key, but each group costs every event a hash probe, so
there must not be many. The choice is made by how common things are:

- If many entries require equality in the same set of channels, these channels are a group, and all
  equalities together are the key. Only the most common sets of channels are taken.
- Any other entry joins the group of one channel: that of its equality which the fewest entries
  share, because then the fewest candidates come with it.
- An entry without an equality is in the group without channels, which has one cluster. Every event
  has to look at that one.

An equality on a channel of sets (some pattern holds for the string) is a key only for an entry that
has no other, because its group is probed for each number in the set of an event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U64, Bools
from tidegate.matching.columnar.kernels.lookup import GOLDEN, mix
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.kernels.jit import kernel


@dataclass(slots=True)
class KeyGroups:
    """The group of each entry, and which of its constraints are its key there."""

    of: I32
    keyed: Bools
    """For each constraint, whether it is part of the key of its entry."""
    channels: list[tuple[int, ...]]
    """The key channels of each group."""


def choose_groups(entries: Entries, groups_max: int, entries_min: int) -> KeyGroups:
    """Choose the group of each entry.

    At most ``groups_max`` sets of channels are common, each shared by ``entries_min`` or more.
    """
    # A range of one value is an equality too, whatever it was written as. NaN equals nothing.
    equal = entries.low == entries.high
    alone = equal & (entries.channel < SET)
    signature = _signatures(entries.first, entries.channel, alone)
    # the kinds of entries, by the set of channels in which they require equality
    kinds, kind_of, counts = np.unique(signature, return_inverse=True, return_counts=True)
    common = np.zeros(len(kinds), np.bool_)
    largest = np.argsort(-counts, kind="stable")[:groups_max]
    common[largest] = counts[largest] >= entries_min
    is_common = common[kind_of]
    frequency = _frequencies(entries, equal)
    frequency[equal & ~alone] += len(entries)  # sets are chosen last
    keyed = _choose_keys(entries.first, equal, alone, is_common, frequency)
    # each kind of key is a group; the channels are those of any entry that has such a key
    groups: dict[tuple[int, ...], int] = {}
    of_key: dict[int, int] = {}
    key_kind = _signatures(entries.first, entries.channel, keyed)
    key_kinds, example, key_kind_of = np.unique(key_kind, return_index=True, return_inverse=True)
    for index, entry in enumerate(example):
        row = slice(entries.first[entry], entries.first[entry + 1])
        channels = tuple(int(each) for each in entries.channel[row][keyed[row]])
        of_key[index] = groups.setdefault(channels, len(groups))
    table = np.array([of_key[index] for index in range(len(key_kinds))], np.int32)
    of = table[key_kind_of] if len(table) else np.zeros(0, np.int32)
    return KeyGroups(of, keyed, list(groups))


@kernel
def _signatures(first: I32, channel: I32, chosen: Bools) -> U64:
    """For each entry a number that stands for the multiset of channels of its chosen constraints.

    A sum, so that the order does not matter; of 64 scattered bits, so that no two sets of channels
    have the same one in practice. One number to sort by is what makes ``np.unique`` quick.
    """
    result = np.zeros(len(first) - 1, np.uint64)
    for entry in range(len(result)):
        for index in range(first[entry], first[entry + 1]):
            if chosen[index]:
                result[entry] += mix(np.uint64(channel[index] + 1))
    return result


def _frequencies(entries: Entries, equal: Bools) -> I64:
    """For each equality, how many there are with the same channel and value."""
    # adding 0.0 makes -0.0 the 0.0 that it equals, which has other bits
    values = (entries.low[equal] + 0.0).view(np.uint64)
    scattered = values * GOLDEN + entries.channel[equal].astype(np.uint64)
    _, kind_of, counts = np.unique(scattered, return_inverse=True, return_counts=True)
    result = np.zeros(len(equal), np.int64)
    result[equal] = counts[kind_of] if len(counts) else 0
    return result


@kernel
def _choose_keys(first: I32, equal: Bools, alone: Bools, is_common: Bools, frequency: I64) -> Bools:
    """Which constraints are keys: of a common kind of entry all equalities, else the rarest one."""
    keyed = np.zeros(len(equal), np.bool_)
    for entry in range(len(first) - 1):
        # ``best`` is the rarest equality so far, -1 for none
        best, many = -1, False
        for index in range(first[entry], first[entry + 1]):
            if not equal[index]:
                continue
            if is_common[entry] and alone[index]:
                keyed[index] = many = True
            elif best < 0 or frequency[index] < frequency[best]:
                best = index
        if best >= 0 and not many:
            keyed[best] = True
    return keyed


# -- hashes of keys -------------------------------------------------------------------------------


def hash_keys(entries: Entries, groups: KeyGroups) -> tuple[U64, U64, I64]:
    """The salts of the groups, the hash of each entry's key, and the entries in its order.

    No two keys have one hash: where they do, other salts are tried. So a cluster is a run of equal
    hashes, and a slot of the hash table has one cluster.
    """
    seed = 0
    while True:
        seed += 1
        salts = salts_of(seed, len(groups.channels))
        hashes = _key_hashes(entries.first, entries.low, groups.keyed, salts[groups.of])
        order = np.argsort(hashes, kind="stable")
        if not _runs_differ(entries.first, entries.low, groups.keyed, groups.of, order, hashes):
            return salts, hashes, order


def salts_of(seed: int, count: int) -> U64:
    """The salts of ``count`` groups: the words with which the hashes of their keys begin."""
    return _scatter(np.arange(count, dtype=np.uint64) + np.uint64(seed * 1_000_003))


@kernel
def _scatter(values: U64) -> U64:
    result = np.empty_like(values)
    for index in range(len(values)):
        result[index] = mix(values[index] + np.uint64(0x632BE59BD9B4E019))
    return result


@kernel
def _key_hashes(first: I32, low: F64, keyed: Bools, salts: U64) -> U64:
    """The hash of each entry's key, computed as lookup.py computes it from an event."""
    bits = (low + 0.0).view(np.uint64)  # of the two zeros, events have the positive one
    result = salts.copy()
    for entry in range(len(result)):
        for index in range(first[entry], first[entry + 1]):
            if keyed[index]:
                result[entry] = mix(result[entry] ^ bits[index]) + GOLDEN
    return result


@kernel
def _runs_differ(first: I32, low: F64, keyed: Bools, groups: I32, order: I64, hashes: U64) -> bool:
    """Whether two neighbours in the order have one hash and different keys."""
    for index in range(1, len(order)):
        a, b = order[index - 1], order[index]
        if hashes[a] == hashes[b] and not _same_key(first, low, keyed, groups, a, b):
            return True
    return False


@kernel
def _same_key(first: I32, low: F64, keyed: Bools, groups: I32, a: int, b: int) -> bool:
    """Whether two entries have one key; constraints are ordered by channel, so they are aligned."""
    if groups[a] != groups[b]:
        return False
    i, j = first[a], first[b]
    while True:
        while i < first[a + 1] and not keyed[i]:
            i += 1
        while j < first[b + 1] and not keyed[j]:
            j += 1
        if i == first[a + 1] or j == first[b + 1]:
            return bool(i == first[a + 1] and j == first[b + 1])
        if low[i] != low[j]:
            return False
        i += 1
        j += 1
