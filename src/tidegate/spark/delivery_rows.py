"""Deliveries as Arrow rows: one row for each match, or one for each event with a list of matches.

The ids of subscriptions and subscribers may be dictionary-encoded, as Arrow calls it: the column
holds an index for each row, and the strings stand once in a dictionary beside it. Where an event
has a hundred matches, that takes a fraction of the time of copying strings, and Parquet is written
from it directly. Spark accepts no such columns, so rows that go to Spark are `decoded` first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.matching.batches import VersionMatches

OUTPUT_ROWS_MAX = 200_000
"""The number of matches that become rows at once, which bounds the memory of a worker."""

DELIVERIES = "deliveries"
"""The column with the list of an event's matches, where rows are grouped."""


def single_rows(
    events: pa.RecordBatch, matches: VersionMatches, *, encoded: bool = False
) -> Iterator[pa.RecordBatch]:
    """A row for each match: the columns of the event, then those of the matching version."""
    for begin in range(0, len(matches.events), OUTPUT_ROWS_MAX):
        chunk = slice(begin, begin + OUTPUT_ROWS_MAX)
        rows = events.take(matches.events[chunk])
        added = delivery_arrays(matches, matches.numbers[chunk], encoded=encoded)
        arrays = [*rows.columns, *added.values()]
        yield pa.RecordBatch.from_arrays(arrays, names=[*rows.schema.names, *added])


def grouped_rows(
    events: pa.RecordBatch, matches: VersionMatches, *, encoded: bool = False
) -> Iterator[pa.RecordBatch]:
    """A row for each event that matches anything: its columns, and the list of its matches."""
    # Matches are sorted by event, so those of one event are adjacent; `firsts` are the positions
    # where the event changes.
    firsts = np.flatnonzero(np.diff(matches.events, prepend=-1))
    matched, borders = matches.events[firsts], np.append(firsts, len(matches.events))
    begin = 0
    while begin < len(matched):
        # As many events as together have at most OUTPUT_ROWS_MAX matches, but at least one.
        fitting = np.searchsorted(borders, borders[begin] + OUTPUT_ROWS_MAX, "right") - 1
        end = max(begin + 1, int(fitting))
        numbers = matches.numbers[borders[begin] : borders[end]]
        inner = delivery_arrays(matches, numbers, encoded=encoded)
        offsets = pa.array((borders[begin : end + 1] - borders[begin]).astype(np.int32))
        rows = events.take(matched[begin:end])
        yield pa.RecordBatch.from_arrays(
            [*rows.columns, _list_array(offsets, inner)], names=[*rows.schema.names, DELIVERIES]
        )
        begin = end


def _list_array(offsets: Any, inner: dict[str, Any]) -> Any:
    """Lists of structs with the given columns.

    Fields that are never null are declared so: Parquet then writes no definition levels for them.
    """
    fields = [
        pa.field(name, array.type, nullable=name != "subscription") for name, array in inner.items()
    ]
    structs = pa.StructArray.from_arrays(list(inner.values()), fields=fields)
    element = pa.field("element", structs.type, nullable=False)
    return pa.ListArray.from_arrays(offsets, structs, type=pa.list_(element))


def delivery_arrays(
    matches: VersionMatches, numbers: Any, *, encoded: bool = False
) -> dict[str, Any]:
    """The columns that a delivery adds to an event, for versions given by number."""
    chosen = pa.array(numbers)
    columns = matches.columns
    strings = {"subscription": columns.subscription, "subscriber": columns.subscriber}
    chosen_strings = {
        name: _encoded(column, chosen) if encoded else column.take(chosen)
        for name, column in strings.items()
    }
    return {**chosen_strings, "version": columns.since.take(chosen)}


def _encoded(strings: pa.StringArray, chosen: Any) -> Any:
    """Some elements of a string column, dictionary-encoded."""
    whole = next((encoded for known, encoded in _ENCODED if known is strings), None)
    if whole is None:
        whole = strings.dictionary_encode()
        _ENCODED.append((strings, whole))
    # `safe=False` skips the check that every index is in the dictionary: the indices come from it.
    return pa.DictionaryArray.from_arrays(whole.indices.take(chosen), whole.dictionary, safe=False)


_ENCODED: deque[tuple[pa.StringArray, Any]] = deque(maxlen=4)
"""The columns encoded last, with their encoding. Looked up by identity: the string columns of an
index are the same objects until the index changes, so each is encoded once and not per chunk."""


def decoded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with strings in place of dictionary-encoded columns."""
    kinds = [_decoded_type(field.type) for field in rows.schema]
    arrays: list[Any] = [
        column if kind == column.type else column.cast(kind)
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)


def _decoded_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded_type(kind.value_type)))
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct([each.with_type(_decoded_type(each.type)) for each in fields])
    return kind


def matches_in(rows: pa.RecordBatch) -> int:
    """The number of matches in rows of deliveries, single or grouped."""
    if DELIVERIES not in rows.schema.names:
        return rows.num_rows
    lists: Any = rows.column(DELIVERIES)
    return len(lists.flatten())
