"""The layout of the records: words do not overlap, and fit."""

from __future__ import annotations

import numpy as np

from tidegate.matching.tree.kernels import layout as la


def test_the_words_of_a_node_do_not_overlap() -> None:
    ints = [la.N_KIND, la.N_CHANNEL, la.N_STAR, la.N_LEFT, la.N_RIGHT, la.N_GUARD]
    floats = [la.N_CUT, la.N_GUARD_LOW, la.N_GUARD_HIGH, la.N_KEY]
    taken = [each // 2 for each in ints] + floats
    assert sorted(set(taken)) == list(range(7))
    assert max(taken) < la.NODE_WORDS


def test_both_views_of_a_node_are_the_same_memory() -> None:
    nodes = np.zeros(2 * la.NODE_WORDS)
    nodes.view(np.int32)[la.node_i32(1, la.N_GUARD)] = -1
    assert nodes.view(np.uint32)[2 * la.node_f64(1, 0) + la.N_GUARD] == 2**32 - 1


def test_the_margin_is_the_upper_half_of_the_channel_word() -> None:
    bound = np.zeros(2 * la.BOUND_WORDS)
    bound.view(np.int64)[la.bound_at(1, la.B_CHANNEL)] = 7
    bound.view(np.float32)[la.margin_at(la.bound_at(1, 0))] = 0.5
    word = int(bound.view(np.int64)[la.bound_at(1, la.B_CHANNEL)])
    assert word & la.CHANNEL_MASK == 7
    assert np.uint32(word >> 32).view(np.float32) == 0.5


def test_records_follow_each_other() -> None:
    assert la.tie_at(2, 0) == 2 * la.TIE_WORDS
    assert la.path_at(3, la.P_FROM) == 3 * la.PATH_WORDS + la.P_FROM
    assert la.entry_at(1, la.E_PATHS) == la.ENTRY_WORDS + la.E_PATHS
