from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from tidegate.network.wire.body_columns import BodyColumns
from tidegate.network.wire.values import encode_body

TIME = datetime(2026, 1, 2, tzinfo=UTC)


def read(rows: list[list[object]]) -> BodyColumns:
    bodies = [encode_body(row) for row in rows]  # type: ignore[arg-type]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in bodies])]).astype(np.int64)
    found = BodyColumns.read(b"".join(bodies), starts, np.arange(len(rows)), len(rows[0]))
    assert found is not None
    return found


def test_a_column_for_each_type() -> None:
    found = read([[1, "a"], [2.5, "bc"], [True, "ü"], [TIME, ""], ["x", "d"]])
    first = found.arrays(0, None, 5)
    assert first is not None
    assert [each.to_pylist() for each in first] == [
        [None, None, True, None, None],
        [1, None, None, None, None],
        [None, 2.5, None, None, None],
        [None, None, None, None, "x"],
        [None, None, None, TIME, None],
    ]
    second = found.arrays(1, None, 5)
    assert second is not None
    assert [each.to_pylist() for each in second] == [["a", "bc", "ü", "", "d"]]
    for each in [*first, *second]:
        each.validate(full=True)


def test_rows_of_some_events() -> None:
    found = read([["a", 1], ["b", 2]])
    rows = np.array([3, 1], np.int64)
    strings, numbers = found.arrays(0, rows, 5), found.arrays(1, rows, 5)
    assert strings is not None
    assert numbers is not None
    assert strings[0].to_pylist() == [None, "b", None, "a", None]
    assert numbers[0].to_pylist() == [None, 2, None, 1, None]
    strings[0].validate(full=True)
