"""Summaries as messages: in full, or as the difference from what the receiver holds.

Rules. (1) A message is used whole or refused whole. (2) Nothing in a message is believed: besides
the checks of `columns`, the tables that come out are those that `check_tables` accepts. (3) The
bytes of a full message are a function of its tables: one that `encode` would have written otherwise
is refused. So equal summaries have equal digests. (4) A difference is for one old summary, and
makes one new one: it has the digests of both. What the edits in between look like is the sender's
choice.

Theory of operation. A full message is the difference from `NO_ENTRIES`, so there is one way to
write and one way to read. It has the edits of names and entries (`entries`) and then those of each
table in which anything else changes (`table_edits`). `layout` has the bytes, docs/summaries.md a
description of them without the code.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from zlib import crc32

import numpy as np

from tidegate.errors import SummaryError
from tidegate.matching.arrays import I64
from tidegate.matching.summary.merging import GONE
from tidegate.matching.summary.tables import (
    NO_ENTRIES,
    AnyTable,
    ChannelKind,
    RangeTable,
    StringTable,
    SummaryTables,
    check_tables,
    has_attribute,
)
from tidegate.matching.summary.wire.columns import Allowance, Reader, WireLimits, Writer
from tidegate.matching.summary.wire.entries import edited_entries, moves, summary_edit
from tidegate.matching.summary.wire.layout import (
    CHECKSUM_BYTES,
    DIGEST_BYTES,
    KINDS,
    MAGIC,
    VERSION,
    Form,
    SummaryEdit,
)
from tidegate.matching.summary.wire.table_edits import (
    edited_table,
    kept_table,
    no_rows,
    table_edit,
)

_DEFAULT_LIMITS = WireLimits()

_HELD_FACTOR = 32
"""To apply a difference may take this many times the memory of the old tables."""


def encode(tables: SummaryTables) -> bytes:
    """The full message of some tables.

    >>> encode(NO_ENTRIES).hex()[:12]
    '5447534d0100'
    """
    check_tables(tables)
    return _full(tables)


def decode(data: bytes, limits: WireLimits = _DEFAULT_LIMITS) -> SummaryTables:
    """The tables of a full message; raises SummaryError."""
    reader = _opened(data, Form.FULL, Allowance(limits, len(data)))
    tables = _edited(NO_ENTRIES, reader)
    if _full(tables) != data:
        raise SummaryError("the bytes of a summary are not in the form in which they are sent")
    return tables


def digest(tables: SummaryTables) -> bytes:
    """What stands for these tables in a difference."""
    return blake2b(_full(tables), digest_size=DIGEST_BYTES).digest()


def encode_difference(old: SummaryTables, new: SummaryTables) -> bytes:
    """The message that a receiver which holds ``old`` needs to hold exactly ``new``."""
    check_tables(old)
    check_tables(new)
    return _sealed(Form.DIFFERENCE, digest(old) + digest(new), old, new)


def apply_difference(
    old: SummaryTables, data: bytes, limits: WireLimits = _DEFAULT_LIMITS
) -> SummaryTables:
    """The new tables; raises SummaryError, also if the difference is not from ``old``."""
    allowance = Allowance(limits, len(data), _HELD_FACTOR * _array_bytes(old))
    reader = _opened(data, Form.DIFFERENCE, allowance)
    if reader.raw(DIGEST_BYTES) != digest(old):
        raise SummaryError("the difference was made for another old summary than the one held")
    expected = reader.raw(DIGEST_BYTES)
    new = _edited(old, reader)
    if digest(new) != expected:
        raise SummaryError("the difference does not make the summary that it was made from")
    return new


def _full(tables: SummaryTables) -> bytes:
    return _sealed(Form.FULL, b"", NO_ENTRIES, tables)


def _sealed(form: Form, digests: bytes, old: SummaryTables, new: SummaryTables) -> bytes:
    writer = Writer()
    writer.data += MAGIC + bytes((VERSION, form)) + digests
    _write_edits(writer, old, new)
    writer.data += crc32(writer.data).to_bytes(CHECKSUM_BYTES, "little")
    return bytes(writer.data)


def _opened(data: bytes, form: Form, allowance: Allowance) -> Reader:
    """A reader of all but the checksum, after the form."""
    start = MAGIC + bytes((VERSION,))
    if len(data) < len(start) + 1 + CHECKSUM_BYTES or data[: len(MAGIC)] != MAGIC:
        raise SummaryError("the bytes are not those of a summary")
    if data[: len(start)] != start:
        raise SummaryError(f"summaries of version {data[len(MAGIC)]} are unknown, not {VERSION}")
    body = data[:-CHECKSUM_BYTES]
    if crc32(body).to_bytes(CHECKSUM_BYTES, "little") != data[-CHECKSUM_BYTES:]:
        raise SummaryError("the checksum of a summary is wrong")
    if data[len(start)] != form:
        raise SummaryError(
            f"the message has the form {data[len(start)]}, not {form:d}, {form.name}"
        )
    return Reader(body, len(start) + 1, allowance)


def _write_edits(writer: Writer, old: SummaryTables, new: SummaryTables) -> None:
    moved = moves(old, new)
    old_tables, new_tables = _by_number(old, moved.attributes), _by_number(new)
    edits = {}
    for number in sorted(old_tables.keys() | new_tables.keys()):
        empty = no_rows(new.attributes[number // KINDS], ChannelKind(number % KINDS))
        before, after = old_tables.get(number, empty), new_tables.get(number, empty)
        participants = np.flatnonzero(has_attribute(new.entry_masks, number // KINDS))
        edit = table_edit(before, after, moved.entries, participants, len(new.entry_owners))
        if edit is not None:
            edits[number] = edit
    writer.record(summary_edit(old, new, moved, list(edits)))
    for rows, runs in edits.values():
        writer.record(rows)
        writer.record(runs)


def _edited(old: SummaryTables, reader: Reader) -> SummaryTables:
    """The tables that the edits of a message make of the old ones."""
    edit = reader.record(SummaryEdit)
    new, moved = edited_entries(old, edit, reader)
    old_tables = _by_number(old, moved.attributes)
    numbers = reader.indexes(edit.tables, KINDS * len(new.attributes)).tolist()
    entry_count = len(new.entry_owners)
    tables = {
        number: kept_table(old_tables[number], moved.entries, entry_count, reader)
        for number in old_tables.keys() - set(numbers)
    }
    for number in numbers:
        empty = no_rows(new.attributes[number // KINDS], ChannelKind(number % KINDS))
        participants = np.flatnonzero(has_attribute(new.entry_masks, number // KINDS))
        before = old_tables.get(number, empty)
        after = edited_table(before, moved.entries, participants, entry_count, reader)
        if len(after.starts) > 1:
            tables[number] = after
    reader.end()
    ordered = [tables[number] for number in sorted(tables)]
    result = replace(
        new,
        ranges=tuple(table for table in ordered if isinstance(table, RangeTable)),
        strings=tuple(table for table in ordered if isinstance(table, StringTable)),
    )
    check_tables(result)
    return result


def _by_number(tables: SummaryTables, places: I64 | None = None) -> dict[int, AnyTable]:
    """The tables by the numbers with which they are written, of the attributes that stay."""
    moved = range(len(tables.attributes)) if places is None else places.tolist()
    indexes = dict(zip(tables.attributes, moved, strict=True))
    return {
        indexes[each.attribute] * KINDS + _kind(each): each
        for each in tables.all_tables
        if indexes[each.attribute] != GONE
    }


def _kind(table: AnyTable) -> ChannelKind:
    return table.kind if isinstance(table, RangeTable) else ChannelKind.STRING


def _array_bytes(tables: SummaryTables) -> int:
    members = sum(table.starts.nbytes + table.members.nbytes for table in tables.all_tables)
    return tables.entry_masks.nbytes + members
