"""Segments are described by the names of their folders."""

from __future__ import annotations

import pytest

from tidegate import LogError
from tidegate.spark.log.segments import BatchKey, Segment, contiguous_segments


@pytest.mark.parametrize(
    "segment",
    [
        Segment(0, 0),
        Segment(3, 2**63 - 1),
        Segment(0, 5, BatchKey("desk-7", 12)),
        Segment(0, 5, BatchKey("1-2-3", 0)),
        Segment(0, 5, BatchKey("-" * 100, 2**63 - 1)),
    ],
)
def test_a_name_says_all(segment: Segment) -> None:
    assert Segment.from_name(segment.name) == segment
    assert len(segment.name) < 255


@pytest.mark.parametrize("name", ["", "staging", "1-2", f"{0:020}-{5:020}-", f"{0:020}-{5:020}-a"])
def test_other_names_are_no_segments(name: str) -> None:
    assert Segment.from_name(name) is None


@pytest.mark.parametrize("producer", ["", "a/b", "ä", "a b", "x" * 101, "..\n"])
def test_bad_producers(producer: str) -> None:
    with pytest.raises(LogError, match="not a valid name of a producer"):
        BatchKey(producer, 0)


@pytest.mark.parametrize("batch", [-1, 2**63, True])
def test_bad_batches(batch: int) -> None:
    with pytest.raises(LogError, match="is not a batch number"):
        BatchKey("p", batch)


def test_a_producer_comes_with_a_batch() -> None:
    assert BatchKey.of(None, None) is None
    with pytest.raises(LogError, match="or neither"):
        BatchKey.of("p", None)
    with pytest.raises(LogError, match="or neither"):
        BatchKey.of(None, 1)


def test_order_and_gaps() -> None:
    first, empty, last = Segment(0, 2), Segment(2, 2, BatchKey("p", 0)), Segment(2, 3)
    assert contiguous_segments([last.name, "lock", empty.name, first.name]) == [first, empty, last]
    assert contiguous_segments([]) == []
    assert contiguous_segments([last.name]) is None
    assert contiguous_segments([first.name, Segment(1, 4).name]) is None
    assert contiguous_segments([first.name, Segment(2, 1).name]) is None
