"""Input files: lines and rows with their numbers, and errors of files that cannot be read."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from support.command_line import Folder
from tidegate import TidegateError
from tidegate.cli.files.input_file import InputFile


def file(folder: Folder, name: str) -> InputFile:
    return InputFile(str(folder.path / name))


def test_lines_have_their_numbers(folder: Folder) -> None:
    (folder.path / "f.jsonl").write_bytes(b"\xef\xbb\xbf{}\n\n  \r\n{ }\r\nlast")
    read: list[int] = []
    found = list(file(folder, "f.jsonl").lines(read.append))
    assert found == [(1, b"{}"), (4, b"{ }"), (5, b"last")]
    assert sum(read) == file(folder, "f.jsonl").size


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n\nb\n")))
    stdin = InputFile("-")
    assert (stdin.name, stdin.is_parquet, stdin.size) == ("stdin", False, 0)
    assert list(stdin.lines(lambda _: None)) == [(1, b"a"), (3, b"b")]
    assert stdin.location(3) == "stdin, line 3"


def test_tables_have_the_number_of_their_first_row(folder: Folder) -> None:
    folder.write_parquet("f.parquet", pa.table({"a": range(5)}), row_group_size=3)
    read: list[int] = []
    parquet = file(folder, "f.parquet")
    tables = list(parquet.tables(2, read.append))
    rows = [(start, table.column("a").to_pylist()) for start, table in tables]
    assert [start for start, _ in rows] == [some[0] for _, some in rows]
    assert [value for _, some in rows for value in some] == list(range(5))
    assert sum(read) == parquet.size == 5
    assert parquet.schema.names == ["a"]
    assert parquet.location(0).endswith("f.parquet, row 0")


def test_files_that_cannot_be_read(folder: Folder) -> None:
    for name in ("none.jsonl", "none.parquet"):
        with pytest.raises(TidegateError, match=f"{name}: cannot be read: No such file"):
            _ = file(folder, name).size
    with pytest.raises(TidegateError, match=r"none\.jsonl: cannot be read: No such file"):
        list(file(folder, "none.jsonl").lines(lambda _: None))
    with pytest.raises(TidegateError, match="cannot be read: Is a directory"):
        list(InputFile(str(folder.path)).lines(lambda _: None))
    Path(folder.path / "f.parquet").write_bytes(b"{}\n")
    with pytest.raises(TidegateError, match=r"f\.parquet: cannot be read as Parquet: ") as refused:
        list(file(folder, "f.parquet").tables(1, lambda _: None))
    assert "\n" not in str(refused.value)
