"""Entries as tests write them, and generated ones: bounds of all forms, sets, keys, flags."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tidegate.matching.columnar.kernels.layout import LayoutSizes
from tidegate.matching.columnar.kernels.part import Part
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import DEAD, GONE, SET, SHARED, VERIFY

NO_PROGRAM = np.zeros(1, np.int32)
NEVER = (math.nan, math.nan)
"""The bounds of a constraint that nothing satisfies."""
ANY = (-math.inf, math.inf)

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Entry:
    """An entry as a test writes it; its subscription is its place in the list."""

    constraints: dict[int, list[Bounds]]
    flags: int = 0
    motion: tuple[float, ...] = ()


def one(**constraints: Bounds | float) -> Entry:
    """An entry with constraints on channels `c0`, `c1` and so on; a number is an equality."""
    return Entry(
        {
            int(name[1:]): [bounds if isinstance(bounds, tuple) else (bounds, bounds)]
            for name, bounds in constraints.items()
        }
    )


def entries_of(listed: list[Entry]) -> Entries:
    rows = [
        [(channel, *bounds) for channel in sorted(asked) for bounds in asked[channel]]
        for asked in (each.constraints for each in listed)
    ]
    flat_rows = np.array([row for entry in rows for row in entry]).reshape(-1, 3)
    return Entries(
        subscription=np.arange(len(listed), dtype=np.int32),
        flags=np.array([each.flags for each in listed], np.uint8),
        first=offsets(np.array([len(row) for row in rows], np.int64)),
        channel=flat_rows[:, 0].astype(np.int32),
        low=flat_rows[:, 1].copy(),
        high=flat_rows[:, 2].copy(),
        motion_first=offsets(np.array([len(each.motion) for each in listed], np.int64)),
        motion=np.array([word for each in listed for word in each.motion]),
    )


def listed_of(entries: Entries) -> dict[int, str]:
    """Entries by subscription, as texts, because NaN is not equal to NaN."""
    found: dict[int, str] = {}
    for index, number in enumerate(entries.subscription.tolist()):
        part = slice(entries.first[index], entries.first[index + 1])
        rows = zip(
            entries.channel[part].tolist(),
            entries.low[part].tolist(),
            entries.high[part].tolist(),
            strict=True,
        )
        motion = entries.motion[entries.motion_first[index] : entries.motion_first[index + 1]]
        found[number] = repr((entries.flags[index].item(), sorted(rows, key=repr), motion.tolist()))
    return found


SMALL_SIZES = LayoutSizes(groups_max=3, group_entries_min=2, bitmap_entries_min=2)
"""With these a few entries already make groups and have bitmaps."""

CHANNELS = 4
OF_SETS = CHANNELS | SET
"""A channel in which an event has one of these sets, by number."""
SETS = [[], [0.0], [2.0], [0.0, 1.0, 2.0]]
# some of which are no floats of 32 bits
VALUES = [-math.inf, -1e300, -2.0, -1.0, 0.0, 1e-300, 0.1, 1.0, 1.5, 2.0, 2.0**24 + 1, math.inf]

numbers = st.sampled_from(VALUES)
equalities = st.sampled_from([0.0, 1.0, 2.0]).map(lambda x: (x, x))
ranges = st.tuples(numbers, numbers)  # those that are the wrong way round are the outside
bounds = equalities | ranges | st.just(NEVER) | st.just(ANY)
members = st.sampled_from([0.0, 1.0, 2.0]).flatmap(
    lambda x: st.sampled_from([(x, x), (x + 1, x - 1)])
)


def some(bounds: st.SearchStrategy[Bounds]) -> st.SearchStrategy[list[Bounds]]:
    """One constraint, or two on one channel."""
    return bounds.map(lambda each: [each]) | st.tuples(bounds, bounds).map(list)


constraints = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(range(CHANNELS), some(bounds)), OF_SETS: some(members)}
)
flags = st.sampled_from([0, 0, 0, VERIFY, SHARED, DEAD, DEAD | VERIFY, GONE])
motions = st.just(()) | st.lists(numbers | st.just(math.nan), max_size=4).map(tuple)
entry_lists = st.lists(st.builds(Entry, constraints, flags, motions), max_size=15)


def keys_of(part: Part) -> dict[int, dict[int, float]]:
    """The key of the cluster of each subscription: values by channel."""
    found: dict[int, dict[int, float]] = {}
    for cluster in range(len(part.cluster_group)):
        group = part.cluster_group[cluster]
        channels = part.group_channel[part.group_first[group] : part.group_first[group + 1]]
        at = part.cluster_key[cluster]
        values = part.key_value[at : at + len(channels)]
        key = dict(zip(channels.tolist(), values.tolist(), strict=True))
        members = slice(part.cluster_first[cluster], part.cluster_first[cluster + 1])
        found |= dict.fromkeys(part.subscription[members].tolist(), key)
    return found
