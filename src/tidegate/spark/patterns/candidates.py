"""Events that satisfy steps of a pattern, as they travel from the index to the pattern's state.

A candidate is an event's time, the steps that it satisfies, and the columns of it that the result
shows. It travels and is stored as JSON: that keeps 64-bit integers, floats and strings exactly,
can be read with Spark's state reader, and lets no code in. Timestamps stand in it as microseconds,
because Spark's Python rows take them through the local time, where an hour of each year is
ambiguous.
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
    """A bit for each step: the lowest is the first's."""
    event: dict[str, Any]


def candidate_text(time_us: int, steps: int, event: str) -> str:
    """The JSON of a candidate, whose event is JSON already."""
    return f"[{time_us},{steps},{event}]"


def joined(texts: Iterable[str]) -> str:
    """The JSON of several candidates."""
    return f"[{','.join(texts)}]"


def read_candidates(text: str) -> list[Candidate]:
    """The candidates of a text that ``joined`` or ``write_candidates`` made.

    >>> read_candidates(joined([candidate_text(5, 3, '{"x": 1}')]))
    [Candidate(time_us=5, steps=3, event={'x': 1})]
    """
    return [Candidate(*each) for each in json.loads(text)]


def write_candidates(candidates: list[Candidate]) -> str:
    """The JSON of several candidates."""
    return json.dumps(candidates, ensure_ascii=False, separators=(",", ":"))


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """By time; those of one time by their columns, nulls first and NaN last, then by their steps.

    Candidates that are equal in all of this are the same for every result, so the order in which
    they came, which a cluster does not have, does not matter.
    """
    return sorted(candidates, key=lambda each: (each.time_us, _rank(each.event), each.steps))


def _rank(value: Any) -> tuple[Any, ...]:
    """What makes values of one column comparable."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(_rank, value.values()))
    if isinstance(value, float):
        is_nan = value != value
        return (1, is_nan, 0.0 if is_nan else value)
    return (1, value)


# -- timestamps as microseconds, and back -----------------------------------------------------


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
        # the fields as they are stored, not flattened: the nulls of the struct stay its own
        parts = [_without_times(array.field(index)) for index in range(kind.num_fields)]
        names = [kind.field(index).name for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, names=names, mask=array.is_null())
    return array


def stored_type(kind: t.DataType) -> t.DataType:
    """The type of a column whose timestamps are microseconds."""
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        return t.LongType()
    if isinstance(kind, t.StructType):
        fields = [t.StructField(each.name, stored_type(each.dataType)) for each in kind.fields]
        return t.StructType(fields)
    return kind


def restored(column: Column, kind: t.DataType) -> Column:
    """A column of ``stored_type(kind)`` as one of ``kind`` again."""
    if isinstance(kind, t.TimestampType):
        return functions.timestamp_micros(column)
    if isinstance(kind, t.TimestampNTZType):
        # by the zone of the epoch and not of the session, whose hours may be ambiguous
        epoch = functions.lit("1970-01-01 00:00:00").cast(t.TimestampNTZType())
        return functions.timestamp_add("MICROSECOND", column, epoch)
    if isinstance(kind, t.StructType):
        fields = [
            restored(column.getField(each.name), each.dataType).alias(each.name)
            for each in kind.fields
        ]
        return functions.when(column.isNotNull(), functions.struct(*fields))
    return column
