"""The page describes the layout that the code has, and its examples are the bytes of the code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example as explicit
from hypothesis import given

from support.pages import Section, code, read
from support.summary_reader import PlainSummary, read_message
from support.summary_tables import range_table, string_table, summary_tables, varied_tables
from tidegate.matching.summary.merging import merge
from tidegate.matching.summary.tables import (
    ChannelKind,
    RangeTable,
    RowKind,
    RowPattern,
    SummaryTables,
    attributes_of,
    check_tables,
)
from tidegate.matching.summary.wire.columns import Reader, Writer
from tidegate.matching.summary.wire.layout import (
    CODINGS,
    Coding,
    MemberRuns,
    RangeRows,
    StringRows,
    SummaryEdit,
)
from tidegate.matching.summary.wire.messages import (
    apply_difference,
    decode,
    encode,
    encode_difference,
)

SECTIONS = {section.title: section for section in read("docs/summaries.md")}

RECORDS = {
    "Names and entries": SummaryEdit,
    "Rows of a range table": RangeRows,
    "Rows of a string table": StringRows,
    "Members": MemberRuns,
}


@pytest.mark.parametrize("title", RECORDS)
def test_the_page_has_the_fields_in_their_order(title: str) -> None:
    described = [(code(row.cells["field"]), row.cells["coding"]) for row in SECTIONS[title].rows]
    codings = CODINGS[RECORDS[title]]
    assert described == [(name, coding.value) for name, coding in codings.items()]


def test_every_coding_is_written_read_and_described() -> None:
    for coding in Coding:
        assert callable(getattr(Writer, coding.value))
        assert callable(getattr(Reader, coding.value))
    described = {row.cells.get("coding") for row in SECTIONS["Codings"].rows}
    assert described == {coding.value for coding in Coding}


def example(rows: list[tuple[float, float, list[int]]], masks: list[int]) -> SummaryTables:
    """The subscriptions of broker A on the page."""
    tables = SummaryTables(
        ("A",),
        ("price", "symbol"),
        np.zeros(len(masks), np.int32),
        np.arange(1, len(masks) + 1),
        np.array([[mask] for mask in masks], np.uint64),
        (range_table("price", ChannelKind.NUMBER, *rows),),
        (string_table("symbol", (RowPattern(RowKind.PREFIX, ("OT",)), [0, 1])),),
    )
    check_tables(tables)
    return tables


AFTER_830, BEFORE_870 = math.nextafter(8.3, 9), math.nextafter(8.7, 8)
TWO = example([(8.2, 8.2, [1]), (AFTER_830, BEFORE_870, [0])], [3, 3])
THREE = example(
    [
        (8.2, 8.2, [1]),
        (AFTER_830, math.nextafter(8.5, 8), [0]),
        (8.5, BEFORE_870, [0, 2]),
        (8.7, 9, [2]),
    ],
    [3, 3, 1],
)


def written_bytes(section: Section) -> bytes:
    return bytes.fromhex("".join(code(row.cells["bytes"]) for row in section.rows))


def test_the_bytes_of_the_example() -> None:
    data = written_bytes(SECTIONS["An example"])
    assert encode(TWO).hex(" ") == data.hex(" ")
    assert decode(data) == TWO


def test_the_bytes_of_the_example_of_a_difference() -> None:
    data = written_bytes(SECTIONS["An example of a difference"])
    assert encode_difference(TWO, THREE).hex(" ") == data.hex(" ")
    assert apply_difference(TWO, data) == THREE


@pytest.mark.parametrize("title", ["An example", "An example of a difference"])
def test_the_examples_name_every_field(title: str) -> None:
    names = [code(row.cells["field"]) for row in SECTIONS[title].rows if "`" in row.cells["field"]]
    expected = [*CODINGS[SummaryEdit], *CODINGS[RangeRows], *CODINGS[MemberRuns]]
    if title == "An example":
        expected += [*CODINGS[StringRows], *CODINGS[MemberRuns]]
    assert names == expected


def plain(tables: SummaryTables) -> PlainSummary:
    ids = [
        (tables.owners[owner], number)
        for owner, number in zip(
            tables.entry_owners.tolist(), tables.entry_numbers.tolist(), strict=True
        )
    ]
    masks = {each: set(attributes_of(tables, i)) for i, each in enumerate(ids)}
    keys: dict[tuple[str, int], list[Any]] = {
        (t.attribute, int(t.kind)): list(zip(t.lows.tolist(), t.highs.tolist(), strict=True))
        for t in tables.ranges
    } | {(t.attribute, 3): [tuple(each) for each in t.patterns] for t in tables.strings}
    members = {
        (t.attribute, int(t.kind) if isinstance(t, RangeTable) else 3): [
            {ids[i] for i in each.tolist()} for each in np.split(t.members, t.starts[1:-1])
        ]
        for t in tables.all_tables
    }
    rows = {key: list(zip(keys[key], members[key], strict=True)) for key in keys}
    return PlainSummary(list(tables.owners), list(tables.attributes), masks, rows)


@given(summary_tables(["a", "c"]), summary_tables(["b"]), summary_tables(["a", "b"]))
@explicit(TWO, varied_tables(), THREE)
def test_a_reader_that_was_written_after_the_page_agrees(
    one: SummaryTables, two: SummaryTables, three: SummaryTables
) -> None:
    both = merge([one, two])
    assert read_message(encode(both), PlainSummary()) == plain(both)
    for old, new in ((one, both), (both, two), (both, three), (three, one)):
        assert read_message(encode_difference(old, new), plain(old)) == plain(new)
