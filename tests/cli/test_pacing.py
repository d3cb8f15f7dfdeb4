"""Matching in batches of changing sizes finds what matching each event alone finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate import Engine
from tidegate.cli.files.events import EventChunk
from tidegate.cli.pacing import FIRST_EVENTS, SINGLE_MAX, PacedMatcher
from tidegate.language.events import Event

COUNT = 5 * FIRST_EVENTS
VALUES = [number % 7 for number in range(COUNT)]
INDEXES = np.arange(COUNT) * 2 + 5
CHUNKS = [
    EventChunk(INDEXES, pa.table({"x": VALUES})),
    EventChunk(INDEXES, [Event({"x": value}) for value in VALUES]),
]


def engine(*filters: str) -> Engine:
    made = Engine(clock=lambda: None)
    for text in filters:
        made.subscribe(text, id=text)
    return made


def matched(matcher: PacedMatcher, chunk: EventChunk) -> list[list[tuple[int, str]]]:
    """The matches of a chunk, a list for each part."""
    return [
        list(zip(each.events.tolist(), each.subscriptions.to_pylist(), strict=True))
        for each in matcher.match(chunk)
    ]


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("most", [1, 10, 2_000_000])
def test_all_sizes_give_the_same(
    chunk: EventChunk, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.cli.pacing.BATCH_MATCHES", most)
    parts = matched(PacedMatcher(engine("x < 3", "x = 2", "x > 9")), chunk)
    found = [pair for part in parts for pair in part]
    wanted = [
        (int(index), text)
        for index, value in zip(INDEXES, VALUES, strict=True)
        for text, holds in (("x < 3", value < 3), ("x = 2", value == 2))
        if holds
    ]
    assert sorted(found) == sorted(wanted)
    assert [event for event, _ in found] == sorted(event for event, _ in found)


def test_many_matches_make_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.cli.pacing.BATCH_MATCHES", 2 * SINGLE_MAX)
    first, *others = matched(PacedMatcher(engine("x >= 0", "x < 9")), CHUNKS[0])
    assert len(first) == 2 * FIRST_EVENTS  # nothing was known before
    assert max(map(len, others)) == 2 * SINGLE_MAX


def test_a_batch_grows_to_twice_the_one_before() -> None:
    parts = matched(PacedMatcher(engine("x >= 0")), CHUNKS[0])
    assert [len(part) for part in parts] == [FIRST_EVENTS, 2 * FIRST_EVENTS, 2 * FIRST_EVENTS]


def test_nothing() -> None:
    nothing = EventChunk(np.zeros(0, np.int64), [])
    assert matched(PacedMatcher(engine("x >= 0")), nothing) == []
    assert matched(PacedMatcher(engine()), CHUNKS[0]) == []
