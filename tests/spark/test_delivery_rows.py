"""Rows of deliveries, plain and coded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.matching.batches import VersionColumns, VersionMatches
from tidegate.spark import delivery_rows
from tidegate.spark.delivery_rows import (
    delivery_arrays,
    grouped_rows,
    matches_in,
    plain,
    single_rows,
)

EVENTS = pa.record_batch({"n": pa.array([10, 11, 12, 13])})
SUBSCRIBERS = ["me", None, "you", "me"]


def found(pairs: list[tuple[int, int]], subscribers: list[str | None] = SUBSCRIBERS) -> Any:
    """Matches of events with versions, by number; the first and the last are of one id."""
    columns = VersionColumns(
        pa.array(["a", "b", "c", "a"]),
        pa.array(subscribers, pa.string()),
        pa.array([1, None, 3, 4], pa.timestamp("us", "UTC")),
    )
    events, numbers = zip(*pairs, strict=True) if pairs else ((), ())
    return VersionMatches(np.array(events, np.int64), np.array(numbers, np.int32), columns)


PAIRS = [(0, 3), (0, 1), (2, 0), (2, 1), (2, 2), (3, 0)]
TOLD = [(10, "a"), (10, "b"), (12, "a"), (12, "b"), (12, "c"), (13, "a")]


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("subscribers", [SUBSCRIBERS, [None] * 4])
def test_a_row_for_each_match(coded: bool, subscribers: list[str | None]) -> None:
    matches = found(PAIRS, subscribers)
    [rows] = single_rows(EVENTS, matches, coded=coded)
    assert pa.types.is_dictionary(rows.schema.field("subscription").type) is coded
    told = plain(rows).to_pylist()
    assert [(row["n"], row["subscription"]) for row in told] == TOLD
    assert [row["subscriber"] for row in told] == [subscribers[number] for _, number in PAIRS]
    assert plain(rows).schema.field("subscriber").type == pa.string()
    assert matches_in(rows) == len(PAIRS)


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("most", [1, 2, 1000])
def test_a_list_for_each_event(coded: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_rows, "OUTPUT_ROWS_MAX", most)
    pieces = list(grouped_rows(EVENTS, found(PAIRS), coded=coded))
    told = [row for rows in pieces for row in plain(rows).to_pylist()]
    assert [(row["n"], each["subscription"]) for row in told for each in row["deliveries"]] == TOLD
    assert [row["n"] for row in told] == [10, 12, 13]
    assert sum(map(matches_in, pieces)) == len(PAIRS)
    assert len(pieces) == (1 if most == 1000 else 3)


def test_nothing_found_is_no_rows() -> None:
    assert list(single_rows(EVENTS, found([]))) == []
    assert list(grouped_rows(EVENTS, found([]), coded=True)) == []


def test_texts_are_coded_once_and_anew_when_they_change() -> None:
    matches = found(PAIRS)
    first, second = (delivery_arrays(matches, matches.numbers, coded=True) for _ in range(2))
    assert first["subscription"].dictionary.equals(second["subscription"].dictionary)
    assert first["subscription"].dictionary.to_pylist() == ["a", "b", "c"]
    other = found(PAIRS, ["x", "x", None, "y"])
    coded = delivery_arrays(other, other.numbers, coded=True)["subscriber"]
    assert coded.dictionary_decode().to_pylist() == ["y", "x", "x", "x", None, "x"]


def test_what_is_not_coded_stays_as_it_is() -> None:
    rows = pa.RecordBatch.from_pylist([{"a": 1, "s": {"t": "x"}, "l": ["y"]}])
    assert plain(rows).equals(rows)
