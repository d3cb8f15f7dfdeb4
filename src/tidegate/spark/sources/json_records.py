"""Records of JSON to columns of a schema, and what is wrong with those that do not fit.

Spark's own ``from_json`` makes a mistyped field null, and a number in a string column a string,
without a word. Arrow's reader refuses both and was no slower in a trial, but it refuses a whole
batch. So a batch that it refuses is halved until the bad records stand alone, and Python's reader
then says what is wrong with each.
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
    """Why a record cannot be taken; ``drift`` says that a column has another type."""

    reason: str
    drift: bool = False


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Turns batches with the columns `VALUE` (bytes), `SOURCE` and others into batches of events.

    The columns are those of the schema, then the others, then the verdict: `BAD` with the reason,
    `RECORD` and `SOURCE`, all null for a good record. It is run by ``mapInArrow``.
    """

    schema: t.StructType
    drift_is_error: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.schema)
        for batch in batches:
            yield from self._read(batch, schema).combine_chunks().to_batches()

    def _read(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
        values, sources = batch.column(VALUE), batch.column(SOURCE)
        table = parse(values, schema)
        reasons: dict[int, str] = {}
        if table is None:
            pieces = []
            row = 0
            for piece in _split(values, schema):
                if piece is None:
                    reasons[row] = self._reason(values[row].as_py(), sources[row].as_py(), schema)
                    piece = _absent(schema)
                pieces.append(piece)
                row += len(piece)
            table = pa.concat_tables(pieces)
        for name in batch.schema.names:
            if name not in (VALUE, SOURCE):
                table = table.append_column(name, batch.column(name))
        return _with_verdict(table, reasons, values, sources)

    def _reason(self, value: bytes | None, source: str, schema: pa.Schema) -> str:
        fault = find_fault(value, self.schema) or RecordFault(_complaint(value, schema))
        if fault.drift and self.drift_is_error:
            raise EventError(f"{source}: {fault.reason}")
        return fault.reason


def parse(values: pa.Array[Any], schema: pa.Schema) -> pa.Table | None:
    """The records as a table, or None if one of them is bad."""
    if not len(values):
        return schema.empty_table()
    if values.null_count:
        return None
    try:
        texts = values.cast(pa.string())  # refuses what is not UTF-8
    except pa.ArrowInvalid:
        return None
    if not _are_framed(texts):
        texts = pc.utf8_trim_whitespace(texts)
        if not _are_framed(texts):
            return None
    try:
        table = _parse_framed(texts, schema)
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(values) else None


def _are_framed(texts: pa.Array[Any]) -> bool:
    """Whether each text begins and ends with a brace.

    If so, no record can go on in the next one, hence if there are as many objects as texts then
    each text is one object. It also keeps a lone ``null`` away from Arrow's reader, which crashes.
    """
    begin, end = pc.starts_with(texts, "{"), pc.ends_with(texts, "}")
    return bool(pc.all(pc.and_(begin, end)).as_py())


def _parse_framed(texts: pa.Array[Any], schema: pa.Schema) -> pa.Table:
    every = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined: Any = pc.binary_join(every, "\n")
    buffer = joined[0].as_buffer()
    return pj.read_json(
        cast(IO[bytes], pa.BufferReader(buffer)),
        # One block, because a record that crosses blocks is read a second time.
        read_options=pj.ReadOptions(use_threads=False, block_size=buffer.size + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        ),
    )


def _split(values: pa.Array[Any], schema: pa.Schema) -> Iterator[pa.Table | None]:
    """Tables of good records, and None for a bad one, in order; not all records are good."""
    if len(values) == 1:
        yield None
        return
    middle = len(values) // 2
    for half in (values[:middle], values[middle:]):
        table = parse(half, schema)
        if table is None:
            yield from _split(half, schema)
        else:
            yield table


def _absent(schema: pa.Schema) -> pa.Table:
    """One row without any attribute."""
    return pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)


def _with_verdict(
    table: pa.Table, reasons: dict[int, str], values: pa.Array[Any], sources: pa.Array[Any]
) -> pa.Table:
    verdict: dict[str, pa.Array[Any]] = dict.fromkeys(
        (BAD, RECORD, SOURCE), pa.nulls(len(table), pa.string())
    )
    if reasons:
        rows = range(len(table))
        shown = {row: _shown(values[row].as_py()) for row in reasons}
        places = {row: sources[row].as_py() for row in reasons}
        for name, cells in ((BAD, reasons), (RECORD, shown), (SOURCE, places)):
            verdict[name] = pa.array([cells.get(row) for row in rows], pa.string())
    for name, column in verdict.items():
        table = table.append_column(name, column)
    return table


def _shown(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def find_fault(value: bytes | None, schema: t.StructType) -> RecordFault | None:
    """What is wrong with a record, or None if nothing is found.

    >>> find_fault(b'{"price": "9.5"}', t.StructType().add("price", "double")).reason
    "column 'price' is a string, the schema says double"
    """
    if value is None:
        return RecordFault("the record has no value")
    try:
        record = json.loads(value.decode(), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        return RecordFault(f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        return RecordFault(f"not JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        return RecordFault("the record nests too deeply")
    except _TwiceError as error:
        return RecordFault(f"column {error.args[0]!r} stands in the record twice")
    except ValueError as error:  # an integer of thousands of digits
        return RecordFault(f"not JSON: {error}")
    if not isinstance(record, dict):
        return RecordFault(f"{_word(record)}, not an object")
    return _fault_in(record, schema, "")


class _TwiceError(Exception):
    """A name stands twice in an object."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
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
            f"column {name!r} is {_word(value)}, the schema says {kind.simpleString()}", drift=True
        )
    if isinstance(value, str) and isinstance(kind, t.TimestampType) and not _is_time(value):
        return RecordFault(f"column {name!r} is {_cut(value)}, not a time as 2026-01-02T03:04:05Z")
    bits = _INTEGER_BITS.get(type(kind))
    if (
        bits is not None
        and isinstance(value, int)
        and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    ):
        return RecordFault(
            f"column {name!r} is {_cut(str(value))}, too large for {kind.simpleString()}"
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


def _word(value: object) -> str:
    """The kind of a JSON value, for a message."""
    words = {bool: "a boolean", int: "an integer", float: "a number with a fraction"}
    more = {str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return (words | more)[type(value)]


def _cut(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "...")


def _complaint(value: bytes | None, schema: pa.Schema) -> str:
    """What Arrow says about a record that Python finds nothing wrong with."""
    try:
        _parse_framed(pa.array([value], pa.string()), schema)
    except pa.ArrowInvalid as error:
        return f"cannot be read: {error}"
    return "not one JSON object"
