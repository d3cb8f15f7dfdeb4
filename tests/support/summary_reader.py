"""A second reader of messages of summaries, written after docs/summaries.md alone.

It knows nothing of the code that it checks, has no arrays, checks nothing, and is slow.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

EntryId = tuple[str, int]
"""The owner and the number."""

Row = tuple[Any, set[EntryId]]
"""A (low, high) or a (kind, texts), and the members."""


@dataclass
class PlainSummary:
    """A summary in Python's own collections."""

    owners: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    entries: dict[EntryId, set[str]] = field(default_factory=dict)
    """The mask of each entry."""
    tables: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    """The rows of a table, by its attribute and kind."""


def read_message(data: bytes, old: PlainSummary) -> PlainSummary:
    """The summary of a message; ``old`` has to be empty for a full one."""
    source = _Source(data, 22 if data[5] else 6)
    new = _names_and_entries(source, old)
    masks = sorted(new.entries)
    for number in source.ascending():
        name, kind = new.attributes[number // 4], number % 4
        before = old.tables.get((name, kind), [])
        removed = set(source.ascending())
        kept = [row for i, (row, _) in enumerate(before) if i not in removed]
        added = _string_rows(source) if kind == 3 else _range_rows(source)
        rows = [(row, _predicted(row, kind, before) & new.entries.keys()) for row in kept + added]
        rows.sort(key=lambda row: row[0])
        _toggle(source, rows, [entry for entry in masks if name in new.entries[entry]])
        new.tables[name, kind] = rows
    assert source.position == len(data) - 4
    new.tables = {
        key: [(row, members & new.entries.keys()) for row, members in rows]
        for key, rows in new.tables.items()
        if rows
    }
    return new


def _names_and_entries(source: _Source, old: PlainSummary) -> PlainSummary:
    gone = [old.owners[i] for i in source.ascending()]
    owners = sorted({*old.owners, *source.texts()} - set(gone))
    lost = [old.attributes[i] for i in source.ascending()]
    attributes = sorted({*old.attributes, *source.texts()} - set(lost))
    ids = sorted(old.entries)
    removed = {ids[i] for i in source.ascending()}
    entries = {
        each: mask for each, mask in old.entries.items()
        if each not in removed and each[0] not in gone
    }  # fmt: skip
    adding, counts = [owners[i] for i in source.ascending()], source.numbers()
    firsts, gaps = source.numbers(), source.numbers()
    added: list[EntryId] = []
    for owner, count, number in zip(adding, counts, firsts, strict=True):
        added.append((owner, number))
        for _ in range(count - 1):
            added.append((owner, added[-1][1] + gaps.pop(0)))
    codes, sizes, masked = source.numbers(), source.numbers(), source.numbers()
    masks: list[set[str]] = []
    for each, code in zip(added, codes, strict=True):
        if code == 0:
            size = sizes.pop(0)
            masks.append({attributes[i] for i in masked[:size]})
            del masked[:size]
        entries[each] = masks[-1] if code == 0 else masks[-code]
    tables = {key: rows for key, rows in old.tables.items() if key[0] not in lost}
    return PlainSummary(owners, attributes, entries, tables)


def _range_rows(source: _Source) -> list[Any]:
    forms, scale = source.numbers(), source.number()
    values, decimals, floats = source.numbers(), source.ascending(), source.floats()
    rows: list[tuple[float, float]] = []

    def bound() -> float:
        form = values.pop(0)
        if form == 3:
            return floats.pop(0)
        decimal = decimals.pop(0) / 10.0**scale
        return [decimal, math.nextafter(decimal, math.inf), math.nextafter(decimal, -math.inf)][
            form
        ]

    for form in forms:
        low = math.nextafter(rows[-1][1], math.inf) if form & 2 else bound()
        rows.append((low, low if form & 1 else bound()))
    return rows


def _string_rows(source: _Source) -> list[Any]:
    kinds, pieces, texts = source.ascending(), source.numbers(), list(source.texts())
    rows = []
    for kind in kinds:
        count = {0: 0, 5: pieces[0] if kind == 5 else 0}.get(kind, 1)
        if kind == 5:
            del pieces[0]
        rows.append((kind, tuple(texts[:count])))
        del texts[:count]
    return rows


def _predicted(row: Any, kind: int, before: list[Row]) -> set[EntryId]:
    for other, members in before:
        if row == other if kind == 3 else other[0] <= row[0] <= other[1]:
            return set(members)
    return set()


def _toggle(source: _Source, rows: list[Row], participants: list[EntryId]) -> None:
    entries, counts = source.ascending(), source.numbers()
    gaps, lengths = source.numbers(), source.numbers()
    for entry, count in zip(entries, counts, strict=True):
        row = 0
        for _ in range(count):
            row += gaps.pop(0)
            for _ in range(lengths.pop(0)):
                rows[row][1].symmetric_difference_update({participants[entry]})
                row += 1


class _Source:
    """The codings of the page."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position

    def take(self, count: int) -> bytes:
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def column(self, count: int) -> list[int]:
        if count <= 1:
            return [self.number() for _ in range(count)]
        (width,) = self.take(1)
        if width == 64:
            return [self.number() for _ in range(count)]
        base = self.number()
        bits = int.from_bytes(self.take(math.ceil(count * width / 8)), "little")
        return [base + (bits >> i * width) % 2**width for i in range(count)]

    def numbers(self) -> list[int]:
        return self.column(self.number())

    def ascending(self) -> list[int]:
        count = self.number()
        if count == 0:
            return []
        zigzag = self.number()
        numbers = [-(zigzag + 1) // 2 if zigzag % 2 else zigzag // 2]
        for difference in self.column(count - 1):
            numbers.append(numbers[-1] + difference)
        return numbers

    def floats(self) -> list[float]:
        return [struct.unpack("<d", self.take(8))[0] for _ in range(self.number())]

    def texts(self) -> list[str]:
        count = self.number()
        shared, own = self.column(count), self.column(count)
        texts = [b""]
        for length, more in zip(shared, own, strict=True):
            texts.append(texts[-1][:length] + self.take(more))
        return [text.decode() for text in texts[1:]]
