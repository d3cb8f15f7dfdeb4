"""Files of subscriptions and of changes as versions; bad rows are collected with numbers."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from support.command_line import Folder
from tidegate import TidegateError
from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.versions import is_log, read_log, read_table

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CHANGE: dict[str, object] = {"time": "2026-01-02T12:00:00Z", "op": "unsubscribe", "id": "a"}


def file(folder: Folder, name: str = "f.jsonl") -> InputFile:
    return InputFile(str(folder.path / name))


def ignored(_: int) -> None:
    """Progress that nobody looks at."""


def errors(bad: BadLines) -> list[str]:
    """The collected errors: lines and reasons."""
    with pytest.raises(TidegateError) as refused:
        bad.raise_errors()
    return [each.partition(", ")[2] for each in str(refused.value).split("\nerror: ")]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([CHANGE], True),
        ([{"id": "a", "filter": "x = 1"}, CHANGE], False),  # the first line decides
        (["", "  ", CHANGE], True),
        ([b"\xef\xbb\xbf{}"], False),
        (["no JSON", CHANGE], False),
        ([b"\xff"], False),
        ([], False),
    ],
)
def test_a_log_is_known_by_its_first_line(
    folder: Folder, lines: list[dict[str, object] | str | bytes], wanted: bool
) -> None:
    folder.write("f.jsonl", lines)
    assert is_log(file(folder)) is wanted


def test_a_log_is_known_by_its_columns(folder: Folder) -> None:
    folder.write_parquet("log.parquet", pa.table({"op": pa.array([], pa.string())}))
    folder.write_parquet("table.parquet", pa.table({"id": ["op"]}))
    assert is_log(file(folder, "log.parquet"))
    assert not is_log(file(folder, "table.parquet"))


def test_a_file_that_is_not_there(folder: Folder) -> None:
    for name in ("none.jsonl", "none.parquet"):
        with pytest.raises(TidegateError, match=f"{name}: cannot be read: No such file"):
            is_log(file(folder, name))


def test_what_can_be_read_only_once_is_refused(folder: Folder) -> None:
    """Its first line would be missing when it is read as what it is."""
    os.mkfifo(folder.path / "pipe")
    for path in ("-", str(folder.path / "pipe")):
        with pytest.raises(TidegateError, match=r"can be read only once, .*; give a file"):
            is_log(InputFile(path))


def test_a_table(folder: Folder) -> None:
    folder.write("f.jsonl", [
        {"id": "a", "filter": "x < :p", "params": {"p": 1}, "until": "2026-01-02T12:00:00Z"},
        {"id": "b", "filter": "x <"},
        {"id": "a", "filter": "x < 1"},
        "",
        {"id": "c", "filter": "x < :p", "params": {"q": 1}},
        {"id": "b", "filter": "true", "subscriber": "ann"},
        {"id": 1, "filter": "true"},
    ])  # fmt: skip
    bad = BadLines(skip=False)
    first, second = read_table(file(folder), bad, ignored)
    assert (first.id, first.params, first.until) == ("a", {"p": 1}, NOON)
    assert (second.id, second.subscriber) == ("b", "ann")  # the bad one before does not count
    reasons = errors(bad)
    assert [reason.partition(":")[0] for reason in reasons] == [
        "line 2", "line 3", "line 5", "line 7",
    ]  # fmt: skip
    assert reasons[1] == "line 3: there already is a subscription 'a'"
    assert reasons[2].endswith("the filter has no parameter :q; it has :p")


def test_a_log(folder: Folder) -> None:
    folder.write("f.jsonl", [
        CHANGE,  # its subscription comes later in the file
        {**CHANGE, "id": "z"},
        {"time": "2026-01-02T11:00:00Z", "op": "subscribe", "id": "a", "filter": "x = 1"},
        {**CHANGE, "op": "begin"},
    ])  # fmt: skip
    bad = BadLines(skip=False)
    [version] = read_log(file(folder), bad, ignored)
    assert (version.id, version.filter, version.until) == ("a", "x = 1", NOON)
    assert errors(bad) == [
        "line 2: there is no subscription 'z' at 2026-01-02T12:00:00+00:00",
        "line 4: op: there is no 'begin'; there are subscribe, update, unsubscribe",
    ]


def test_parquet_and_json_lines_say_the_same(folder: Folder) -> None:
    rows: list[dict[str, Any]] = [
        {"time": "2026-01-02T12:00:00Z", "op": "subscribe", "id": "a", "filter": "x = :p",
         "params": {"p": 1}},
        {"time": "2026-01-02T13:00:00Z", "op": "update", "id": "a", "params": {"p": 2}},
    ]  # fmt: skip
    folder.write("f.jsonl", rows)
    folder.write_parquet("f.parquet", pa.Table.from_pylist(rows))
    bad = BadLines(skip=False)
    versions = read_log(file(folder), bad, ignored)
    assert read_log(file(folder, "f.parquet"), bad, ignored) == versions
    assert [each.params for each in versions] == [{"p": 1}, {"p": 2}]
    bad.raise_errors()


def test_an_empty_file(folder: Folder) -> None:
    folder.write("f.jsonl", [])
    bad = BadLines(skip=False)
    assert read_table(file(folder), bad, ignored) == read_log(file(folder), bad, ignored) == []
    bad.raise_errors()
