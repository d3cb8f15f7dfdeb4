from __future__ import annotations

import numpy as np

from tidegate.experiments.network.load import PARAMETER, Load, sorted_pairs


def test_the_expected_pairs_follow_the_parameters() -> None:
    load = Load(400, 7, events=300)
    assert all(f":{PARAMETER}" in each.text for each in load.wanted)
    pairs = load.expected_pairs()
    assert len(pairs)
    assert np.array_equal(pairs, sorted_pairs(pairs[:, 0], pairs[:, 1]))
    nothing = load.expected_pairs({each.row: 2_000_000 for each in load.wanted})
    assert len(nothing) == 0
    all_volumes = load.expected_pairs({each.row: -1 for each in load.wanted})
    assert {*map(tuple, pairs.tolist())} < {*map(tuple, all_volumes.tolist())}


def test_a_connection_gets_an_event_once() -> None:
    load = Load(10, 3, events=5)
    pairs = np.array([[0, 0], [0, 3], [0, 4], [2, 5]], np.int64)
    assert load.counts(pairs) == (3, 4)
    assert [[each.row for each in one] for one in load.by_connection] == [
        [0, 3, 6, 9], [1, 4, 7], [2, 5, 8],
    ]  # fmt: skip


def test_events_are_those_of_the_rows() -> None:
    load = Load(10, 1, events=5)
    assert [dict(each.attributes) for each in load.events.events()] == list(load.rows)
