from __future__ import annotations

import numpy as np

from support.summary_tables import paper_tables, range_table, string_table
from tidegate.matching.summary.tables import ChannelKind, RowKind, RowPattern, SummaryTables
from tidegate.matching.summary.wire.sizes import RowCounts, StorageSizes, formula_bytes


def test_the_counts_of_the_paper() -> None:
    # Figures 4 and 5: one range and one equality for the price, one row for the symbol.
    counts = RowCounts.of(paper_tables())
    assert counts == RowCounts(n_sr=3, n_e=1, l_a=4, n_r=2, l_s=3)


def test_the_equations_with_the_sizes_of_table_2() -> None:
    counts = RowCounts(n_sr=3, n_e=1, l_a=4, n_r=2, l_s=3)
    assert counts.aacs_bytes(StorageSizes()) == (2 * 3 + 1) * 4 + 4 * 4
    assert counts.sacs_bytes(StorageSizes()) == 2 * 10 + 3 * 4
    assert formula_bytes(paper_tables()) == 44 + 32
    assert formula_bytes(paper_tables(), StorageSizes(sst=8, sid=2, ssv=5)) == 56 + 8 + 10 + 6


def test_an_entry_counts_in_each_of_its_rows() -> None:
    points = [(float(row), float(row), [0, 1]) for row in range(3)]
    patterns = [(RowPattern(RowKind.EQUAL, (text,)), [1]) for text in "ab"]
    tables = SummaryTables(
        ("a",), ("s", "x"), np.zeros(2, np.int32), np.arange(2), np.array([[2], [3]], np.uint64),
        (range_table("x", ChannelKind.NUMBER, *points),), (string_table("s", *patterns),),
    )  # fmt: skip
    assert RowCounts.of(tables) == RowCounts(n_sr=0, n_e=3, l_a=6, n_r=2, l_s=2)
