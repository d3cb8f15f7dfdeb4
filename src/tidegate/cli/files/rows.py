"""Files of rows with named fields: subscriptions and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import Advance, InputFile
from tidegate.errors import TidegateError
from tidegate.matching.json_lines import decode_line
from tidegate.matching.records import check_fields, rows_of

TABLE_ROWS_MAX = 20_000

Item = TypeVar("Item")
"""The type of a parsed row."""


@dataclass(frozen=True, slots=True)
class RowLayout(Generic[Item]):
    """The fields of the rows of a file, and how a row is read."""

    kind: str
    """The kind of row, with its article, for error messages: `a change`."""
    fields: tuple[str, ...]
    required: tuple[str, ...]
    read: Callable[[Mapping[str, object]], Item]
    """Makes an item of the fields of a row; raises TidegateError."""


def read_rows(
    file: InputFile, layout: RowLayout[Item], bad: BadLines, advance: Advance
) -> Iterator[tuple[int, Item]]:
    """The items of a file, each with the number of its row; bad rows are collected in ``bad``."""
    for number, raw in _raw_rows(file, layout, advance):
        try:
            item = layout.read(decode_line(raw) if isinstance(raw, bytes) else raw)
        except TidegateError as error:
            bad.add(file, number, error)
        else:
            yield number, item


def _raw_rows(
    file: InputFile, layout: RowLayout[Item], advance: Advance
) -> Iterator[tuple[int, bytes | dict[str, object]]]:
    """The rows with their numbers: lines of JSON that are not decoded yet, or rows of Parquet."""
    if not file.is_parquet:
        yield from file.lines(advance)
        return
    _check_columns(file, layout)
    for start, table in file.tables(TABLE_ROWS_MAX, advance):
        try:
            yield from enumerate(rows_of(table), start)
        except TidegateError as error:
            raise file.error(error) from None


def _check_columns(file: InputFile, layout: RowLayout[Item]) -> None:
    """Refuse a Parquet file whose columns make every row bad."""
    names = file.schema.names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise file.error(f"column {twice[0]!r} occurs twice")
    missing = [name for name in layout.required if name not in names]
    if missing:
        raise file.error(f"there is no column {missing[0]!r}")
    try:
        check_fields(dict.fromkeys(names), layout.fields, layout.kind)
    except TidegateError as error:
        raise file.error(error) from None
