"""The event log: appends by several processes, crashes at every step, damage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import dying_append, strategies
from tidegate import Event, EventError, LogError
from tidegate.language.values import Value
from tidegate.spark.log import event_log, part_files
from tidegate.spark.log.event_columns import events_to_columns
from tidegate.spark.log.event_log import EventLog, LogRecord

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

# Appends `count` times, and says so each time: events that name their writer and append.
APPENDING = """
import sys
from tidegate.spark.log.event_log import EventLog
path, writer, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
log = EventLog(path)
for n in range(count):
    log.append([{"writer": writer, "append": n, "event": i} for i in range(size)])
    print(n, flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "log", clock=lambda: NOW)


def appending(path: Path, writer: str, count: int, size: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPENDING, str(path), writer, str(count), str(size)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def appends_in(records: Iterable[LogRecord]) -> list[tuple[str, int]]:
    """The process and number of each append; its events must be complete and adjacent."""

    def append_of(record: LogRecord) -> tuple[str, int]:
        attributes = record.event.attributes
        return str(attributes["writer"]), int(attributes["append"])  # type: ignore[arg-type]

    found = []
    for append, group in groupby(records, append_of):
        events = [record.event.attributes["event"] for record in group]
        assert events == list(range(20))
        found.append(append)
    return found


def staged_in(log: EventLog) -> list[str]:
    return os.listdir(log.path / "staging")


def exactly(value: Value) -> tuple[type, str]:
    """A text that differs for equal values of other types: 1, 1.0 and True, 0.0 and -0.0."""
    return type(value), repr(value.replace(fold=0) if isinstance(value, datetime) else value)


events = st.builds(
    Event,
    st.dictionaries(st.sampled_from([*strategies.NAMES, "_time", "é"]), strategies.values),
    st.none() | strategies.times,
)


@given(st.lists(st.lists(events, max_size=6), max_size=4), st.data())
def test_what_was_appended_is_read(appends: list[list[Event]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        log = EventLog(folder, clock=lambda: NOW)
        expected: list[Event] = []
        for some in appends:
            offsets = log.append(some)
            assert offsets == range(len(expected), len(expected) + len(some))
            expected += some
        log.create()
        assert log.end_offset() == len(expected)
        begin = data.draw(st.integers(0, len(expected)))
        end = data.draw(st.integers(begin, len(expected)))
        found = list(log.read(begin, end))
    assert [record.offset for record in found] == list(range(begin, end))
    for record, event in zip(found, expected[begin:end], strict=True):
        assert record.event.time == (event.time or NOW)
        assert record.event.time is not None
        assert record.event.time.tzinfo is UTC
        assert {n: exactly(v) for n, v in record.event.attributes.items()} == {
            n: exactly(v) for n, v in event.attributes.items()
        }


def test_absent_values_and_nested_ones(log: EventLog) -> None:
    log.append([{"a": None, "b": float("nan"), "c": {"d": 5.0}}, Event({"a": float("nan")})])
    assert [dict(record.event.attributes) for record in log.read()] == [{"c.d": 5.0}, {}]


@pytest.mark.slow
def test_large_appends_are_read_from_the_middle(log: EventLog) -> None:
    with mock.patch.object(part_files, "BATCH_EVENTS_MAX", 10):
        log.append({"n": n} for n in range(120_000))
    log.append([{"n": 120_000}])
    assert [r.event.attributes["n"] for r in log.read(49_995, 50_005)] == list(
        range(49_995, 50_005)
    )
    assert [r.offset for r in log.read(119_999)] == [119_999, 120_000]
    assert len(list(log.schemas())) == 4
    assert len(list(log.schemas(120_000))) == 1


def test_a_bad_event_stops_the_whole_append(log: EventLog) -> None:
    log.append([{"a": 1}])
    with pytest.raises(EventError, match="'b'"):
        log.append([{"a": 2}, {"b": [1]}])
    assert log.end_offset() == 1
    assert not staged_in(log)


def test_an_error_of_the_events_own_source_is_left_alone(log: EventLog) -> None:
    def source() -> Iterator[dict[str, object]]:
        yield {"a": 1}
        raise FileNotFoundError("elsewhere")

    with pytest.raises(FileNotFoundError, match="elsewhere"):
        log.append(source())
    assert log.end_offset() == 0
    assert not staged_in(log)


def test_a_batch_is_taken_once(log: EventLog) -> None:
    log.append([{"a": 0}])
    first = log.append([{"a": 1}, {"a": 2}], producer="p", batch=7)
    assert first == range(1, 3)
    log.append([{"a": 3}], producer="p", batch=8)
    assert log.append([{"a": 4}] * 5, producer="p", batch=7) == first
    assert log.append([{"a": 5}], producer="q", batch=7) == range(4, 5)
    assert [record.event.attributes["a"] for record in log.read()] == [0, 1, 2, 3, 5]


def test_a_batch_without_events_is_taken_once_too(log: EventLog) -> None:
    log.append([{"a": 0}])
    assert log.append([], producer="p", batch=0) == range(1, 1)
    assert log.append([], producer="p", batch=1) == range(1, 1)
    log.append([{"a": 1}])
    assert log.append([{"a": 2}], producer="p", batch=0) == range(1, 1)
    assert [record.event.attributes["a"] for record in log.read(1)] == [1]
    assert log.append([]) == range(2, 2)


def test_two_that_append_the_same_batch_at_once(log: EventLog) -> None:
    log.create()
    one, two = (log.stage([events_to_columns([Event({"a": n})], NOW)]) for n in range(2))
    assert log.publish([one], producer="p", batch=0) == range(1)
    assert log.publish([two], producer="p", batch=0) == range(1)
    assert [record.event.attributes["a"] for record in log.read()] == [0]
    assert not staged_in(log)


def test_what_several_have_staged_is_published_as_one(log: EventLog) -> None:
    log.create()
    staged = [
        log.stage([events_to_columns([Event({"a": n}), Event({"a": str(n)})], NOW)] * n)
        for n in range(4)
    ]
    assert log.end_offset() == 0
    log.discard([staged.pop(1)])
    assert log.publish(staged) == range(10)
    assert [record.event.attributes["a"] for record in log.read()] == [2, "2"] * 2 + [3, "3"] * 3
    assert not staged_in(log)
    with pytest.raises(LogError, match="cannot be read"):
        log.publish(staged)


def test_what_was_left_behind_is_swept_away(log: EventLog) -> None:
    log.create()
    old, young = (log.stage([events_to_columns([Event({"a": n})], NOW)]) for n in range(2))
    for staged, days in ((old, 8), (young, 6)):
        then = (NOW - timedelta(days=days)).timestamp()
        os.utime(log.path / "staging" / staged.folder, (then, then))
    log.append([{"a": 1}])
    assert staged_in(log) == [young.folder]
    with pytest.raises(LogError, match=old.folder):
        log.publish([old])


@pytest.mark.slow
def test_processes_append_at_once_while_another_reads(tmp_path: Path) -> None:
    log, seen = EventLog(tmp_path), 0
    with ExitStack() as stack:
        writers = [stack.enter_context(appending(tmp_path, name, 30, 20)) for name in "abc"]
        while any(writer.poll() is None for writer in writers):
            if (tmp_path / "format").exists():
                end = log.end_offset()
                assert end >= seen
                appends_in(log.read(seen, end))
                seen = end
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    found = appends_in(log.read())
    assert sorted(found) == [(name, n) for name in "abc" for n in range(30)]
    for name in "abc":
        assert [n for writer, n in found if writer == name] == list(range(30))


def test_a_listing_may_miss_a_segment_that_is_just_coming(log: EventLog) -> None:
    for n in range(3):
        log.append([{"a": n}])
    true = os.listdir(log.path)
    partial = [name for name in true if not name.startswith(f"{1:020}")]
    with mock.patch("os.listdir", side_effect=[partial, true]):
        assert log.end_offset() == 3


@pytest.mark.slow
def test_a_process_that_is_killed_loses_nothing_it_has_appended(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    for round_number in range(3):
        with appending(tmp_path, str(round_number), 10_000, 20) as writer:
            assert writer.stdout is not None
            done = [writer.stdout.readline() for _ in range(7 + 5 * round_number)]
            writer.kill()
        found = [n for name, n in appends_in(log.read()) if name == str(round_number)]
        assert found == list(range(len(found)))
        assert len(found) >= len(done)


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_step_leaves_all_or_nothing(tmp_path: Path) -> None:
    command = [sys.executable, dying_append.__file__, str(tmp_path)]
    died = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert died > 15
    before = []
    for step in range(1, died + 2):
        log = EventLog(tmp_path / str(step))
        before.append(log.end_offset() if (log.path / "format").exists() else 0)
        assert dying_append.append(log.path) == range(7)
        assert [dict(r.event.attributes) for r in log.read()] == dying_append.EVENTS
    assert set(before) == {0, 7}
    assert before == sorted(before)


def test_folders_that_are_no_logs(tmp_path: Path) -> None:
    for question in (EventLog.end_offset, lambda log: list(log.read())):
        with pytest.raises(LogError, match="is not an event log; an append creates one"):
            question(EventLog(tmp_path))
    (tmp_path / "letter").write_text("Dear Sir")
    with pytest.raises(LogError, match="is neither an event log nor empty"):
        EventLog(tmp_path).append([])
    with pytest.raises(LogError, match="cannot be written"):
        EventLog(tmp_path / "letter" / "log").append([])


def test_a_log_of_another_version(log: EventLog) -> None:
    log.create()
    (log.path / "format").write_text("tidegate event log 2\n")
    for use in (log.end_offset, log.create):
        with pytest.raises(LogError, match="another version"):
            use()


def test_damage_is_reported_with_the_file(log: EventLog) -> None:
    for n in range(3):
        log.append([{"a": n}, {"a": "x"}])
    folders = sorted(path for path in log.path.iterdir() if path.name[0] == "0")
    (part,) = folders[1].iterdir()
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    assert [record.offset for record in log.read(0, 2)] == [0, 1]
    with pytest.raises(LogError, match=f"{part} is damaged"):
        list(log.read())
    part.unlink()
    with pytest.raises(LogError, match=f"{folders[1]} is damaged: a part is missing"):
        list(log.read())
    folders[1].rmdir()
    with pytest.raises(LogError, match=f"{log.path} is damaged: there are segments missing"):
        log.end_offset()


@pytest.mark.parametrize(("begin", "end"), [(-1, 1), (2, 1), (0, 3), (3, None)])
def test_offsets_that_are_not_there(log: EventLog, begin: int, end: int | None) -> None:
    log.append([{"a": 1}, {"a": 2}])
    with pytest.raises(LogError, match="has 0 to 2"):
        log.read_columns(begin, end)


def test_a_full_log(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "OFFSET_MAX", 3)
    log.append([{"a": 1}] * 2)
    with pytest.raises(LogError, match="is full"):
        log.append([{"a": 1}] * 2)
    assert log.append([{"a": 1}]) == range(2, 3)
