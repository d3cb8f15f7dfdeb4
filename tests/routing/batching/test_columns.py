"""Columns of few distinct values, and of stamps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.messages import Stamp

stamps = st.lists(st.builds(Stamp, st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 9)))


@given(st.lists(st.lists(st.sampled_from(["a", "b", None]))))
def test_joined_columns_have_the_rows_of_each(parts: list[list[str | None]]) -> None:
    joined = Coded.concatenated([Coded.of(each) for each in parts])
    rows = [row for each in parts for row in each]
    assert joined.rows() == rows
    assert sorted(map(str, joined.values)) == sorted(map(str, set(rows)))  # each value once


@given(st.lists(stamps))
def test_joined_stamps_have_the_rows_of_each(parts: list[list[Stamp]]) -> None:
    joined = StampColumns.concatenated([StampColumns.of(each) for each in parts])
    rows = [row for each in parts for row in each]
    assert [joined.row(index) for index in range(len(joined))] == rows


def test_a_constant_column_has_its_value_in_all_rows() -> None:
    assert Coded.constant(None, 2).rows() == [None, None]
    assert Coded.constant("a", 0).rows() == []
