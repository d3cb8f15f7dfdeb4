"""Sets of links as words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.link_words import all_as_words, as_int, as_words, widened


@given(st.integers(0, 2**200 - 1))
def test_words_and_back(links: int) -> None:
    assert as_int(as_words(links, 4)) == links
    assert as_int(as_words(links, 2)) == links & (2**128 - 1)


@given(st.lists(st.integers(0, 2**128 - 1)))
def test_many_sets_as_words(sets: list[int]) -> None:
    assert [as_int(row) for row in all_as_words(sets, 2)] == sets


def test_rows_with_more_words() -> None:
    rows = np.array([1, 2, 3], np.uint64)
    assert widened(rows, 3, 1, 2).tolist() == [1, 0, 2, 0, 3, 0]
    assert widened(np.zeros(0, np.uint64), 2, 0, 2).tolist() == [0, 0, 0, 0]
