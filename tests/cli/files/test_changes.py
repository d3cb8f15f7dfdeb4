"""Files of changes, read in the order of their times."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.command_line import Folder
from tidegate import TidegateError
from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.changes import read_changes
from tidegate.cli.files.input_file import InputFile


def row(minute: int, id: str) -> dict[str, object]:
    return {"time": f"2026-01-02T12:{minute:02}:00Z", "op": "unsubscribe", "id": id}


def read(folder: Folder, name: str, bad: BadLines) -> list[tuple[int, str]]:
    file = InputFile(str(folder.path / name))
    return [(number, change.id) for number, change in read_changes(file, bad, lambda _: None)]


def test_they_come_in_the_order_of_their_times(folder: Folder) -> None:
    """Changes of the same time keep the order of the file; all have their row numbers."""
    rows = [row(3, "a"), row(1, "b"), row(3, "c"), row(0, "d"), row(1, "e")]
    folder.write("f.jsonl", rows)
    folder.write_parquet("f.parquet", pa.Table.from_pylist(rows))
    bad = BadLines(skip=False)
    assert read(folder, "f.jsonl", bad) == [(4, "d"), (2, "b"), (5, "e"), (1, "a"), (3, "c")]
    assert read(folder, "f.parquet", bad) == [(3, "d"), (1, "b"), (4, "e"), (0, "a"), (2, "c")]
    bad.raise_errors()


def test_bad_changes_are_collected(folder: Folder) -> None:
    folder.write("f.jsonl", [row(1, ""), {**row(1, "a"), "filter": "x"}, row(0, "b")])
    bad = BadLines(skip=False)
    assert read(folder, "f.jsonl", bad) == [(3, "b")]
    with pytest.raises(TidegateError) as refused:
        bad.raise_errors()
    first, second = str(refused.value).split("\nerror: ")
    assert first.endswith("line 1: id: is empty")
    assert second.endswith("line 2: filter: has no place in a row of op unsubscribe")
