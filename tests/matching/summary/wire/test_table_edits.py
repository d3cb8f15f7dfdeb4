from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support.summary_tables import range_table, string_table, summary_tables, varied_tables
from tidegate.errors import SummaryError
from tidegate.matching.arrays import I64
from tidegate.matching.summary.merging import GONE
from tidegate.matching.summary.tables import (
    AnyTable,
    ChannelKind,
    RangeTable,
    RowKind,
    RowPattern,
    StringTable,
    SummaryTables,
    has_attribute,
)
from tidegate.matching.summary.wire.columns import Allowance, Reader, WireLimits, Writer
from tidegate.matching.summary.wire.layout import MemberRuns, RangeRows, StringRows
from tidegate.matching.summary.wire.table_edits import (
    edited_table,
    kept_table,
    no_rows,
    table_edit,
)

ENTRIES = 10
ALL = np.arange(ENTRIES)
NUMBER = ChannelKind.NUMBER


def reader(*records: Any) -> Reader:
    writer = Writer()
    for record in records:
        writer.record(record)
    return Reader(bytes(writer.data), 0, Allowance(WireLimits(), 0))


def sent(old: AnyTable, new: AnyTable, entries: I64 = ALL) -> tuple[Any, MemberRuns]:
    """The records of a change, once they were applied."""
    edit = table_edit(old, new, entries, ALL, ENTRIES)
    assert edit is not None
    assert edited_table(old, entries, ALL, ENTRIES, reader(*edit)) == new
    return edit


def equal(text: str) -> RowPattern:
    return RowPattern(RowKind.EQUAL, (text,))


@given(summary_tables())
def test_a_table_is_made_of_nothing(tables: SummaryTables) -> None:
    count = len(tables.entry_owners)
    for table in tables.all_tables:
        index = tables.attributes.index(table.attribute)
        participants = np.flatnonzero(has_attribute(tables.entry_masks, index))
        kind = table.kind if isinstance(table, RangeTable) else ChannelKind.STRING
        empty, none = no_rows(table.attribute, kind), np.zeros(0, np.int64)
        edit = table_edit(empty, table, none, participants, count)
        assert edit is not None
        assert edited_table(empty, none, participants, count, reader(*edit)) == table


def test_nothing_changes() -> None:
    for table in varied_tables().all_tables:
        assert table_edit(table, table, ALL, ALL, ENTRIES) is None
        assert kept_table(table, ALL, ENTRIES, reader()) is table


def test_members_that_stay_follow_their_entries() -> None:
    old = range_table("x", NUMBER, (1, 2, [0, 1, 2]), (3, 4, [1]))
    entries = np.array([0, 2, GONE])
    new = range_table("x", NUMBER, (1, 2, [0, 2]), (3, 4, [2]))
    assert table_edit(old, new, entries, np.arange(3), 3) is None
    assert kept_table(old, entries, 3, reader()) == new


def test_a_cut_and_a_join_write_no_members() -> None:
    old = range_table("x", NUMBER, (1, 4, list(range(9))), (5, 6, [3]))
    cut = range_table(
        "x",
        NUMBER,
        (1, np.nextafter(2, 1), list(range(9))),
        (2, 2, list(range(10))),
        (np.nextafter(2, 3), 4, list(range(9))),
        (5, 6, [3]),
    )
    rows, runs = sent(old, cut)
    assert rows.rows_removed.tolist() == [0]
    assert (runs.entries.tolist(), runs.run_gaps.tolist()) == ([9], [1])
    rows, runs = sent(cut, old, np.array([*range(9), GONE]))
    assert rows.rows_removed.tolist() == [0, 1, 2]
    assert runs.entries.tolist() == []


def test_a_range_that_moves_is_written_where_it_changes() -> None:
    bounds = [(float(i), float(i)) for i in range(6)]
    before = [*(each for each in ([0, 1], [0, 1], [0, 1], [0], [0], [0]))]
    after = [*(each for each in ([0], [0, 1], [0, 1], [0, 1], [0], [0]))]
    old = range_table("x", NUMBER, *((*b, m) for b, m in zip(bounds, before, strict=True)))
    new = range_table("x", NUMBER, *((*b, m) for b, m in zip(bounds, after, strict=True)))
    rows, runs = sent(old, new)
    assert len(rows.row_forms) == 0
    assert runs.entries.tolist() == [1]
    assert runs.run_gaps.tolist() == [0, 2]


def test_a_general_string_row_takes_over_and_gives_way() -> None:
    old = string_table("s", (equal("microsoft"), [1]), (equal("other"), [0]), (equal("mt"), [2]))
    old = string_table("s", (equal("microsoft"), [1]), (equal("mt"), [2]), (equal("other"), [0]))
    like = RowPattern(RowKind.LIKE, ("m", "t"))
    new = string_table("s", (equal("other"), [0]), (like, [1, 2, 3]))
    rows, _ = sent(old, new)
    assert rows.rows_removed.tolist() == [0, 1]
    assert (rows.piece_counts.tolist(), rows.parts) == ([2], ("m", "t"))
    rows, _ = sent(new, old, np.array([0, 1, 2, GONE]))
    assert rows.parts == ("microsoft", "mt")


def test_all_rows_are_removed() -> None:
    for table in varied_tables().all_tables:
        kind = table.kind if isinstance(table, RangeTable) else ChannelKind.STRING
        sent(table, no_rows(table.attribute, kind))


NONE = np.zeros(0, np.int64)
NO_RUNS = MemberRuns(NONE, NONE, NONE, NONE)


def strings(removed: list[int], kinds: list[int], pieces: list[int], *parts: str) -> StringRows:
    numbers = (np.array(each, np.int64) for each in (removed, kinds, pieces))
    return StringRows(next(numbers), next(numbers), next(numbers), parts)


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (strings([1], [], []), "refers to"),
        (strings([], [6], [], "a"), "no such kind"),
        (strings([], [-1], [], "a"), "no such kind"),
        (strings([], [5], [], "a"), "no number of pieces"),
        (strings([], [5], [2**62], "a"), "texts of a string row are missing"),
        (strings([], [5, 5], [2**62, 2**62 + 1], "a"), "texts of a string row are missing"),
        (strings([], [1, 1], [], "a"), "texts of a string row are missing"),
        (strings([], [0], [], "a"), "texts of a string row are missing"),
    ],
)
def test_malformed_string_rows_are_refused(record: StringRows, complaint: str) -> None:
    old = string_table("s", (equal("a"), [0]))
    with pytest.raises(SummaryError, match=complaint):
        edited_table(old, ALL, ALL, ENTRIES, reader(record, NO_RUNS))


def test_an_old_row_is_not_copied_without_end() -> None:
    old = range_table("x", NUMBER, (0, 1000, list(range(ENTRIES))))
    lows = np.arange(0, 1000, 0.5)
    count = len(lows)
    rows = RangeRows(
        np.array([0]), np.ones(count, np.int64), 1, np.zeros(count, np.int64),
        np.arange(count) * 5, np.zeros(0),
    )  # fmt: skip
    source = reader(rows, NO_RUNS)
    source.allowance = Allowance(WireLimits(memory_free=20 * count * ENTRIES), 0)
    with pytest.raises(SummaryError, match="memory"):
        edited_table(old, ALL, ALL, ENTRIES, source)
    made = edited_table(old, ALL, ALL, ENTRIES, reader(rows, NO_RUNS))
    assert len(made.members) == count * ENTRIES


def test_a_table_without_rows_has_its_kind() -> None:
    assert isinstance(no_rows("s", ChannelKind.STRING), StringTable)
    table = no_rows("x", ChannelKind.BOOLEAN)
    assert isinstance(table, RangeTable)
    assert table.kind is ChannelKind.BOOLEAN
