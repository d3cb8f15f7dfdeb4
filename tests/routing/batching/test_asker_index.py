"""Numbers have one asker, several or none, and come to have others."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.routing.batching.asker_index import AskerIndex

puts = st.lists(st.tuples(st.integers(0, 40), st.lists(st.integers(0, 9), max_size=3, unique=True)))


@given(puts, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40))))
def test_pairs_have_the_askers_that_were_put_last(
    puts: list[tuple[int, list[int]]], found: list[tuple[int, int]]
) -> None:
    index = AskerIndex()
    expected: dict[int, list[int]] = {}
    for number, codes in puts:
        index.put(number, np.array(codes, np.int64))
        expected[number] = codes
    known = [each for each in found if each[1] in expected]
    events, numbers = np.array(known, np.int32).reshape(-1, 2).T
    got_events, got_codes = index.pairs(events, numbers)
    assert sorted(zip(got_events.tolist(), got_codes.tolist(), strict=True)) == sorted(
        (event, code) for event, number in known for code in expected[number]
    )
