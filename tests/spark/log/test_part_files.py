"""Part files: their limits, and what is detected when one is damaged."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate import Event, LogError
from tidegate.spark.log import part_files
from tidegate.spark.log.event_columns import columns_to_events, events_to_columns
from tidegate.spark.log.part_files import PartFile, parts_in, write_parts

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def columns(*values: object) -> pa.RecordBatch:
    return events_to_columns([Event.of({"a": value}) for value in values], NOW)


def written(folder: Path, *batches: pa.RecordBatch) -> list[PartFile]:
    write_parts(folder, batches)
    return parts_in(folder)


def with_content(part: PartFile, content: bytes) -> PartFile:
    """A file with other content, whose name has the right checksum."""
    other = PartFile(part.path, part.number, part.events, zlib.crc32(content))
    path = part.path.with_name(other.name_as(part.number))
    part.path.unlink()
    path.write_bytes(content)
    return PartFile.at(path)


def test_batches_of_the_same_columns_share_a_file(tmp_path: Path) -> None:
    one, two = written(tmp_path, columns(1), columns(2, 3), columns("x"), columns(), columns("y"))
    assert (one.events, two.events) == (3, 2)
    values = [
        [event.attributes["a"] for batch in part.batches() for event in columns_to_events(batch)]
        for part in (one, two)
    ]
    assert values == [[1, 2, 3], ["x", "y"]]
    assert two.schema().names == ["_time", "a"]


def test_files_and_batches_do_not_grow_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_files, "PART_EVENTS_MAX", 5)
    monkeypatch.setattr(part_files, "BATCH_EVENTS_MAX", 2)
    parts = written(tmp_path, columns(1, 2, 3), columns(4, 5), columns(6))
    assert [[b.num_rows for b in part.batches()] for part in parts] == [[2, 1, 2], [1]]


@pytest.mark.parametrize("place", [0, 100, -1])
def test_any_changed_byte_shows(tmp_path: Path, place: int) -> None:
    (part,) = written(tmp_path, columns(1, 2, 3))
    content = bytearray(part.path.read_bytes())
    content[place] ^= 1
    part.path.write_bytes(content)
    with pytest.raises(LogError, match=f"{part.path.name} is damaged: its checksum"):
        part.batches()


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    (part,) = written(tmp_path, columns(1, 2, 3))
    part.path.write_bytes(part.path.read_bytes()[:50])
    for question in (part.batches, part.schema):
        with pytest.raises(LogError, match=f"{part.path.name} is damaged"):
            question()


def test_files_of_another_kind(tmp_path: Path) -> None:
    (part,) = written(tmp_path, columns(1))
    part = with_content(part, b"not of Arrow" * 9)
    with pytest.raises(LogError, match=r"is damaged: .*Arrow"):
        part.batches()
    for table, reason in [
        (pa.table({"a": [1]}), "first column does not hold times"),
        (pa.table({"_time": pa.array([NOW]), "a": [[1]]}), "column 'a' has the type list"),
        (pa.table({"_time": pa.array([NOW, NOW])}), "does not hold 1 events"),
    ]:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        part = with_content(part, sink.getvalue().to_pybytes())
        with pytest.raises(LogError, match=reason):
            part.batches()


def test_files_that_are_not_there(tmp_path: Path) -> None:
    one, two = written(tmp_path, columns(1), columns("x"))
    one.path.unlink()
    with pytest.raises(LogError, match="part 0 is missing"):
        parts_in(tmp_path)
    with pytest.raises(LogError, match="cannot be read: No such file"):
        one.batches()
    two.path.rename(tmp_path / "other")
    with pytest.raises(LogError, match="other is not a part"):
        parts_in(tmp_path)
    with pytest.raises(LogError, match="cannot be read"):
        parts_in(tmp_path / "none")


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = written(tmp_path, columns(1))
    with pytest.raises(LogError, match="more than 1000000 parts"):
        part.name_as(10**6)
    monkeypatch.setattr(part_files, "FILE_BYTES_MAX", 10)
    with pytest.raises(LogError, match="at most 10 are read"):
        part.batches()
    with pytest.raises(LogError, match="at most 10 are accepted"):
        write_parts(tmp_path, [columns(1)])


def test_large_batches_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "PART_BYTES_MAX", 100)
    parts = written(tmp_path, columns(*range(50)))
    assert len(parts) > 5
    found = [
        event for part in parts for batch in part.batches() for event in columns_to_events(batch)
    ]
    assert [event.attributes["a"] for event in found] == list(range(50))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be written: No such file"):
        write_parts(tmp_path / "none", [columns(1)])
    with pytest.raises(LogError, match="cannot be written: No such file"):
        write_parts(tmp_path / "none", [])
