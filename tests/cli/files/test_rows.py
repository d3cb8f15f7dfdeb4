"""Files of rows: bad rows are collected, and a file with wrong columns is refused as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from support.command_line import Folder
from tidegate import SubscriptionError, TidegateError
from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.rows import RowLayout, read_rows


def even(row: Mapping[str, object]) -> int:
    """A row whose `n` is even."""
    number = row.get("n")
    if not isinstance(number, int) or number % 2:
        raise SubscriptionError("n: is odd")
    return number


LAYOUT = RowLayout("a row", ("n", "note"), ("n",), even)


def read(folder: Folder, name: str, bad: BadLines) -> list[tuple[int, int]]:
    return list(read_rows(InputFile(str(folder.path / name)), LAYOUT, bad, lambda _: None))


def test_bad_rows_are_collected_and_the_others_read(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write("f.jsonl", [{"n": 2}, {"n": 3}, "", "[]", {"n": 4, "note": None}])
    folder.write_parquet("f.parquet", pa.table({"n": [2, 3, None, 4]}))
    bad = BadLines(skip=True)
    assert read(folder, "f.jsonl", bad) == [(1, 2), (5, 4)]
    assert read(folder, "f.parquet", bad) == [(0, 2), (3, 4)]
    bad.print_skipped()
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(", ")[2] for line in said[:4]] == [
        "line 2: n: is odd",
        "line 4: must be a JSON object, not a list",
        "row 1: n: is odd",
        "row 2: n: is odd",
    ]


def test_rows_keep_their_numbers_over_several_tables(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.cli.files.rows.TABLE_ROWS_MAX", 2)
    folder.write_parquet("f.parquet", pa.table({"n": [0, 2, 4, 6, 8]}))
    found = read(folder, "f.parquet", BadLines(skip=False))
    assert found == [(0, 0), (1, 2), (2, 4), (3, 6), (4, 8)]


TWICE: Any = pa.Table.from_arrays([pa.array([2]), pa.array([2])], names=["n", "n"])


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"note": ["x"]}), "there is no column 'n'"),
        (pa.table({"n": [2], "N": [2]}), "there is no field 'N'; a row has n, note"),
        (TWICE, "column 'n' occurs twice"),
    ],
)
def test_columns_are_checked_before_rows(folder: Folder, table: pa.Table, reason: str) -> None:
    folder.write_parquet("f.parquet", table)
    bad = BadLines(skip=True)
    with pytest.raises(TidegateError, match=rf"f\.parquet: {reason}"):
        read(folder, "f.parquet", bad)
    assert not bad.has_errors


def test_no_rows(folder: Folder) -> None:
    folder.write("f.jsonl", [])
    folder.write_parquet("f.parquet", pa.table({"n": pa.array([], pa.int64())}))
    for name in ("f.jsonl", "f.parquet"):
        assert read(folder, name, BadLines(skip=False)) == []
