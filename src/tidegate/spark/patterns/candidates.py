"""Candidates: events that satisfy steps of a pattern, on their way to the pattern's state.

A candidate is an event's time, the steps that it satisfies, and those of its columns that are part
of the result. It is sent and stored as JSON, which keeps 64-bit integers, floats and strings
exactly, can be read with Spark's state reader, and, unlike pickle, runs no code when it is read.
Timestamps are microseconds in it, because Spark converts timestamps of Python rows by the local
time, where an hour of each year is ambiguous.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, functions
from pyspark.sql import types as t


class Candidate(NamedTuple):
    """An event that satisfies at least one step of a pattern."""

    time_us: int
    steps: int
    """The bit mask of the steps that the event satisfies; bit 0 is the first step."""
    event: dict[str, Any]


def candidate_json(time_us: int, steps: int, event: str) -> str:
    """The JSON of a candidate; ``event`` is JSON already."""
    return f"[{time_us},{steps},{event}]"


def join_candidates(texts: Iterable[str]) -> str:
    """The JSON of several candidates, each given as JSON."""
    return f"[{','.join(texts)}]"


def read_candidates(text: str) -> list[Candidate]:
    """Parse the output of ``join_candidates`` or ``write_candidates``.

    >>> read_candidates(join_candidates([candidate_json(5, 3, '{"x": 1}')]))
    [Candidate(time_us=5, steps=3, event={'x': 1})]
    """
    return [Candidate(*each) for each in json.loads(text)]


def write_candidates(candidates: list[Candidate]) -> str:
    """The JSON of several candidates."""
    return json.dumps(candidates, ensure_ascii=False, separators=(",", ":"))


def sorted_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates sorted by time, then by their columns (nulls first, NaN last), then by steps.

    Candidates that are equal in all of that lead to the same results, so the order of arrival,
    which a cluster does not have, does not matter.
    """
    return sorted(candidates, key=lambda each: (each.time_us, _sort_key(each.event), each.steps))


def _sort_key(value: Any) -> tuple[Any, ...]:
    """A key that orders the values of one column, including null and NaN."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(_sort_key, value.values()))
    if isinstance(value, float):
        is_nan = value != value
        return (1, is_nan, 0.0 if is_nan else value)
    return (1, value)


# -- timestamps to microseconds and back ------------------------------------------------------


def events_as_json(events: pa.RecordBatch) -> list[str]:
    """Each event of a batch as a JSON object, its timestamps as microseconds."""
    columns = {
        name: _without_times(column).to_pylist()
        for name, column in zip(events.schema.names, events.columns, strict=True)
    }
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    names = list(columns)
    return [
        encode(dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)
    ]


def _without_times(array: Any) -> Any:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    if pa.types.is_struct(kind):
        # `field` and not `flatten`, which would merge the nulls of the struct into its fields.
        parts = [_without_times(array.field(index)) for index in range(kind.num_fields)]
        names = [kind.field(index).name for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, names=names, mask=array.is_null())
    return array


def microseconds_type(kind: t.DataType) -> t.DataType:
    """The type of a column after its timestamps were converted to microseconds."""
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        return t.LongType()
    if isinstance(kind, t.StructType):
        fields = [
            t.StructField(each.name, microseconds_type(each.dataType)) for each in kind.fields
        ]
        return t.StructType(fields)
    return kind


def restored_timestamps(column: Column, kind: t.DataType) -> Column:
    """Convert a column of ``microseconds_type(kind)`` back to ``kind``."""
    if isinstance(kind, t.TimestampType):
        return functions.timestamp_micros(column)
    if isinstance(kind, t.TimestampNTZType):
        # Counted from the epoch, because a cast would use the session's time zone, where an hour of
        # each year is ambiguous.
        epoch = functions.lit("1970-01-01 00:00:00").cast(t.TimestampNTZType())
        return functions.timestamp_add("MICROSECOND", column, epoch)
    if isinstance(kind, t.StructType):
        fields = [
            restored_timestamps(column.getField(each.name), each.dataType).alias(each.name)
            for each in kind.fields
        ]
        return functions.when(column.isNotNull(), functions.struct(*fields))
    return column
