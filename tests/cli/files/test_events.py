"""Files of events: events are identified by their indexes, and may have times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.command_line import Folder
from tidegate import EventError, TidegateError
from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.events import EventChunk, TimeAttributes, read_events
from tidegate.cli.files.input_file import InputFile
from tidegate.language.events import Event
from tidegate.language.values import to_us

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
TEXT = "2026-01-02T12:00:00Z"
TIMED = TimeAttributes("time", frozenset({"due"}))


def read(folder: Folder, name: str, times: TimeAttributes, bad: BadLines) -> list[EventChunk]:
    file = InputFile(str(folder.path / name))
    return list(read_events(file, times, bad, lambda _: None))


def events_in(chunks: list[EventChunk]) -> dict[int, dict[str, Any]]:
    """The attributes of events by their indexes."""
    return {
        int(index): dict(event.attributes)
        for chunk in chunks
        for index, event in zip(chunk.indexes, chunk.as_events(), strict=True)
    }


# -- times ------------------------------------------------------------------------------------


def test_options() -> None:
    assert TimeAttributes.from_options(None, "") == TimeAttributes()
    found = TimeAttributes.from_options("time", " a, b.c,,")
    assert found.names == {"time", "a", "b.c"}


def test_texts_become_times() -> None:
    event = TIMED.to_event({"time": TEXT, "due": "2026-01-03", "note": TEXT, "x": 1})
    assert event.time == NOON
    assert event.attributes["due"] == datetime(2026, 1, 3, tzinfo=UTC)
    assert event.attributes["note"] == TEXT
    assert TIMED.to_event({"time": NOON}).time == NOON
    assert TimeAttributes().to_event({"time": TEXT}) == Event({"time": TEXT})


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"x": 1}, "the event has no 'time', the attribute with its time"),
        ({"time": None}, "the event has no 'time'"),
        ({"time": 5}, "attribute 'time': must be a timestamp, as"),
        ({"time": "soon"}, "attribute 'time': 'soon' is not a timestamp"),
        ({"time": TEXT, "due": True}, "attribute 'due': must be a timestamp"),
    ],
)
def test_times_that_are_none(source: dict[str, object], reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        TIMED.to_event(source)


# -- files ------------------------------------------------------------------------------------


def test_indexes_count_bad_lines_too(folder: Folder) -> None:
    folder.write("f.jsonl", [{"x": 1}, "", {"x": [1]}, {"x": 3}])
    bad = BadLines(skip=False)
    assert events_in(read(folder, "f.jsonl", TimeAttributes(), bad)) == {0: {"x": 1}, 2: {"x": 3}}
    with pytest.raises(TidegateError, match="line 3: attribute 'x': a list is not a value"):
        bad.raise_errors()


def test_both_formats_say_the_same(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.cli.files.events.CHUNK_EVENTS", 2)
    rows: list[dict[str, Any]] = [
        {"time": TEXT, "in": {"x": 1}, "due": None},
        {"time": "never", "in": {"x": 2}, "due": TEXT},
        {"time": None, "in": {"x": 3}, "due": TEXT},
        {"time": TEXT, "in": None, "due": "2026-01-02"},
        {"time": TEXT, "in": {"x": None}, "due": "soon"},
    ]
    folder.write("f.jsonl", [{k: v for k, v in row.items() if v is not None} for row in rows])
    folder.write_parquet("f.parquet", pa.Table.from_pylist(rows))
    wanted = {
        0: {"time": NOON, "in.x": 1},
        3: {"time": NOON, "due": datetime(2026, 1, 2, tzinfo=UTC)},
    }
    reasons = []
    for name in ("f.jsonl", "f.parquet"):
        bad = BadLines(skip=False)
        assert events_in(read(folder, name, TIMED, bad)) == wanted
        with pytest.raises(TidegateError) as refused:
            bad.raise_errors()
        lines = str(refused.value).split("\nerror: ")
        reasons.append([line.partition(": ")[2] for line in lines])
    assert reasons[0] == reasons[1]
    assert len(reasons[0]) == 3


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"x": [1]}, "there is no column 'time'"),
        ({"time": [1]}, "column 'time': must be timestamps or strings, not int64"),
        ({"time": [TEXT], "due": [1.5]}, "column 'due': must be timestamps or strings, not double"),
        ({"time": [TEXT], "x": [[1]]}, "column 'x'"),
    ],
)
def test_columns_that_cannot_be_taken(folder: Folder, columns: dict[str, Any], reason: str) -> None:
    folder.write_parquet("f.parquet", pa.table(columns))
    with pytest.raises(TidegateError, match=rf"f\.parquet: {reason}"):
        read(folder, "f.parquet", TIMED, BadLines(skip=True))


# -- chunks -----------------------------------------------------------------------------------

SECONDS = [3, 1, 2, 1]
MOMENTS = [NOON + timedelta(seconds=second) for second in SECONDS]
CHUNKS = [
    EventChunk(np.arange(4), [Event({"time": each}, each) for each in MOMENTS], "time"),
    EventChunk(np.arange(4), pa.table({"time": MOMENTS}), "time"),
]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_events_in_the_order_of_their_times(chunk: EventChunk) -> None:
    ordered, time_us = chunk.sorted_by_time()
    assert ordered.indexes.tolist() == [1, 3, 2, 0]  # those of one time in the order of the file
    assert [event.time for event in ordered.as_events()] == sorted(MOMENTS)
    assert time_us.tolist() == [to_us(each) for each in sorted(MOMENTS)]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_slices_together_are_the_whole(chunk: EventChunk) -> None:
    slices = [chunk.slice(start, start + 3) for start in (0, 3)]
    assert [len(each) for each in slices] == [3, 1]
    joined = EventChunk.concat(slices, "time")
    assert joined.indexes.tolist() == chunk.indexes.tolist()
    assert list(joined.as_events()) == list(chunk.as_events())
    assert len(EventChunk.concat([], "time")) == 0
