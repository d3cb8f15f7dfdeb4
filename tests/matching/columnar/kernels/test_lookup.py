"""Clusters by hash: the one whose key an event has, and no other."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.arrays import F64
from tidegate.matching.columnar.kernels.layout import lay_out
from tidegate.matching.columnar.kernels.lookup import find_by_values, find_in_sets
from tidegate.matching.columnar.kernels.part import PackedPart, Part, pack
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import SET

keys = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=20)


def part_of(keys: list[tuple[int, int]]) -> Part:
    """A part with an entry for each key, an equality of a channel and a value."""
    values = np.array([value for _, value in keys], np.float64)
    return lay_out(
        Entries(
            subscription=np.arange(len(keys), dtype=np.int32),
            flags=np.zeros(len(keys), np.int32),
            first=offsets(np.ones(len(keys), np.int64)),
            channel=np.array([channel for channel, _ in keys], np.int32),
            low=values,
            high=values,
            motion_first=np.zeros(len(keys) + 1, np.int32),
            motion=np.zeros(0),
        ),
        np.zeros(1, np.int32),
    )


def subscriptions_of(part: Part, cluster: int) -> list[int]:
    begin, end = part.cluster_first[cluster : cluster + 2]
    return sorted(part.subscription[begin:end].tolist())


def found_by_values(part: Part, events: F64) -> dict[int, list[int]]:
    """The subscriptions of the clusters that each event falls into."""
    packed: PackedPart = pack(part)
    pair_event, pair_cluster = np.empty(1000, np.int32), np.empty(1000, np.int32)
    count = 0
    for group in range(len(part.group_first) - 1):
        count = find_by_values(
            packed, events, 0, len(events), group, pair_event, pair_cluster, count
        )
    found: dict[int, list[int]] = {event: [] for event in range(len(events))}
    for event, cluster in zip(pair_event[:count], pair_cluster[:count], strict=True):
        found[event] = sorted(found[event] + subscriptions_of(part, cluster))
    return found


@given(keys, st.lists(st.integers(0, 6) | st.just(math.nan), min_size=4, max_size=4))
def test_an_event_finds_the_clusters_that_ask_for_its_values(
    keys: list[tuple[int, int]], row: list[float]
) -> None:
    wanted = [index for index, (channel, value) in enumerate(keys) if row[channel] == value]
    assert found_by_values(part_of(keys), np.array([row], np.float64)) == {0: wanted}


def test_some_of_the_events_are_looked_up() -> None:
    packed = pack(part_of([(0, 1)]))
    events = np.array([[1.0], [1.0], [2.0], [1.0], [1.0]])
    pair_event, pair_cluster = np.empty(5, np.int32), np.empty(5, np.int32)
    count = find_by_values(packed, events, 1, 4, 0, pair_event, pair_cluster, 2)
    assert pair_event[2:count].tolist() == [1, 3]


def test_each_number_of_a_set_finds_its_cluster() -> None:
    part = part_of([(SET, 3), (SET, 5), (SET, 7), (SET, 3)])
    packed = pack(part)
    events = np.array([[0.0], [math.nan], [1.0]])
    first, members = np.array([0, 3, 4], np.int32), np.array([3.0, 4.0, 7.0, 9.0])
    pair_event, pair_cluster = np.empty(2, np.int32), np.empty(2, np.int32)

    def found(room: int) -> int:
        return int(
            find_in_sets(
                packed, events, 0, 3, 0, first, members, pair_event[:room], pair_cluster[:room], 0,
            )
        )  # fmt: skip

    assert found(room=2) == 2
    assert pair_event.tolist() == [0, 0]
    assert [subscriptions_of(part, each) for each in pair_cluster.tolist()] == [[0, 3], [2]]
    assert found(room=1) == -1
