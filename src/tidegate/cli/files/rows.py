"""Files of rows, as subscriptions and changes are: each row an object of named fields."""

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

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class RowLayout(Generic[Made]):
    """What the rows of a file are, which fields they may and must have, and how one is taken."""

    what: str
    fields: tuple[str, ...]
    required: tuple[str, ...]
    make: Callable[[Mapping[str, object]], Made]


def read_rows(
    file: InputFile, layout: RowLayout[Made], bad: BadLines, advance: Advance
) -> Iterator[tuple[int, Made]]:
    """What each row of a file is, with its number; bad rows are noted."""
    for number, raw in _rows(file, layout, advance):
        try:
            made = layout.make(decode_line(raw) if isinstance(raw, bytes) else raw)
        except TidegateError as error:
            bad.add(file, number, error)
        else:
            yield number, made


def _rows(
    file: InputFile, layout: RowLayout[Made], advance: Advance
) -> Iterator[tuple[int, bytes | dict[str, object]]]:
    if not file.is_parquet:
        yield from file.lines(advance)
        return
    _check_columns(file, layout)
    for start, table in file.tables(TABLE_ROWS_MAX, advance):
        try:
            yield from enumerate(rows_of(table), start)
        except TidegateError as error:
            raise file.error(error) from None


def _check_columns(file: InputFile, layout: RowLayout[Made]) -> None:
    """Refuse a Parquet file as a whole where each of its rows would be wrong."""
    names = file.schema.names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise file.error(f"column {twice[0]!r} stands there twice")
    missing = [name for name in layout.required if name not in names]
    if missing:
        raise file.error(f"there is no column {missing[0]!r}")
    try:
        check_fields(dict.fromkeys(names), layout.fields, layout.what)
    except TidegateError as error:
        raise file.error(error) from None
