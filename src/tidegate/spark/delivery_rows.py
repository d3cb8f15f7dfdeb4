"""Deliveries as Arrow has them: a row for each match, or one for each event with a list of matches.

Ids and names may be coded: each is a number then, and what numbers stand for is a dictionary beside
them. That takes a fraction of the time where an event has a hundred matches, and Parquet is written
from it as it is. Spark takes no such columns, so `plain` has the texts themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.matching.batches import VersionMatches

OUTPUT_ROWS_MAX = 200_000
"""At most so many matches are made rows at once, which bounds the memory of a worker."""

DELIVERIES = "deliveries"
"""The column that has the list of an event's matches."""


def single_rows(
    events: pa.RecordBatch, found: VersionMatches, *, coded: bool = False
) -> Iterator[pa.RecordBatch]:
    """A row for each match: the columns of the event, and what matched."""
    for begin in range(0, len(found.events), OUTPUT_ROWS_MAX):
        some = slice(begin, begin + OUTPUT_ROWS_MAX)
        rows = events.take(found.events[some])
        added = delivery_arrays(found, found.numbers[some], coded=coded)
        arrays = [*rows.columns, *added.values()]
        yield pa.RecordBatch.from_arrays(arrays, names=[*rows.schema.names, *added])


def grouped_rows(
    events: pa.RecordBatch, found: VersionMatches, *, coded: bool = False
) -> Iterator[pa.RecordBatch]:
    """A row for each event that matches anything: its columns, and the list of what matched."""
    # matches come in the order of events, so those of one stand together
    first = np.flatnonzero(np.diff(found.events, prepend=-1))
    matched, borders = found.events[first], np.append(first, len(found.events))
    begin = 0
    while begin < len(matched):
        # as many events as have few enough matches; one at the least
        most = np.searchsorted(borders, borders[begin] + OUTPUT_ROWS_MAX, "right") - 1
        end = max(begin + 1, int(most))
        inner = delivery_arrays(found, found.numbers[borders[begin] : borders[end]], coded=coded)
        offsets = pa.array((borders[begin : end + 1] - borders[begin]).astype(np.int32))
        rows = events.take(matched[begin:end])
        yield pa.RecordBatch.from_arrays(
            [*rows.columns, _lists(offsets, inner)], names=[*rows.schema.names, DELIVERIES]
        )
        begin = end


def _lists(offsets: Any, inner: dict[str, Any]) -> Any:
    """Lists of matches; what never is null is said to be so, which Parquet has less to write of."""
    fields = [
        pa.field(name, array.type, nullable=name != "subscription") for name, array in inner.items()
    ]
    structs = pa.StructArray.from_arrays(list(inner.values()), fields=fields)
    element = pa.field("element", structs.type, nullable=False)
    return pa.ListArray.from_arrays(offsets, structs, type=pa.list_(element))


def delivery_arrays(found: VersionMatches, numbers: Any, *, coded: bool = False) -> dict[str, Any]:
    """What versions deliver to whom, by the names of the result's columns."""
    chosen = pa.array(numbers)
    columns = found.columns
    texts = {"subscription": columns.subscription, "subscriber": columns.subscriber}
    chosen_texts = {
        name: _coded(column, chosen) if coded else column.take(chosen)
        for name, column in texts.items()
    }
    return {**chosen_texts, "version": columns.since.take(chosen)}


def _coded(texts: pa.StringArray, chosen: Any) -> Any:
    """Some of many texts, as codes."""
    whole = next((codes for known, codes in _CODES if known is texts), None)
    if whole is None:
        whole = texts.dictionary_encode()
        _CODES.append((texts, whole))
    # numbers stand in the table, so it needs not be seen that their codes are in the dictionary
    return pa.DictionaryArray.from_arrays(whole.indices.take(chosen), whole.dictionary, safe=False)


_CODES: deque[tuple[pa.StringArray, Any]] = deque(maxlen=4)
"""Texts of late and their codes; those of an index stay the same until it changes."""


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with texts in place of codes."""
    kinds = [_plain_type(field.type) for field in rows.schema]
    arrays: list[Any] = [
        column if kind == column.type else column.cast(kind)
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([each.with_type(_plain_type(each.type)) for each in fields])
    return kind


def matches_in(rows: pa.RecordBatch) -> int:
    """How many matches some rows have, which may be grouped."""
    if DELIVERIES not in rows.schema.names:
        return rows.num_rows
    lists: Any = rows.column(DELIVERIES)
    return len(lists.flatten())
