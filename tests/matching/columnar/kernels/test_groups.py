"""The equalities that are chosen as keys, and their hashes."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from support.kernel_entries import (
    NO_PROGRAM,
    SMALL_SIZES,
    Entry,
    entries_of,
    entry_lists,
    keys_of,
    one,
)
from tidegate.matching.columnar.kernels.groups import choose_groups, hash_keys, salts_of
from tidegate.matching.columnar.kernels.layout import DEFAULT_SIZES, lay_out
from tidegate.matching.rows.kernels.flags import SET


@given(entry_lists)
def test_the_key_of_a_cluster_is_what_its_entries_ask(listed: list[Entry]) -> None:
    keys = keys_of(lay_out(entries_of(listed), NO_PROGRAM, SMALL_SIZES))
    assert keys.keys() == set(range(len(listed)))
    for number, each in enumerate(listed):
        equal = {
            (channel, low)
            for channel, all_bounds in each.constraints.items()
            for low, high in all_bounds
            if low == high
        }
        assert keys[number].items() <= equal
        assert bool(keys[number]) == bool(equal)


def test_many_entries_of_a_kind_are_keyed_by_all_their_equalities() -> None:
    count = DEFAULT_SIZES.group_entries_min
    common = [one(c0=float(i % 3), c1=float(i % 2), c2=(0.0, 1.0)) for i in range(count)]
    keys = keys_of(lay_out(entries_of(common), NO_PROGRAM))
    assert keys[5] == {0: 2.0, 1: 1.0}
    keys = keys_of(lay_out(entries_of(common[1:]), NO_PROGRAM))
    assert all(len(key) == 1 for key in keys.values())


def test_a_rare_entry_is_keyed_by_its_rarest_equality() -> None:
    listed = [one(c0=1.0) for _ in range(5)] + [one(c0=1.0, c1=7.0), one(c0=2.0, c1=7.0)]
    keys = keys_of(lay_out(entries_of(listed), NO_PROGRAM))
    assert keys[5] == {1: 7.0}
    assert keys[6] == {0: 2.0}


def test_a_set_is_a_key_only_of_an_entry_without_another() -> None:
    in_set = Entry({SET: [(3.0, 3.0)]})
    listed = [in_set, Entry({SET: [(3.0, 3.0)], 0: [(1.0, 1.0)]}), *[one(c0=1.0)] * 9]
    keys = keys_of(lay_out(entries_of(listed), NO_PROGRAM))
    assert keys[0] == {SET: 3.0}
    assert keys[1] == {0: 1.0}


@given(entry_lists)
def test_equal_keys_have_one_hash_and_others_another(listed: list[Entry]) -> None:
    entries = entries_of(listed)
    groups = choose_groups(entries, SMALL_SIZES.groups_max, SMALL_SIZES.group_entries_min)
    _, hashes, order = hash_keys(entries, groups)
    assert np.all(hashes[order][:-1] <= hashes[order][1:])
    keys = [
        (group, *(entries.low[entries.first[at] : entries.first[at + 1]][keyed] + 0.0).tolist())
        for at, group in enumerate(groups.of.tolist())
        for keyed in [groups.keyed[entries.first[at] : entries.first[at + 1]]]
    ]
    assert len(set(zip(keys, hashes.tolist(), strict=True))) == len(set(keys))
    assert len(set(hashes.tolist())) == len(set(keys))


def test_salts_differ() -> None:
    salts = np.concatenate([salts_of(1, 50), salts_of(2, 50)])
    assert len(set(salts.tolist())) == 100
