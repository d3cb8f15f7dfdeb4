"""Laying out entries as a part of the index: groups and segments.

Theory of operation. An entry's equalities choose its group. If many entries ask equality of the
same set of channels, these make a group of their own, keyed by all of them together; an entry of a
rarer kind joins the group of that one of its equalities which the fewest others share. Entries with
the same key are a segment, hashed by group and key. Entries without equality are one segment.

An equality with a set (some pattern holds for the string) is the key of an entry that has no other;
its group is probed for each number in the set of an event.

Large segments get bitmaps (see bitmaps.py). Small ones have none; their entries are simply checked
one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Bools
from tidegate.matching.columnar.kernels.bitmaps import Bitmaps
from tidegate.matching.columnar.kernels.check import as_probe
from tidegate.matching.columnar.kernels.jit import kernel
from tidegate.matching.columnar.kernels.lookup import GOLDEN, mix
from tidegate.matching.columnar.kernels.part import (
    CHANNEL_MASK,
    EMPTY_SLOT,
    GONE,
    PROBES,
    SET,
    Part,
    entry_numbers,
)

GROUPS_MAX = 96
GROUP_ENTRIES_MIN = 128
BITMAP_ENTRIES_MIN = 96


@dataclass(slots=True)
class Entries:
    """Entries in compressed rows: constraints by ascending channel, and their motion."""

    subscription: I32
    flags: U8
    first: I32
    channel: I32
    low: F64
    high: F64
    motion_first: I32
    motion: F64

    def __len__(self) -> int:
        return len(self.subscription)


def concatenate(parts: list[Entries]) -> Entries:
    """Several lists of entries as one."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {}
    for field in fields(Entries):
        arrays = [getattr(part, field.name) for part in parts]
        if field.name in ("first", "motion_first"):
            joined[field.name] = _join_offsets(arrays)
        else:
            joined[field.name] = np.concatenate(arrays)
    return Entries(**joined)


def limited(entries: Entries, channel: int, low: F64, high: F64) -> Entries:
    """The entries with one more constraint each, on a channel that none of them has yet."""
    count = len(entries)
    owner = np.repeat(np.arange(count), np.diff(entries.first))
    owners = np.concatenate([owner, np.arange(count)])
    channels = np.concatenate([entries.channel, np.full(count, channel, np.int32)])
    order = np.lexsort((channels, owners))
    return replace(
        entries,
        first=offsets(np.diff(entries.first) + 1),
        channel=channels[order],
        low=np.concatenate([entries.low, low])[order],
        high=np.concatenate([entries.high, high])[order],
    )


def _join_offsets(arrays: list[I32]) -> I32:
    lengths = np.concatenate([np.diff(array) for array in arrays])
    return offsets(lengths)


def offsets(lengths: npt.NDArray[Any]) -> I32:
    """Where each of several rows begins that stand one behind the other, and where all end."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


@dataclass(slots=True)
class _KeyGroups:
    """Which group each entry is in, and which of its constraints are its key there."""

    of: I32
    keyed: Bools
    channels: list[tuple[int, ...]]


def _choose_groups(entries: Entries) -> _KeyGroups:
    equal = entries.low == entries.high
    alone = equal & (entries.channel < SET)
    signature = _signatures(entries.first, entries.channel, alone)
    kinds, kind_of, counts = np.unique(signature, return_inverse=True, return_counts=True)
    common = np.zeros(len(kinds), np.bool_)
    largest = np.argsort(-counts, kind="stable")[:GROUPS_MAX]
    common[largest] = counts[largest] >= GROUP_ENTRIES_MIN
    is_common = common[kind_of]
    frequency = _frequencies(entries, equal)
    frequency[equal & ~alone] += len(entries)  # others first
    keyed = _choose_keys(entries.first, equal, alone, is_common, frequency)
    groups: dict[tuple[int, ...], int] = {}
    of_key: dict[int, int] = {}
    key_kind = _signatures(entries.first, entries.channel, keyed)
    key_kinds, example, key_kind_of = np.unique(key_kind, return_index=True, return_inverse=True)
    for index, entry in enumerate(example):
        part = slice(entries.first[entry], entries.first[entry + 1])
        channels = tuple(int(each) for each in entries.channel[part][keyed[part]])
        of_key[index] = groups.setdefault(channels, len(groups))
    table = np.array([of_key[index] for index in range(len(key_kinds))], np.int32)
    of = table[key_kind_of] if len(table) else np.zeros(0, np.int32)
    return _KeyGroups(of, keyed, list(groups))


@kernel
def _signatures(first: I32, channel: I32, chosen: Bools) -> U64:
    """For each entry a number that stands for the set of channels of its chosen constraints."""
    result = np.zeros(len(first) - 1, np.uint64)
    for entry in range(len(result)):
        for index in range(first[entry], first[entry + 1]):
            if chosen[index]:
                result[entry] += mix(np.uint64(channel[index] + 1))
    return result


def _frequencies(entries: Entries, equal: Bools) -> I64:
    """For each equality, how many there are with the same channel and value."""
    values = (entries.low[equal] + 0.0).view(np.uint64)
    scattered = values * GOLDEN + entries.channel[equal].astype(np.uint64)
    _, kind_of, counts = np.unique(scattered, return_inverse=True, return_counts=True)
    result = np.zeros(len(equal), np.int64)
    result[equal] = counts[kind_of] if len(counts) else 0
    return result


@kernel
def _choose_keys(first: I32, equal: Bools, alone: Bools, is_common: Bools, frequency: I64) -> Bools:
    keyed = np.zeros(len(equal), np.bool_)
    for entry in range(len(first) - 1):
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


@kernel
def _key_hashes(first: I32, low: F64, keyed: Bools, salts: U64) -> U64:
    """The hash of each entry's key; as ``match_events`` computes it from an event."""
    bits = (low + 0.0).view(np.uint64)  # of the two zeros, events have the positive one
    result = salts.copy()
    for entry in range(len(result)):
        for index in range(first[entry], first[entry + 1]):
            if keyed[index]:
                result[entry] = mix(result[entry] ^ bits[index]) + GOLDEN
    return result


@kernel
def _same_key(first: I32, low: F64, keyed: Bools, groups: I32, a: int, b: int) -> bool:
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


@kernel
def _runs_differ(first: I32, low: F64, keyed: Bools, groups: I32, order: I64, hashes: U64) -> bool:
    """Whether two neighbours in the order have one hash and different keys."""
    for index in range(1, len(order)):
        a, b = order[index - 1], order[index]
        if hashes[a] == hashes[b] and not _same_key(first, low, keyed, groups, a, b):
            return True
    return False


def lay_out(entries: Entries, program: I32) -> Part:
    """A part with these entries."""
    groups = _choose_groups(entries)
    seed = 0
    while True:
        seed += 1
        salts = _salts(seed, len(groups.channels))
        hashes = _key_hashes(entries.first, entries.low, groups.keyed, salts[groups.of])
        order = np.argsort(hashes, kind="stable")
        if not _runs_differ(entries.first, entries.low, groups.keyed, groups.of, order, hashes):
            break
    in_order = hashes[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    if not len(order):
        starts = np.zeros(0, np.int64)
    segment_first = np.concatenate([starts, [len(order)]]).astype(np.int32)
    maps = Bitmaps()
    rest_first, rest = _without_keys(entries.first, groups.keyed)
    for segment in range(len(starts)):
        begin, end = int(segment_first[segment]), int(segment_first[segment + 1])
        if end - begin >= BITMAP_ENTRIES_MIN:
            members = order[begin:end]
            first, source = _permuted(members, rest_first, rest)
            owner = np.repeat(np.arange(len(members)), np.diff(first))
            order[begin:end] = members[
                maps.add_segment(
                    len(members),
                    owner,
                    entries.channel[source],
                    entries.low[source],
                    entries.high[source],
                )
            ]
        else:
            maps.add_empty()
    first, source = _permuted(order, rest_first, rest)
    looseness = _looseness(entries.channel, entries.low, entries.high)
    _most_selective_first(first, source, looseness)
    motion_first, motion_source = _permuted(
        order, entries.motion_first, np.arange(len(entries.motion))
    )
    heads = order[starts] if len(starts) else np.zeros(0, np.int64)
    key_first, key_source = _permuted(heads, *_only_keys(entries.first, groups.keyed))
    slot_hash, slot_segment = _hash_table(hashes[heads])
    return Part(
        entry=entry_numbers(entries.subscription[order], entries.flags[order], first, motion_first),
        **_probes(first, entries.channel[source], entries.low[source], entries.high[source]),
        bound=_bounds(entries.low[source], entries.high[source], entries.channel[source]),
        group_first=offsets(np.array([len(each) for each in groups.channels], np.int64)),
        group_channel=np.array([c for each in groups.channels for c in each], np.int32),
        group_salt=salts,
        slot_hash=slot_hash,
        slot_segment=slot_segment,
        segment_first=segment_first,
        segment_group=groups.of[heads],
        segment_key=key_first[:-1],
        key_value=entries.low[key_source],
        **maps.arrays(),
        motion=entries.motion[motion_source],
        program=program,
    )


def _bounds(low: F64, high: F64, channel: I32) -> F64:
    bound = np.empty((len(low), 3))
    bound[:, 0], bound[:, 1] = low, high
    bound.view(np.int64)[:, 2] = channel
    return bound.ravel()


def _probes(first: I32, channel: I32, low: F64, high: F64) -> dict[str, Any]:
    """What the first constraints of each entry ask, in short."""
    channels = np.zeros((len(first) - 1, PROBES), np.int32)
    bounds = np.full((len(first) - 1, PROBES, 2), np.nan, np.float32)
    for probe in range(PROBES):
        some = np.flatnonzero(np.diff(first) > probe)
        index = first[some] + probe
        plain = (channel[index] < SET) & ~(low[index] > high[index])
        channels[some[plain], probe] = channel[index[plain]]
        bounds[some[plain], probe] = _rounded_away(low[index[plain]], high[index[plain]])
    return {"probe_channel": channels.ravel(), "probe": bounds.ravel()}


@kernel
def _rounded_away(low: F64, high: F64) -> F32:
    """Bounds as floats of 32 bits."""
    result = np.empty((len(low), 2), np.float32)
    for index in range(len(low)):
        result[index, 0], result[index, 1] = as_probe(low[index], high[index])
    return result


def _salts(seed: int, count: int) -> U64:
    return _scatter(np.arange(count, dtype=np.uint64) + np.uint64(seed * 1_000_003))


@kernel
def _scatter(values: U64) -> U64:
    result = np.empty_like(values)
    for index in range(len(values)):
        result[index] = mix(values[index] + np.uint64(0x632BE59BD9B4E019))
    return result


def _without_keys(first: I32, keyed: Bools) -> tuple[I32, I64]:
    """Compressed rows of the indexes of all constraints that are not part of a key."""
    return _chosen(first, ~keyed)


def _only_keys(first: I32, keyed: Bools) -> tuple[I32, I64]:
    return _chosen(first, keyed)


def _chosen(first: I32, chosen: Bools) -> tuple[I32, I64]:
    running = np.concatenate([[0], np.cumsum(chosen)]).astype(np.int32)
    return running[first], np.flatnonzero(chosen)


def _permuted(order: I64, first: I32, source: I64) -> tuple[I32, I64]:
    """Compressed rows in another order."""
    lengths = np.diff(first)[order]
    begins = offsets(lengths)
    return begins, _gather(order, first, source, begins)


@kernel
def _gather(order: I64, first: I32, source: I64, offsets: I32) -> I64:
    result = np.empty(offsets[-1], np.int64)
    for index in range(len(order)):
        begin = first[order[index]]
        for step in range(offsets[index + 1] - offsets[index]):
            result[offsets[index] + step] = source[begin + step]
    return result


def _looseness(channel: I32, low: F64, high: F64) -> F64:
    """For each constraint, about how much of its channel it lets pass."""
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
    return np.where(low == high, 0.0, np.where((low <= high) & (share < 1.0), share, 1.0))


@kernel
def _most_selective_first(first: I32, source: I64, looseness: F64) -> None:
    """Order the constraints of each entry: those first that let the least pass."""
    for entry in range(len(first) - 1):
        for index in range(first[entry] + 1, first[entry + 1]):
            moved = source[index]
            at = index
            while at > first[entry] and looseness[source[at - 1]] > looseness[moved]:
                source[at] = source[at - 1]
                at -= 1
            source[at] = moved


def _hash_table(hashes: U64) -> tuple[U64, I32]:
    """An open hash table of segments, at most half full."""
    size = 1 << max(3, int(2 * len(hashes)).bit_length())
    slot_hash = np.zeros(size, np.uint64)
    slot_segment = np.full(size, EMPTY_SLOT, np.int32)
    _fill_table(hashes, slot_hash, slot_segment)
    return slot_hash, slot_segment


@kernel
def _fill_table(hashes: U64, slot_hash: U64, slot_segment: I32) -> None:
    mask = np.uint64(len(slot_hash) - 1)
    for segment in range(len(hashes)):
        slot = hashes[segment] & mask
        while slot_segment[slot] != EMPTY_SLOT:
            slot = (slot + np.uint64(1)) & mask
        slot_hash[slot] = hashes[segment]
        slot_segment[slot] = segment


def flat(entries: Entries, program: I32) -> Part:
    """A part whose entries are checked one by one: quick to make, for a few new entries."""
    no_i32, no_f64 = np.zeros(0, np.int32), np.zeros(0)
    salts = _salts(1, 1)
    slot_hash, slot_segment = _hash_table(salts)
    return Part(
        entry=entry_numbers(
            entries.subscription, entries.flags, entries.first, entries.motion_first
        ),
        **_probes(entries.first, entries.channel, entries.low, entries.high),
        bound=_bounds(entries.low, entries.high, entries.channel),
        group_first=np.zeros(2, np.int32),
        group_channel=no_i32,
        group_salt=salts,
        slot_hash=slot_hash,
        slot_segment=slot_segment,
        segment_first=np.array([0, len(entries)], np.int32),
        segment_group=np.zeros(1, np.int32),
        segment_key=np.zeros(1, np.int32),
        key_value=no_f64,
        segment_dense=np.zeros(1, np.uint8),
        map_first=np.zeros(2, np.int32),
        map_channel=no_i32,
        map_cells=no_i32,
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


def take_out(part: Part) -> Entries:
    """The entries of a part that are not gone, to be laid out anew."""
    kept = np.flatnonzero((part.flags & GONE) == 0)
    segment = np.searchsorted(part.segment_first, kept, side="right") - 1
    group = part.segment_group[segment]
    keys = np.diff(part.group_first)[group]
    first = offsets(np.diff(part.first)[kept] + keys)
    channel = np.empty(first[-1], np.int32)
    low, high = np.empty(first[-1]), np.empty(first[-1])
    _put_back_keys(
        kept, first, channel, low, high, part.first, part.bound, part.bound.view(np.int64),
        part.group_first[group], part.group_channel, part.segment_key[segment], part.key_value,
        keys,
    )  # fmt: skip
    motion_first, source = _permuted(kept, part.motion_first, np.arange(len(part.motion)))
    return Entries(
        subscription=part.subscription[kept],
        flags=part.flags[kept].astype(np.uint8),
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
    bound_channel: I64, group_at: I32, group_channel: I32, key_at: I32, key_value: F64,
    keys: I64,
) -> None:  # fmt: skip
    """Write each kept entry's constraints and those of its key, by ascending channel."""
    for index in range(len(kept)):
        at = first[index]
        for step in range(keys[index]):
            value = key_value[key_at[index] + step]
            at = _insert(first[index], at, channel, low, high,
                         group_channel[group_at[index] + step], value, value)  # fmt: skip
        for constraint in range(part_first[kept[index]], part_first[kept[index] + 1]):
            at = _insert(first[index], at, channel, low, high,
                         bound_channel[3 * constraint + 2] & CHANNEL_MASK,
                         bound[3 * constraint], bound[3 * constraint + 1])  # fmt: skip


@kernel
def _insert(
    begin: int, end: int, channel: I32, low: F64, high: F64, new: int, new_low: float,
    new_high: float,
) -> int:  # fmt: skip
    at = end
    while at > begin and channel[at - 1] > new:
        channel[at], low[at], high[at] = channel[at - 1], low[at - 1], high[at - 1]
        at -= 1
    channel[at], low[at], high[at] = new, new_low, new_high
    return end + 1
