"""Generated tables of summaries: every form that is valid, and events aimed at their rows.

Tables are drawn as arrays and not made from filters, so that they also have what no filter makes:
rows of any members, masks of more than 64 attributes, entries that are in no row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import strategies as st

from tidegate.language.values import Value
from tidegate.matching.summary.tables import (
    ChannelKind,
    RangeTable,
    RowKind,
    RowPattern,
    StringTable,
    SummaryTables,
    has_attribute,
    mask_words,
)

OWNERS = ["b", "ba", "a", "é", "broker-10", "broker-9"]
NAMES = ["price", "symbol", "größe", "c.d"]
MANY_NAMES = [f"x{i:03}" for i in range(130)]

EDGE_BOUNDS = [
    0.0, 1.0, -1.0, 8.3, 8.7, 130000.0, math.nextafter(8.3, math.inf), math.nextafter(8.7, 0),
    5e-324, -5e-324, 1e300, float(2**53), -float(2**60), math.inf, -math.inf, 0.1 + 0.2,
]  # fmt: skip
bounds = st.sampled_from(EDGE_BOUNDS) | st.integers(-20, 20).map(float)
bounds = bounds | st.integers(-300, 300).map(lambda n: n / 100) | st.floats(allow_nan=False)
texts = st.sampled_from(["", "a", "ab", "abc", "abd", "é", "ê", "\U0010ffff", "\0"])
texts = texts | st.text("ab", max_size=5)

BOOLEAN_ROWS = [[(0.0, 0.0)], [(1.0, 1.0)], [(0.0, 1.0)], [(0.0, 0.0), (1.0, 1.0)]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def summary_tables(owners: Sequence[str] = OWNERS) -> st.SearchStrategy[SummaryTables]:
    """Valid tables with some of these owners."""
    return _summary_tables(tuple(owners))


@st.composite
def _summary_tables(draw: st.DrawFn, pool: tuple[str, ...]) -> SummaryTables:
    owners = sorted(draw(st.sets(st.sampled_from(pool), max_size=3)))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    attributes = sorted(names + draw(st.sampled_from([[], [], MANY_NAMES[:62], MANY_NAMES])))
    ids = draw(st.sets(st.tuples(st.sampled_from(owners), _numbers), max_size=8) if owners else _NO)
    entries = sorted(ids)
    masks = np.zeros((len(entries), mask_words(len(attributes))), np.uint64)
    for mask in masks if attributes else ():
        for i in draw(st.sets(st.integers(0, len(attributes) - 1), max_size=4)):
            mask[i // 64] |= np.uint64(1 << (i % 64))
    used = [(i, name) for i, name in enumerate(attributes) if np.any(has_attribute(masks, i))]
    ranges, strings = [], []
    for i, name in used:
        participants = np.flatnonzero(has_attribute(masks, i)).tolist()
        for kind in sorted(draw(st.sets(st.sampled_from(ChannelKind), max_size=2))):
            if kind is ChannelKind.STRING:
                table = draw(_string_table(name, participants))
                strings += [table] if table else []
            else:
                rows = draw(_range_table(name, kind, participants))
                ranges += [rows] if rows else []
    return SummaryTables(
        tuple(owners),
        tuple(attributes),
        np.array([owners.index(owner) for owner, _ in entries], np.int32),
        np.array([number for _, number in entries], np.int64),
        masks,
        tuple(ranges),
        tuple(strings),
    )


_numbers = st.integers(0, 9) | st.integers(0, 2**63 - 1)
_NO: st.SearchStrategy[set[tuple[str, int]]] = st.just(set())


@st.composite
def _range_table(
    draw: st.DrawFn, name: str, kind: ChannelKind, participants: list[int]
) -> RangeTable | None:
    if kind is ChannelKind.BOOLEAN:
        rows = draw(st.sampled_from(BOOLEAN_ROWS))
    else:
        rows = list(_disjoint(draw(st.lists(bounds, max_size=8)), draw(st.integers(0, 2**16))))
    members = draw(_members(len(rows), participants))
    kept = [row for row, each in enumerate(members) if each]
    starts = np.cumsum([0, *(len(members[row]) for row in kept)])
    return RangeTable(
        name,
        kind,
        np.array([rows[row][0] for row in kept], np.float64),
        np.array([rows[row][1] for row in kept], np.float64),
        starts,
        np.array([entry for row in kept for entry in sorted(members[row])], np.int32),
    ) if kept else None  # fmt: skip


def _disjoint(drawn: list[float], chance: int) -> Iterable[tuple[float, float]]:
    """Disjoint rows between the values: points, ranges, and neighbours that adjoin."""
    last = -math.inf
    values = sorted(set(drawn))
    while values:
        low = values.pop(0)
        if chance & 1 and values and last > -math.inf and math.nextafter(last, math.inf) < low:
            low = math.nextafter(last, math.inf)
        chance >>= 1
        high = values.pop(0) if chance & 1 and values else low
        chance >>= 1
        yield low, high
        last = high


@st.composite
def _string_table(draw: st.DrawFn, name: str, participants: list[int]) -> StringTable | None:
    patterns = sorted(draw(st.sets(row_patterns, max_size=6)))
    members = draw(_members(len(patterns), participants))
    kept = [row for row, each in enumerate(members) if each]
    return StringTable(
        name,
        tuple(patterns[row] for row in kept),
        np.cumsum([0, *(len(members[row]) for row in kept)]),
        np.array([entry for row in kept for entry in sorted(members[row])], np.int32),
    ) if kept else None  # fmt: skip


_one_part = st.sampled_from([RowKind.EQUAL, RowKind.PREFIX, RowKind.SUFFIX, RowKind.CONTAINS])
row_patterns: st.SearchStrategy[RowPattern] = st.one_of(
    st.just(RowPattern(RowKind.ANY, ())),
    st.builds(lambda kind, text: RowPattern(kind, (text,)), _one_part, texts),
    st.lists(texts, min_size=1, max_size=4).map(lambda p: RowPattern(RowKind.LIKE, tuple(p))),
)


@st.composite
def _members(draw: st.DrawFn, row_count: int, participants: list[int]) -> list[set[int]]:
    """For each row its members: for each participant some runs of rows, often wide ones."""
    members: list[set[int]] = [set() for _ in range(row_count)]
    runs = st.tuples(st.integers(0, row_count), st.integers(0, row_count))
    for entry in participants:
        for first, last in draw(st.lists(runs, max_size=2)):
            for each in members[first : last + 1]:
                each.add(entry)
    return members


def aimed_events(*tables: SummaryTables) -> st.SearchStrategy[dict[str, Value]]:
    """Events whose values are bounds of the rows, next to them, or made of their texts."""
    pools: dict[str, list[Value]] = {}
    for each in tables:
        for ranges in each.ranges:
            pool = pools.setdefault(ranges.attribute, [])
            for bound in (*ranges.lows.tolist(), *ranges.highs.tolist()):
                pool += _values_near(bound, ranges.kind)
        for strings in each.strings:
            pool = pools.setdefault(strings.attribute, [])
            for pattern in strings.patterns:
                pool += ["".join(pattern.parts), "a".join(["", *pattern.parts, ""])]
    optional = {name: st.sampled_from([True, 0, "x", *pool]) for name, pool in pools.items()}
    return st.fixed_dictionaries({}, optional=optional)


def _values_near(bound: float, kind: ChannelKind) -> list[Value]:
    near = [bound, math.nextafter(bound, math.inf), math.nextafter(bound, -math.inf)]
    match kind:
        case ChannelKind.BOOLEAN:
            return [bool(bound)]
        case ChannelKind.TIMESTAMP:
            whole = [int(max(-6e16, min(2e17, each))) for each in near]
            return [EPOCH + timedelta(microseconds=us + step) for us in whole for step in (0, 1)]
        case _:
            large = [int(each) + 1 for each in near if 2**53 <= abs(each) < 2**62]
            return [*near, *large]
