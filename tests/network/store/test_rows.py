"""Checksums notice any change of a row, also a change of its key."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.network.store.rows import (
    EventRow,
    PositionRow,
    QueueRow,
    ShapeRow,
    StateRow,
)

ROWS: list[Any] = [
    EventRow(1, 2, 3, b"header", b"body", 0),
    QueueRow(1, 2, b"detail", 0),
    PositionRow("publisher", "p", 1, 2, 0),
    StateRow("kind", "owner", b"key", b"value", 0),
    ShapeRow(1, b"description", 0),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_each_column_counts(row: Any) -> None:
    for name, value in zip(row._fields[:-1], row, strict=False):
        changed = value + (b"\0" if isinstance(value, bytes) else "x" if value == str(value) else 1)
        assert row._replace(**{name: changed}).expected_checksum != row.expected_checksum


def test_boundary_between_columns_counts() -> None:
    one, other = StateRow("k", "o", b"ab", b"c", 0), StateRow("k", "o", b"a", b"bc", 0)
    assert one.expected_checksum != other.expected_checksum
