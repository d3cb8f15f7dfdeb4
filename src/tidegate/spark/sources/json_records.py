"""JSON records read into the columns of a schema, with the reasons why some cannot be read.

Spark's own ``from_json`` silently reads a field of another type as null, and a number in a string
column as a string. Arrow's reader refuses both and was no slower in a trial, but it refuses a whole
batch. So a refused batch is halved until the bad records are isolated, and each of them is parsed
by Python to find the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql import types as t

from tidegate.errors import EventError
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE, arrow_schema, arrow_type

VALUE = "_value"

_INTEGER_BITS: dict[type[t.DataType], int] = {
    t.ByteType: 8,
    t.ShortType: 16,
    t.IntegerType: 32,
    t.LongType: 64,
}
_SHOWN_CHARS_MAX = 40


@dataclass(frozen=True, slots=True)
class RecordFault:
    """Why a record cannot be read; ``drift`` is true if a column has another type."""

    reason: str
    drift: bool = False


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Turns batches with the columns `VALUE` (bytes), `SOURCE` and others into batches of events.

    The output has the columns of the schema, then the others, then the verdict: `BAD` with the
    reason, `RECORD` and `SOURCE`, all null for a good record. For `mapInArrow`.
    """

    schema: t.StructType
    drift_is_error: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.schema)
        for batch in batches:
            yield from self._read(batch, schema).combine_chunks().to_batches()

    def _read(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
        values, sources = batch.column(VALUE), batch.column(SOURCE)
        table = parse_records(values, schema)
        reasons: dict[int, str] = {}
        if table is None:
            chunks = []
            row = 0
            for chunk in _isolate_bad(values, schema):
                if chunk is None:
                    reasons[row] = self._reason(values[row].as_py(), sources[row].as_py(), schema)
                    chunk = _null_row(schema)
                chunks.append(chunk)
                row += len(chunk)
            table = pa.concat_tables(chunks)
        for name in batch.schema.names:
            if name not in (VALUE, SOURCE):
                table = table.append_column(name, batch.column(name))
        return _with_verdict(table, reasons, values, sources)

    def _reason(self, value: bytes | None, source: str, schema: pa.Schema) -> str:
        fault = find_fault(value, self.schema) or RecordFault(_arrow_error(value, schema))
        if fault.drift and self.drift_is_error:
            raise EventError(f"{source}: {fault.reason}")
        return fault.reason


def parse_records(values: pa.Array[Any], schema: pa.Schema) -> pa.Table | None:
    """The records as a table; None if one of them is bad."""
    if not len(values):
        return schema.empty_table()
    if values.null_count:
        return None
    try:
        texts = values.cast(pa.string())  # refuses what is not UTF-8
    except pa.ArrowInvalid:
        return None
    # Whitespace is trimmed only if necessary, because that copies all texts.
    if not _are_framed(texts):
        texts = pc.utf8_trim_whitespace(texts)
        if not _are_framed(texts):
            return None
    try:
        table = _parse_framed(texts, schema)
    except pa.ArrowInvalid:
        return None
    # Two objects in one text, as in {} {}, are framed too.
    return table if len(table) == len(values) else None


def _are_framed(texts: pa.Array[Any]) -> bool:
    """Whether each text begins and ends with a brace.

    All texts are parsed at once, one per line. If each is framed by braces, no object can extend
    over two texts, so if there are as many objects as texts, each text is one object. The check
    also keeps a lone ``null`` from Arrow's reader, which crashes at it.
    """
    begin, end = pc.starts_with(texts, "{"), pc.ends_with(texts, "}")
    return bool(pc.all(pc.and_(begin, end)).as_py())


def _parse_framed(texts: pa.Array[Any], schema: pa.Schema) -> pa.Table:
    one_list = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined: Any = pc.binary_join(one_list, "\n")
    buffer = joined[0].as_buffer()
    return pj.read_json(
        cast(IO[bytes], pa.BufferReader(buffer)),
        # One block for all, because a record that crosses two blocks is parsed twice.
        read_options=pj.ReadOptions(use_threads=False, block_size=buffer.size + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=True,  # records of Kafka may be pretty-printed
            unexpected_field_behavior="ignore",
        ),
    )


def _isolate_bad(values: pa.Array[Any], schema: pa.Schema) -> Iterator[pa.Table | None]:
    """Tables of good records, and None for each bad record, in order.

    At least one of the records must be bad.
    """
    if len(values) == 1:
        yield None
        return
    middle = len(values) // 2
    for half in (values[:middle], values[middle:]):
        table = parse_records(half, schema)
        if table is None:
            yield from _isolate_bad(half, schema)
        else:
            yield table


def _null_row(schema: pa.Schema) -> pa.Table:
    """One row of nulls, in the place of a bad record."""
    return pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)


def _with_verdict(
    table: pa.Table, reasons: dict[int, str], values: pa.Array[Any], sources: pa.Array[Any]
) -> pa.Table:
    """The table with the verdict on each row; ``reasons`` has the reason of each bad row."""
    verdict: dict[str, pa.Array[Any]] = dict.fromkeys(
        (BAD, RECORD, SOURCE), pa.nulls(len(table), pa.string())
    )
    if reasons:
        rows = range(len(table))
        records = {row: _decoded(values[row].as_py()) for row in reasons}
        locations = {row: sources[row].as_py() for row in reasons}
        for name, by_row in ((BAD, reasons), (RECORD, records), (SOURCE, locations)):
            verdict[name] = pa.array([by_row.get(row) for row in rows], pa.string())
    for name, column in verdict.items():
        table = table.append_column(name, column)
    return table


def _decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def find_fault(value: bytes | None, schema: t.StructType) -> RecordFault | None:
    """The first fault of a record; None if Python finds none.

    >>> find_fault(b'{"price": "9.5"}', t.StructType().add("price", "double")).reason
    "column 'price' is a string, the schema says double"
    """
    if value is None:
        return RecordFault("the record has no value")
    try:
        record = json.loads(value.decode(), object_pairs_hook=_to_object)
    except UnicodeDecodeError as error:
        return RecordFault(f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        return RecordFault(f"not JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        return RecordFault("the record nests too deeply")
    except _DuplicateNameError as error:
        return RecordFault(f"column {error.args[0]!r} is in the record twice")
    except ValueError as error:  # an integer of thousands of digits
        return RecordFault(f"not JSON: {error}")
    if not isinstance(record, dict):
        return RecordFault(f"{_type_name(record)}, not an object")
    return _fault_in(record, schema, "")


class _DuplicateNameError(Exception):
    """A name occurs twice in an object."""


def _to_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateNameError(next(name for name in names if names.count(name) > 1))
    return record


def _fault_in(record: dict[str, object], schema: t.StructType, prefix: str) -> RecordFault | None:
    for field in schema.fields:
        value = record.get(field.name)
        if value is not None:
            fault = _fault_of(value, field.dataType, prefix + field.name)
            if fault is not None:
                return fault
    return None


def _fault_of(value: object, kind: t.DataType, name: str) -> RecordFault | None:
    if isinstance(value, list):
        return RecordFault(f"column {name!r} is a list, and a list is not a value", drift=True)
    if isinstance(kind, t.StructType) and isinstance(value, dict):
        return _fault_in(value, kind, name + ".")
    if not _has_type(value, kind):
        return RecordFault(
            f"column {name!r} is {_type_name(value)}, the schema says {kind.simpleString()}",
            drift=True,
        )
    if isinstance(value, str) and isinstance(kind, t.TimestampType) and not _is_time(value):
        return RecordFault(
            f"column {name!r} is {_shortened(value)}, not a time such as 2026-01-02T03:04:05Z"
        )
    bits = _INTEGER_BITS.get(type(kind))
    if (
        bits is not None
        and isinstance(value, int)
        and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    ):
        return RecordFault(
            f"column {name!r} is {_shortened(str(value))}, too large for {kind.simpleString()}"
        )
    return None


def _has_type(value: object, kind: t.DataType) -> bool:
    if isinstance(value, bool):
        return isinstance(kind, t.BooleanType)
    if isinstance(value, int):
        return type(kind) in _INTEGER_BITS or isinstance(kind, (t.FloatType, t.DoubleType))
    if isinstance(value, float):
        return isinstance(kind, (t.FloatType, t.DoubleType))
    return isinstance(value, str) and isinstance(kind, (t.StringType, t.TimestampType))


def _is_time(text: str) -> bool:
    try:
        pa.scalar(text).cast(arrow_type(t.TimestampType()))
    except pa.ArrowInvalid:
        return False
    return True


def _type_name(value: object) -> str:
    """The type of a JSON value, for a message."""
    numbers = {bool: "a boolean", int: "an integer", float: "a number with a fraction"}
    others = {str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return (numbers | others)[type(value)]


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "...")


def _arrow_error(value: bytes | None, schema: pa.Schema) -> str:
    """Arrow's message about a record in which Python finds no fault."""
    try:
        _parse_framed(pa.array([value], pa.string()), schema)
    except pa.ArrowInvalid as error:
        return f"cannot be read: {error}"
    return "not one JSON object"
