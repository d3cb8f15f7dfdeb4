"""Laying out entries as a part of the index, and taking them out again.

Theory of operation. Each entry gets a group by its equalities (groups.py). Entries of one group
with the same values of the key are a cluster, which the hash of group and key finds. Entries are
sorted by this hash, so that a cluster is a range of entries. Inside of a cluster their order is
free, and is that of its bitmaps (bitmaps.py) if it is large; in small clusters the entries are
checked one by one. The constraints of a key are left out of the entries, as all of a cluster have
them alike; the other ones are ordered by how much they let pass, so that a check fails early.

Laying out takes 6 to 12 µs for each of a million entries. So new entries are first put into a
``flat`` part, which has one cluster and no bitmaps, and laid out when there are many (index.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U64, Bools, Int
from tidegate.matching.columnar.kernels.bitmaps import Bitmaps
from tidegate.matching.columnar.kernels.groups import choose_groups, hash_keys, salts_of
from tidegate.matching.columnar.kernels.part import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BOUND_WORDS,
    CHANNEL_MASK,
    EMPTY_SLOT,
    PROBES,
    Part,
    bound_words,
    entry_words,
)
from tidegate.matching.rows.kernels.constraints import as_probe
from tidegate.matching.rows.kernels.entry_lists import (
    Entries,
    no_entries,
    offsets,
    permuted,
    permuted_rows,
)
from tidegate.matching.rows.kernels.flags import GONE, SET
from tidegate.matching.rows.kernels.jit import kernel


class LayoutSizes(NamedTuple):
    """From which sizes on a layout makes groups and bitmaps; tests use smaller ones."""

    groups_max: int = 96
    """How many groups may have several key channels."""
    group_entries_min: int = 128
    """How many entries must share a set of key channels for it to be a group."""
    bitmap_entries_min: int = 96
    """How many entries a cluster must have for bitmaps; fewer are quicker to probe one by one."""


DEFAULT_SIZES = LayoutSizes()


def lay_out(
    entries: Entries,
    program: I32,
    sizes: LayoutSizes = DEFAULT_SIZES,
    pause: Callable[[], object] = lambda: None,
) -> Part:
    """A part with these entries, whose motions refer to ``program``.

    ``pause`` is called between the steps, so that a layout beside other threads gives way to them.
    """
    groups = choose_groups(entries, sizes.groups_max, sizes.group_entries_min)
    pause()
    salts, hashes, order = hash_keys(entries, groups)
    pause()
    # a cluster begins wherever the hash changes
    in_order = hashes[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    if not len(order):
        starts = np.zeros(0, np.int64)
    cluster_first = np.concatenate([starts, [len(order)]]).astype(np.int32)
    # Bitmaps first, because they decide the order of entries inside of a cluster, and everything
    # else is gathered in that order. The constraints of keys are not among the rest.
    maps = Bitmaps()
    rest_first, rest = _chosen(entries.first, ~groups.keyed)
    for cluster in range(len(starts)):
        begin, end = int(cluster_first[cluster]), int(cluster_first[cluster + 1])
        if end - begin >= sizes.bitmap_entries_min:
            pause()
            members = order[begin:end]
            first, source = permuted(members, rest_first, rest)
            owner = np.repeat(np.arange(len(members)), np.diff(first))
            order[begin:end] = members[
                maps.add_cluster(
                    len(members),
                    owner,
                    entries.channel[source],
                    entries.low[source],
                    entries.high[source],
                )
            ]
        else:
            maps.add_empty()
    first, source = permuted(order, rest_first, rest)
    pause()
    looseness = _looseness(entries.channel, entries.low, entries.high)
    pause()
    _most_selective_first(first, source, looseness)
    motion_first, motion_source = permuted_rows(order, entries.motion_first)
    pause()
    # any entry of a cluster tells its key: the first one
    heads = order[starts] if len(starts) else np.zeros(0, np.int64)
    key_first, key_source = permuted(heads, *_chosen(entries.first, groups.keyed))
    slot_hash, slot_cluster = _hash_table(hashes[heads])
    return Part(
        entry=entry_words(entries.subscription[order], entries.flags[order], first, motion_first),
        **_probes(first, entries.channel[source], entries.low[source], entries.high[source]),
        bound=bound_words(entries.low[source], entries.high[source], entries.channel[source]),
        group_first=offsets(np.array([len(each) for each in groups.channels], np.int64)),
        group_channel=np.array([c for each in groups.channels for c in each], np.int32),
        group_salt=salts,
        slot_hash=slot_hash,
        slot_cluster=slot_cluster,
        cluster_first=cluster_first,
        cluster_group=groups.of[heads],
        cluster_key=key_first[:-1],
        key_value=entries.low[key_source],
        **maps.arrays(),
        motion=entries.motion[motion_source],
        program=program,
    )


def flat(entries: Entries, program: I32) -> Part:
    """A part with one cluster and no bitmaps: quick to make, for a few new entries.

    Its only group has no key channels, so every event falls into the cluster.
    """
    no_i32, no_f64 = np.zeros(0, np.int32), np.zeros(0)
    salts = salts_of(1, 1)
    slot_hash, slot_cluster = _hash_table(salts)
    return Part(
        entry=entry_words(entries.subscription, entries.flags, entries.first, entries.motion_first),
        **_probes(entries.first, entries.channel, entries.low, entries.high),
        bound=bound_words(entries.low, entries.high, entries.channel),
        group_first=np.zeros(2, np.int32),
        group_channel=no_i32,
        group_salt=salts,
        slot_hash=slot_hash,
        slot_cluster=slot_cluster,
        cluster_first=np.array([0, len(entries)], np.int32),
        cluster_group=np.zeros(1, np.int32),
        cluster_key=np.zeros(1, np.int32),
        key_value=no_f64,
        cluster_dense=np.zeros(1, np.uint8),
        map_first=np.zeros(2, np.int32),
        map_channel=no_i32,
        map_bins=no_i32,
        map_edge=no_i32,
        map_word=np.zeros(0, np.int64),
        edge=no_f64,
        word=np.zeros(0, np.uint64),
        span_first=no_i32,
        span_last=no_i32,
        span_start=np.zeros(1, np.int32),
        motion=entries.motion,
        program=program,
    )


def _chosen(first: I32, chosen: Bools) -> tuple[I32, I64]:
    """The chosen constraints of each entry, as compressed rows of indexes."""
    running = np.concatenate([[0], np.cumsum(chosen)]).astype(np.int32)
    return running[first], np.flatnonzero(chosen)


# -- constraints ----------------------------------------------------------------------------------


def _looseness(channel: I32, low: F64, high: F64) -> F64:
    """For each constraint, about which share of its channel's values it lets pass.

    The range of a channel is taken to be that of the finite bounds on it, and events to be spread
    evenly over it; neither has to be true, it only orders the checks.
    """
    # reduceat works on runs of equal channels; infinite bounds say nothing about the range
    order = np.argsort(channel, kind="stable")
    starts = np.flatnonzero(np.diff(channel[order], prepend=-1))
    finite_low = np.where(np.isfinite(low), low, np.inf)
    finite_high = np.where(np.isfinite(high), high, -np.inf)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if len(starts):
            least = np.minimum.reduceat(finite_low[order], starts)
            most = np.maximum.reduceat(finite_high[order], starts)
            of_channel = np.empty(len(channel), np.int64)
            of_channel[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, len(channel)]))
            share = (high - low) / (most - least)[of_channel]
        else:
            share = np.zeros(0)
    # an equality passes next to nothing; what is no finite range counts as passing everything
    return np.where(low == high, 0.0, np.where((low <= high) & (share < 1.0), share, 1.0))


@kernel
def _most_selective_first(first: I32, source: I64, looseness: F64) -> None:
    """Order the constraints of each entry by looseness: an insertion sort, as they are few."""
    for entry in range(len(first) - 1):
        for index in range(first[entry] + 1, first[entry + 1]):
            moved = source[index]
            at = index
            while at > first[entry] and looseness[source[at - 1]] > looseness[moved]:
                source[at] = source[at - 1]
                at -= 1
            source[at] = moved


def _probes(first: I32, channel: I32, low: F64, high: F64) -> dict[str, Any]:
    """The fields ``probe_channel`` and ``probe``: short forms of each entry's first constraints.

    Sets and the outside of bounds have none. There the bounds are NaN, and the channel is 0, which
    a kernel may read as any event has it.
    """
    channels = np.zeros((len(first) - 1, PROBES), np.int32)
    bounds = np.full((len(first) - 1, PROBES, 2), np.nan, np.float32)
    # by NumPy for all entries at once; an entry may have fewer constraints than probes
    for probe in range(PROBES):
        some = np.flatnonzero(np.diff(first) > probe)
        index = first[some] + probe
        plain = (channel[index] < SET) & ~(low[index] > high[index])
        channels[some[plain], probe] = channel[index[plain]]
        bounds[some[plain], probe] = _as_probes(low[index[plain]], high[index[plain]])
    return {"probe_channel": channels.ravel(), "probe": bounds.ravel()}


@kernel
def _as_probes(low: F64, high: F64) -> F32:
    result = np.empty((len(low), 2), np.float32)
    for index in range(len(low)):
        result[index, 0], result[index, 1] = as_probe(low[index], high[index])
    return result


# -- the hash table -------------------------------------------------------------------------------


def _hash_table(hashes: U64) -> tuple[U64, I32]:
    """An open hash table of clusters, by the hashes of their keys.

    Its size is a power of two, so that a mask takes the place of a division, and it is at most half
    full, so that a probe that finds nothing ends after two slots or so.
    """
    size = 1 << max(3, int(2 * len(hashes)).bit_length())
    slot_hash = np.zeros(size, np.uint64)
    slot_cluster = np.full(size, EMPTY_SLOT, np.int32)
    _fill_table(hashes, slot_hash, slot_cluster)
    return slot_hash, slot_cluster


@kernel
def _fill_table(hashes: U64, slot_hash: U64, slot_cluster: I32) -> None:
    mask = np.uint64(len(slot_hash) - 1)
    for cluster in range(len(hashes)):
        slot = hashes[cluster] & mask
        while slot_cluster[slot] != EMPTY_SLOT:
            slot = (slot + np.uint64(1)) & mask
        slot_hash[slot] = hashes[cluster]
        slot_cluster[slot] = cluster


# -- and back -------------------------------------------------------------------------------------


def take_out(part: Part, begin: int = 0, end: int | None = None) -> Entries:
    """The entries of a part that are not gone, or those of a range, to be laid out again.

    The subscriptions are not read for that: all that an entry requires is in the part.
    """
    # the key of an entry is that of its cluster, the channels of which are those of its group
    kept = begin + np.flatnonzero((part.flags[begin:end] & GONE) == 0)
    if not len(kept):
        return no_entries()
    cluster = np.searchsorted(part.cluster_first, kept, side="right") - 1
    group = part.cluster_group[cluster]
    keys = np.diff(part.group_first)[group]
    first = offsets(part.first[kept + 1] - part.first[kept] + keys)
    channel = np.empty(first[-1], np.int32)
    low, high = np.empty(first[-1]), np.empty(first[-1])
    _put_back_keys(
        kept, first, channel, low, high, part.first, part.bound, part.bound.view(np.int64),
        part.group_first[group], part.group_channel, part.cluster_key[cluster], part.key_value,
        keys,
    )  # fmt: skip
    motion_first, source = permuted_rows(kept, part.motion_first)
    return Entries(
        subscription=part.subscription[kept],
        flags=part.flags[kept],
        first=first,
        channel=channel,
        low=low,
        high=high,
        motion_first=motion_first,
        motion=part.motion[source],
    )


@kernel
def _put_back_keys(
    kept: I64, first: I32, channel: I32, low: F64, high: F64, part_first: I32, bound: F64,
    bound_bits: I64, group_at: I32, group_channel: I32, key_at: I32, key_value: F64, keys: I64,
) -> None:  # fmt: skip
    """Write each kept entry's constraints and those of its key, by ascending channel."""
    for index in range(len(kept)):
        begin = np.int64(first[index])
        at: Int = begin
        for step in range(keys[index]):
            value = key_value[key_at[index] + step]
            key_channel = np.int64(group_channel[group_at[index] + step])
            at = _insert(begin, at, channel, low, high, key_channel, value, value)
        for constraint in range(part_first[kept[index]], part_first[kept[index] + 1]):
            place = BOUND_WORDS * constraint
            at = _insert(begin, at, channel, low, high,
                         bound_bits[place + B_CHANNEL] & CHANNEL_MASK,
                         bound[place + B_LOW], bound[place + B_HIGH])  # fmt: skip


@kernel
def _insert(
    begin: Int, end: Int, channel: I32, low: F64, high: F64, new: Int, new_low: float,
    new_high: float,
) -> Int:  # fmt: skip
    """Insert a constraint into those from ``begin`` to ``end``; returns the new end."""
    at = end
    while at > begin and channel[at - 1] > new:
        channel[at], low[at], high[at] = channel[at - 1], low[at - 1], high[at - 1]
        at -= 1
    channel[at], low[at], high[at] = new, new_low, new_high
    return end + 1
