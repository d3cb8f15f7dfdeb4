"""Rows of deliveries, with strings and dictionary-encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.matching.batches import VersionColumns, VersionMatches
from tidegate.spark import delivery_rows
from tidegate.spark.delivery_rows import (
    decoded,
    delivery_arrays,
    grouped_rows,
    matches_in,
    single_rows,
)

EVENTS = pa.record_batch({"n": pa.array([10, 11, 12, 13])})
SUBSCRIBERS = ["me", None, "you", "me"]


def found(pairs: list[tuple[int, int]], subscribers: list[str | None] = SUBSCRIBERS) -> Any:
    """Matches of events with versions by number; the first and last version have the same id."""
    columns = VersionColumns(
        pa.array(["a", "b", "c", "a"]),
        pa.array(subscribers, pa.string()),
        pa.array([1, None, 3, 4], pa.timestamp("us", "UTC")),
    )
    events, numbers = zip(*pairs, strict=True) if pairs else ((), ())
    return VersionMatches(np.array(events, np.int64), np.array(numbers, np.int32), columns)


PAIRS = [(0, 3), (0, 1), (2, 0), (2, 1), (2, 2), (3, 0)]
TOLD = [(10, "a"), (10, "b"), (12, "a"), (12, "b"), (12, "c"), (13, "a")]


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("subscribers", [SUBSCRIBERS, [None] * 4])
def test_a_row_for_each_match(encoded: bool, subscribers: list[str | None]) -> None:
    matches = found(PAIRS, subscribers)
    [rows] = single_rows(EVENTS, matches, encoded=encoded)
    assert pa.types.is_dictionary(rows.schema.field("subscription").type) is encoded
    told = decoded(rows).to_pylist()
    assert [(row["n"], row["subscription"]) for row in told] == TOLD
    assert [row["subscriber"] for row in told] == [subscribers[number] for _, number in PAIRS]
    assert decoded(rows).schema.field("subscriber").type == pa.string()
    assert matches_in(rows) == len(PAIRS)


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("most", [1, 2, 1000])
def test_a_list_for_each_event(encoded: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_rows, "OUTPUT_ROWS_MAX", most)
    chunks = list(grouped_rows(EVENTS, found(PAIRS), encoded=encoded))
    told = [row for rows in chunks for row in decoded(rows).to_pylist()]
    assert [(row["n"], each["subscription"]) for row in told for each in row["deliveries"]] == TOLD
    assert [row["n"] for row in told] == [10, 12, 13]
    assert sum(map(matches_in, chunks)) == len(PAIRS)
    assert len(chunks) == (1 if most == 1000 else 3)


def test_nothing_found_is_no_rows() -> None:
    assert list(single_rows(EVENTS, found([]))) == []
    assert list(grouped_rows(EVENTS, found([]), encoded=True)) == []


def test_strings_are_encoded_once_and_again_when_they_change() -> None:
    matches = found(PAIRS)
    first, second = (delivery_arrays(matches, matches.numbers, encoded=True) for _ in range(2))
    assert first["subscription"].dictionary.equals(second["subscription"].dictionary)
    assert first["subscription"].dictionary.to_pylist() == ["a", "b", "c"]
    other = found(PAIRS, ["x", "x", None, "y"])
    column = delivery_arrays(other, other.numbers, encoded=True)["subscriber"]
    assert column.dictionary_decode().to_pylist() == ["y", "x", "x", "x", None, "x"]


def test_columns_that_are_not_encoded_stay_as_they_are() -> None:
    rows = pa.RecordBatch.from_pylist([{"a": 1, "s": {"t": "x"}, "l": ["y"]}])
    assert decoded(rows).equals(rows)
