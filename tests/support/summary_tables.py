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
    filled = [(*rows[row], sorted(members[row])) for row in kept]
    return range_table(name, kind, *filled) if kept else None


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
    filled = [(patterns[row], sorted(members[row])) for row in kept]
    return string_table(name, *filled) if kept else None


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


def range_table(
    name: str, kind: ChannelKind, *rows: tuple[float, float, Sequence[int]]
) -> RangeTable:
    """A table of rows with a low, a high and members."""
    return RangeTable(
        name,
        kind,
        np.array([low for low, _, _ in rows], np.float64),
        np.array([high for _, high, _ in rows], np.float64),
        np.cumsum([0, *(len(members) for _, _, members in rows)]),
        np.array([entry for _, _, members in rows for entry in members], np.int32),
    )


def string_table(name: str, *rows: tuple[RowPattern, Sequence[int]]) -> StringTable:
    """A table of rows with a pattern and members."""
    return StringTable(
        name,
        tuple(pattern for pattern, _ in rows),
        np.cumsum([0, *(len(members) for _, members in rows)]),
        np.array([entry for _, members in rows for entry in members], np.int32),
    )


def paper_tables() -> SummaryTables:
    """The subscriptions of figure 3 of the paper, summarized as in figures 4 and 5."""
    return SummaryTables(
        ("A",),
        ("exchange", "low", "price", "symbol", "volume"),
        np.zeros(2, np.int32),
        np.array([1, 2]),
        np.array([[0b01101], [0b11110]], np.uint64),
        (
            range_table("low", ChannelKind.NUMBER, (-math.inf, math.nextafter(8.05, 0), [1])),
            range_table(
                "price",
                ChannelKind.NUMBER,
                (8.20, 8.20, [1]),
                (math.nextafter(8.30, 9), math.nextafter(8.70, 0), [0]),
            ),
            range_table(
                "volume", ChannelKind.NUMBER, (math.nextafter(130000, math.inf), math.inf, [1])
            ),
        ),
        (
            string_table("exchange", (RowPattern(RowKind.LIKE, ("N", "SE")), [0])),
            string_table("symbol", (RowPattern(RowKind.PREFIX, ("OT",)), [0, 1])),
        ),
    )


def varied_tables() -> SummaryTables:
    """Two owners with something of everything: kinds, forms of bounds, runs, pieces, wide masks."""
    names = ["at", "open", "price", "symbol", *MANY_NAMES[:66]]
    masks = np.zeros((5, 2), np.uint64)
    for entry, attributes in enumerate([[0, 2], [1, 2, 3], [2, 3, 69], [], [2, 3]]):
        for i in attributes:
            masks[entry, i // 64] |= np.uint64(1 << (i % 64))
    after = math.nextafter(9.5, 10)
    return SummaryTables(
        ("ann's", "größe"),
        tuple(names),
        np.array([0, 0, 0, 1, 1], np.int32),
        np.array([0, 1, 300, 7, 2**40]),
        masks,
        (
            range_table("at", ChannelKind.TIMESTAMP, (1.7e15, 1.7e15 + 1, [0])),
            range_table("open", ChannelKind.BOOLEAN, (0, 0, [1])),
            range_table(
                "price",
                ChannelKind.NUMBER,
                (-math.inf, -1.25, [0, 4]),
                (0, 9.5, [0, 1, 2]),
                (after, 10, [0, 2]),
                (31 / 3, 31 / 3, [4]),
                (11, math.nextafter(12, 0), [2]),
            ),
            range_table("x065", ChannelKind.NUMBER, (3, 3, [2])),
        ),
        (
            string_table(
                "symbol",
                (RowPattern(RowKind.ANY, ()), [1]),
                (RowPattern(RowKind.EQUAL, ("IBM",)), [2]),
                (RowPattern(RowKind.EQUAL, ("IBMX",)), [2]),
                (RowPattern(RowKind.PREFIX, ("Ü",)), [4]),
                (RowPattern(RowKind.SUFFIX, ("",)), [4]),
                (RowPattern(RowKind.CONTAINS, ("b",)), [4]),
                (RowPattern(RowKind.LIKE, ("a", "", "c")), [1, 2]),
            ),
        ),
    )
