"""Standard output as a sink, for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from pyspark.sql import DataFrame

_CELL_CHARS_MAX = 30


class ConsoleSink:
    """Prints a table of the first deliveries of each batch."""

    def __init__(self, rows_max: int = 20, out: TextIO | None = None) -> None:
        self._rows_max = rows_max
        self._out = out

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        # All deliveries are computed, as in every other sink, though only a few are printed.
        cached = deliveries.persist()
        count = cached.count()
        shown = [[_cell(value) for value in row] for row in cached.take(self._rows_max)]
        cached.unpersist()
        first = f", the first {len(shown)} of them" if count > len(shown) else ""
        noun = "delivery" if count == 1 else "deliveries"
        lines = [f"batch {batch_id}: {count or 'no'} {noun}{first}"]
        if shown:
            lines += _table([deliveries.columns, *shown])
        out = sys.stdout if self._out is None else self._out
        out.write("\n".join(lines) + "\n")
        out.flush()


def _cell(value: object) -> str:
    text = "" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= _CELL_CHARS_MAX else text[: _CELL_CHARS_MAX - 3] + "..."


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text, each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
