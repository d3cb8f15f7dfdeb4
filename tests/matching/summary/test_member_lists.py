from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.summary.kernels.lists import ABSENT
from tidegate.matching.summary.member_lists import MemberLists, Terms, grown

changes = st.lists(
    st.tuples(st.sampled_from(["append", "remove", "replace", "free"]), st.integers(0, 3)),
    max_size=60,
)


@given(changes, st.randoms(use_true_random=False))
def test_lists_hold_what_they_are_given(changes: list[tuple[str, int]], random: Random) -> None:
    lists = MemberLists()
    numbers = [lists.new() for _ in range(4)]
    held: list[list[int]] = [[] for _ in numbers]
    for term, (change, index) in enumerate(changes):
        chosen = np.array([numbers[index], numbers[(index + 1) % 4]])
        if change == "append":
            lists.append(chosen, np.array([term << 1, term << 1 | 1], np.int32))
            held[index].append(term << 1)
            held[(index + 1) % 4].append(term << 1 | 1)
        elif change == "remove":
            gone = random.randrange(term + 1)
            bits = lists.remove(chosen, gone)
            for bit, at in zip(bits.tolist(), (index, (index + 1) % 4), strict=True):
                if bit != ABSENT:
                    held[at].remove(gone << 1 | bit)
                assert all(member >> 1 != gone for member in held[at])
        elif change == "replace":
            held[index] = [1000 + n for n in range(random.randrange(20))]
            lists.replace(numbers[index], np.array(held[index], np.int32))
        else:
            lists.free(numbers[index])
            numbers[index], held[index] = lists.new(np.array([7], np.int32)), [7]
        for number, expected in zip(numbers, held, strict=True):
            assert Counter(lists.members(number).tolist()) == Counter(expected)
    listed = lists.terms_of(np.array(numbers)).tolist()
    assert listed == [m >> 1 for number in numbers for m in lists.members(number).tolist()]


def test_blocks_are_used_again() -> None:
    lists = MemberLists()
    for _ in range(100):
        number = lists.new()
        for term in range(100):
            lists.append(np.array([number]), np.array([term], np.int32))
        lists.free(number)
    assert lists.reserved < 300


def test_terms_are_used_again() -> None:
    terms = Terms()
    numbers = [terms.add(entry, entry, entry + 1.0, loose=entry % 2 == 1) for entry in range(40)]
    assert numbers == list(range(40))
    assert (terms.entry[5], terms.low[5], terms.high[5], terms.loose[5]) == (5, 5.0, 6.0, 1)
    terms.free(5)
    assert terms.add(50, 0.0, 1.0, loose=False) == 5
    assert (terms.marks() == -1).all()
    assert len(terms.marks()) >= 40


def test_an_array_grows_by_doubling() -> None:
    array = np.arange(4)
    assert grown(array, 4) is array
    longer = grown(array, 5)
    assert longer.tolist() == [0, 1, 2, 3, 0, 0, 0, 0]
    assert len(grown(array, 100)) == 100
