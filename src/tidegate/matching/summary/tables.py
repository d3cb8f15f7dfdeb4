"""The tables of a summary as flat arrays: what is merged, and what travels between brokers.

Rules. (1) A summary may say yes too often, never no wrongly: a row is at least as wide as the
constraints that it stands for. (2) `check_tables` states every invariant; whoever makes tables from
something that is not trusted calls it.

Theory of operation ("Subscription Summarization", 3.1 to 3.3). An *entry* is one conjunct of a
subscription: a disjunction has several entries, each with a local number of its own. Its id is the
concatenation of the owner (c1), the local number (c2) and a mask of the attributes that it names
(c3). For each attribute the ids are listed at the rows of a table: disjoint ranges of numbers (the
paper's AACS) or general string constraints (SACS). An event satisfies an attribute for an entry if
the entry is a member of a row, in some table of that attribute, in which the value lies. It matches
the entry if all attributes of its mask are satisfied. An entry with an empty mask matches every
event; one with an attribute for which it is in no row matches none.

Numbers. Rows are closed intervals of float64. A value of an event is first rounded to the nearest
float64 (timestamps: microseconds since 1970; booleans: 0 and 1). Rounding is monotone, so a closed
bound that is rounded outward stays right also for integers beyond 2**53. An open bound is the next
float64 (`nextafter`), but only where no other value rounds to the bound: from 2**53 on it must be
kept closed. So what lies in a row is a set of float64, and cutting a row in two neighbouring ones
loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tidegate.errors import SummaryError
from tidegate.language.values import Value, to_us
from tidegate.matching.arrays import F64, I32, I64, U64, Bools

WORD_BITS = 64


class ChannelKind(IntEnum):
    """As what kind of value a table sees its attribute."""

    NUMBER = 0
    TIMESTAMP = 1
    BOOLEAN = 2
    STRING = 3


class RowKind(IntEnum):
    """The general constraints of a string row, and their parts.

    ANY has no parts: every string. EQUAL, PREFIX, SUFFIX and CONTAINS have one. LIKE has the pieces
    between the `%` of a pattern, which may be empty; the first is at the start and the last at the
    end. A pattern with `_` is widened to `%`.
    """

    ANY = 0
    EQUAL = 1
    PREFIX = 2
    SUFFIX = 3
    CONTAINS = 4
    LIKE = 5


class RowPattern(NamedTuple):
    """A general string constraint.

    >>> RowPattern(RowKind.LIKE, ("N", "SE")).fits("NYSE")
    True
    """

    kind: RowKind
    parts: tuple[str, ...]

    def fits(self, text: str) -> bool:
        """Whether a text satisfies the constraint."""
        match self.kind:
            case RowKind.ANY:
                return True
            case RowKind.EQUAL:
                return text == self.parts[0]
            case RowKind.PREFIX:
                return text.startswith(self.parts[0])
            case RowKind.SUFFIX:
                return text.endswith(self.parts[0])
            case RowKind.CONTAINS:
                return self.parts[0] in text
            case RowKind.LIKE:
                return _fits_pieces(self.parts, text)


@dataclass(frozen=True, slots=True, eq=False)
class RangeTable:
    """The AACS of one attribute seen as one kind: numbers, timestamps or booleans.

    Row r is ``lows[r] <= value <= highs[r]``; rows are disjoint and ascending; an equality is a row
    with ``low == high``. Its members are ``members[starts[r]:starts[r + 1]]``, indexes of entries
    in ascending order, at least one.
    """

    attribute: str
    kind: ChannelKind
    lows: F64
    highs: F64
    starts: I64
    members: I32

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False)
class StringTable:
    """The SACS of one attribute: rows in ascending order of (kind, parts), members as above.

    An entry may be a member of several rows: those of an `in` list.
    """

    attribute: str
    patterns: tuple[RowPattern, ...]
    starts: I64
    members: I32

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    __hash__ = None  # type: ignore[assignment]


AnyTable = RangeTable | StringTable


@dataclass(frozen=True, slots=True, eq=False)
class SummaryTables:
    """The summary of one or more brokers.

    ``owners`` are names of brokers and ``attributes`` names of attributes, both ascending. Entries
    are ascending by (owner, number): ``entry_owners`` has indexes of ``owners`` (c1),
    ``entry_numbers`` the local numbers (c2), and ``entry_masks`` (c3) has the shape (entries,
    words), where bit ``i % 64`` of word ``i // 64`` stands for ``attributes[i]``. Range tables are
    ascending by (attribute, kind), string tables by attribute.
    """

    owners: tuple[str, ...]
    attributes: tuple[str, ...]
    entry_owners: I32
    entry_numbers: I64
    entry_masks: U64
    ranges: tuple[RangeTable, ...]
    strings: tuple[StringTable, ...]

    @property
    def all_tables(self) -> tuple[AnyTable, ...]:
        """The range tables and the string tables."""
        return (*self.ranges, *self.strings)

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    __hash__ = None  # type: ignore[assignment]


def mask_words(attribute_count: int) -> int:
    """How many words a mask of that many attributes has, at least one."""
    return max(1, -(-attribute_count // WORD_BITS))


NO_ENTRIES = SummaryTables(
    owners=(),
    attributes=(),
    entry_owners=np.zeros(0, np.int32),
    entry_numbers=np.zeros(0, np.int64),
    entry_masks=np.zeros((0, mask_words(0)), np.uint64),
    ranges=(),
    strings=(),
)
"""The summary of nobody."""


def has_attribute(masks: U64, index: int) -> Bools:
    """For each mask, whether it has the attribute with that index."""
    bit = np.uint64(1) << np.uint64(index % WORD_BITS)
    has: Bools = (masks[:, index // WORD_BITS] & bit) != 0
    return has


def matches(tables: SummaryTables, attributes: Mapping[str, Value]) -> list[int]:
    """The indexes of the entries that an event matches, in ascending order.

    Slow and obvious, because everything faster is tested against it.

    >>> matches(NO_ENTRIES, {"x": 1})
    []
    """
    satisfied: dict[str, set[int]] = {name: set() for name in tables.attributes}
    for ranges in tables.ranges:
        value = channel_value(attributes.get(ranges.attribute), ranges.kind)
        for row, (low, high) in enumerate(zip(ranges.lows, ranges.highs, strict=True)):
            if value is not None and low <= value <= high:
                satisfied[ranges.attribute].update(_members(ranges, row))
    for strings in tables.strings:
        text = attributes.get(strings.attribute)
        for row, pattern in enumerate(strings.patterns):
            if isinstance(text, str) and pattern.fits(text):
                satisfied[strings.attribute].update(_members(strings, row))
    return [
        entry
        for entry in range(len(tables.entry_owners))
        if all(entry in satisfied[name] for name in attributes_of(tables, entry))
    ]


def attributes_of(tables: SummaryTables, entry: int) -> tuple[str, ...]:
    """The names in the mask of an entry."""
    words = [int(word) for word in tables.entry_masks[entry]]
    return tuple(
        name
        for i, name in enumerate(tables.attributes)
        if words[i // WORD_BITS] >> (i % WORD_BITS) & 1
    )


def channel_value(value: Value | None, kind: ChannelKind) -> float | None:
    """The float64 of a value in a range table of that kind; None if it is of another kind.

    >>> channel_value(True, ChannelKind.NUMBER), channel_value(2**53 + 1, ChannelKind.NUMBER)
    (None, 9007199254740992.0)
    """
    if kind is ChannelKind.BOOLEAN:
        return float(value) if isinstance(value, bool) else None
    if kind is ChannelKind.TIMESTAMP:
        return float(to_us(value)) if isinstance(value, datetime) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    return float(value) if is_number else None  # type: ignore[arg-type]


def check_tables(tables: SummaryTables) -> None:
    """Raise SummaryError unless every invariant holds.

    >>> from dataclasses import replace
    >>> check_tables(replace(NO_ENTRIES, owners=("b", "a")))
    Traceback (most recent call last):
    tidegate.errors.SummaryError: the owners are not in ascending order, or one is listed twice
    """
    _check_names(tables.owners, "owner")
    _check_names(tables.attributes, "attribute")
    _check_entries(tables)
    indexes = {name: i for i, name in enumerate(tables.attributes)}
    _check(_ascend((t.attribute, t.kind) for t in tables.ranges), "the range tables", _UNSORTED)
    _check(_ascend(t.attribute for t in tables.strings), "the string tables", _UNSORTED)
    for table in tables.all_tables:
        what = f"the table of attribute {table.attribute!r}"
        _check(table.attribute in indexes, what, "is not of an attribute of the summary")
        if isinstance(table, RangeTable):
            _check_bounds(table, what)
        else:
            _check_patterns(table, what)
        _check_members(table, tables.entry_masks, indexes[table.attribute], what)


_UNSORTED = "are not in ascending order, or one is listed twice"

_PARTS = {RowKind.ANY: range(1), RowKind.LIKE: range(1, 2**31)}
"""How many parts a pattern has; the kinds that are not listed have one."""


def _check(holds: bool | np.bool_, what: str, complaint: str) -> None:
    if not holds:
        raise SummaryError(f"{what} {complaint}")


def _ascend(keys: Iterable[object]) -> bool:
    listed: list[object] = list(keys)
    return all(a < b for a, b in pairwise(listed))  # type: ignore[operator]


def _check_names(names: tuple[str, ...], noun: str) -> None:
    _check(all(names), f"the name of an {noun}", "is empty")
    _check(all(map(_is_unicode, names)), f"the name of an {noun}", "is not valid Unicode")
    _check(_ascend(names), f"the {noun}s", _UNSORTED)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_entries(tables: SummaryTables) -> None:
    owners, numbers, masks = tables.entry_owners, tables.entry_numbers, tables.entry_masks
    typed = owners.dtype == np.int32 and numbers.dtype == np.int64 and masks.dtype == np.uint64
    _check(typed, "an array of entries", "is of another type")
    shape = (len(owners), mask_words(len(tables.attributes)))
    _check(masks.shape == shape, "the masks", f"have the shape {masks.shape}, not {shape}")
    _check(owners.ndim == 1 and numbers.shape == owners.shape, "the entries", "differ in number")
    _check(np.all((owners >= 0) & (owners < len(tables.owners))), "an entry", "has no such owner")
    _check(np.all(numbers >= 0), "a local number", "is negative")
    later = (owners[1:] > owners[:-1]) | (
        (owners[1:] == owners[:-1]) & (numbers[1:] > numbers[:-1])
    )
    _check(np.all(later), "the entries", _UNSORTED)
    unused = shape[1] * WORD_BITS - len(tables.attributes)
    if unused:
        spare = masks[:, -1] >> np.uint64(WORD_BITS - unused) if unused < WORD_BITS else masks
        _check(not np.any(spare), "a mask", "has the bit of no attribute")


def _check_bounds(table: RangeTable, what: str) -> None:
    lows, highs = table.lows, table.highs
    _check(table.kind in tuple(ChannelKind)[:3], what, "is a range table of strings")
    _check(lows.dtype == highs.dtype == np.float64, what, "has bounds that are not float64")
    _check(lows.ndim == 1 and lows.shape == highs.shape, what, "lacks the bound of a row")
    _check(len(table.starts) == len(lows) + 1, what, "lacks the start of a row")
    # Comparisons with NaN are false, so these refuse it too.
    _check(np.all(lows <= highs), what, "has a row that ends before it starts, or NaN")
    _check(np.all(highs[:-1] < lows[1:]), what, "has rows that overlap or are not ascending")
    if table.kind is ChannelKind.BOOLEAN:
        bounds = np.concatenate((lows, highs))
        _check(np.all((bounds == 0) | (bounds == 1)), what, "has a bound that is no boolean")


def _check_patterns(table: StringTable, what: str) -> None:
    for kind, count in {(kind, len(parts)) for kind, parts in table.patterns}:
        allowed = count in _PARTS.get(kind, range(1, 2))
        _check(allowed, what, f"has a row {kind.name} of {count} parts")
    texts = "".join(part for _, parts in table.patterns for part in parts)
    _check(_is_unicode(texts), what, "has a text that is not valid Unicode")
    _check(_ascend(table.patterns), what, "has rows that are not ascending, or one twice")
    _check(len(table.starts) == len(table.patterns) + 1, what, "lacks the start of a row")


def _check_members(table: AnyTable, masks: U64, index: int, what: str) -> None:
    starts, members = table.starts, table.members
    typed = starts.dtype == np.int64 and members.dtype == np.int32
    _check(typed, what, "has starts or members of another type")
    _check(len(starts) > 1, what, "has no rows")
    _check(starts[0] == 0 and starts[-1] == len(members), what, "has starts beside its members")
    _check(np.all(starts[1:] > starts[:-1]), what, "has a row without members")
    _check(np.all((members >= 0) & (members < len(masks))), what, "has a member that is no entry")
    ascend = np.diff(members) > 0
    ascend[starts[1:-1] - 1] = True
    _check(np.all(ascend), what, "has a row whose members are not ascending")
    _check(np.all(has_attribute(masks, index)[members]), what, "has a member whose mask lacks it")


def _members(table: AnyTable, row: int) -> list[int]:
    members: list[int] = table.members[table.starts[row] : table.starts[row + 1]].tolist()
    return members


def _fits_pieces(pieces: tuple[str, ...], text: str) -> bool:
    """Whether a text has the pieces one after the other, the outer ones at its ends."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return text == first
    position, end = len(first), len(text) - len(last)
    if position > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for piece in pieces[1:-1]:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def _same(one: AnyTable | SummaryTables, other: object) -> bool:
    """Field by field; arrays are equal if their types and items are."""
    if type(other) is not type(one):
        return False
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or not np.array_equal(a, b):
                return False
        elif a != b:
            return False
    return True
