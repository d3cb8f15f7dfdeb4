from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SummaryError
from tidegate.matching.arrays import I64
from tidegate.matching.summary.wire.columns import Allowance, Reader, WireLimits
from tidegate.matching.summary.wire.layout import MemberRuns
from tidegate.matching.summary.wire.runs import pairs_of, runs_of, symmetric_difference

READER = Reader(b"", 0, Allowance(WireLimits(), 0))
ENTRIES, ROWS = 5, 7
PARTICIPANTS = np.array([0, 2, 3])


def pairs(*members: tuple[int, int]) -> I64:
    """Pairs of a row and an entry."""
    return np.array(sorted(row * ENTRIES + entry for row, entry in members), np.int64)


def listed(record: MemberRuns) -> list[list[int]]:
    return [
        record.entries.tolist(),
        record.run_counts.tolist(),
        record.run_gaps.tolist(),
        record.run_lengths.tolist(),
    ]


@given(st.sets(st.tuples(st.integers(0, ROWS - 1), st.sampled_from(PARTICIPANTS.tolist()))))
def test_pairs_come_back(members: set[tuple[int, int]]) -> None:
    drawn = pairs(*members)
    record = runs_of(drawn, PARTICIPANTS, ENTRIES)
    assert pairs_of(record, PARTICIPANTS, ROWS, ENTRIES, READER).tolist() == drawn.tolist()


def test_consecutive_rows_are_one_run() -> None:
    drawn = pairs((1, 0), (2, 0), (3, 0), (6, 0), (0, 3), (2, 3))
    assert listed(runs_of(drawn, PARTICIPANTS, ENTRIES)) == [
        [0, 2],
        [2, 2],
        [1, 2, 0, 1],
        [3, 1, 1, 1],
    ]


def test_no_members() -> None:
    record = runs_of(pairs(), PARTICIPANTS, ENTRIES)
    assert listed(record) == [[], [], [], []]
    assert pairs_of(record, PARTICIPANTS, 0, 0, READER).tolist() == []


def test_many_rows() -> None:
    # More than the integers have that are sorted by radix.
    rows = 70_000
    drawn = np.arange(rows) * 2
    record = runs_of(drawn, np.array([0, 1]), 2)
    assert listed(record) == [[0], [1], [0], [rows]]
    assert np.array_equal(pairs_of(record, np.array([0, 1]), rows, 2, READER), drawn)


RECORD = runs_of(pairs((1, 0), (2, 0), (4, 0), (0, 3)), PARTICIPANTS, ENTRIES)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"entries": [0, 0]}, "listed twice"),
        ({"entries": [-1, 0]}, "refers to"),
        ({"entries": [0, 3]}, "refers to"),
        ({"entries": [0]}, "without runs"),
        ({"run_counts": [3, 0]}, "without runs"),
        ({"run_counts": [2, 2]}, "runs of an entry are missing"),
        ({"run_counts": [2, 2**62]}, "runs of an entry are missing"),
        ({"run_gaps": [1, 1]}, "runs of an entry are missing"),
        ({"run_gaps": [1, 2**62, 0]}, "runs of an entry are missing"),
        ({"run_lengths": [2, 1]}, "runs of an entry are missing"),
        ({"run_lengths": [2, 0, 1]}, "a run is empty"),
        ({"run_lengths": [2, 2**62, 1]}, "more rows than there are"),
        ({"run_lengths": [2, 4, 1]}, "exceeds the rows"),
        ({"run_gaps": [1, 0, 0]}, "adjoins the one before"),
    ],
)
def test_malformed_runs_are_refused(changes: dict[str, list[int]], complaint: str) -> None:
    arrays = {name: np.array(each, np.int64) for name, each in changes.items()}
    assert len(pairs_of(RECORD, PARTICIPANTS, ROWS, ENTRIES, READER)) == 4
    with pytest.raises(SummaryError, match=complaint):
        pairs_of(replace(RECORD, **arrays), PARTICIPANTS, ROWS, ENTRIES, READER)


def test_runs_take_memory() -> None:
    wide = MemberRuns(np.array([0]), np.array([1]), np.array([0]), np.array([10_000]))
    small = Reader(b"", 0, Allowance(WireLimits(memory_free=100_000), 0))
    with pytest.raises(SummaryError, match="memory"):
        pairs_of(wide, PARTICIPANTS, 10_000, ENTRIES, small)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_symmetric_differences(one: set[int], other: set[int]) -> None:
    arrays = [np.array(sorted(each), np.int64) for each in (one, other)]
    assert symmetric_difference(*arrays).tolist() == sorted(one ^ other)
