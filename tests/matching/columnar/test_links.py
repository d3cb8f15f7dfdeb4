"""Links by number of a subscription."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.columnar.links import SubscriptionLinks


def test_without_links_nothing_is_kept() -> None:
    links = SubscriptionLinks()
    links.reserve(1_000_000)
    links.set(5, 0)
    assert (links.width, links.all, links._rows.nbytes) == (0, 0, 0)
    assert links.of(np.array([5, 7], np.int32)) == [0, 0]


def test_there_is_room_for_twice_as_many_links() -> None:
    links = SubscriptionLinks()
    widths = []
    for link in range(70):
        links.set(0, 1 << link)
        widths.append(links.width)
    assert widths == [1, 2, *[4] * 2, *[8] * 4, *[16] * 8, *[32] * 16, *[64] * 32, *[128] * 6]
    assert links.all == 2**128 - 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**150)), max_size=12))
def test_links_are_those_that_were_set_last(changes: list[tuple[int, int]]) -> None:
    links = SubscriptionLinks()
    links.reserve(3)
    expected = dict.fromkeys(range(10), 0)
    for number, each in changes:
        links.set(number, each)
        expected[number] = each
    links.reserve(10)
    numbers = np.arange(10, dtype=np.int32)[::-1]
    assert links.of(numbers) == [expected[number] for number in numbers.tolist()]
