"""Projecting the columns of a log to the columns of a DataFrame.

A column of a DataFrame is the attribute of the same name; a struct holds the attributes whose names
begin with its own name and a dot. Two names are special: ``_offset`` is the offset of the event in
the log (of a broker: its position in the queue), ``_time`` its publication time.

A column can hold a value if it is exact in the type of the column: an integer fits a column of
doubles, unless it would have to be rounded. Any other value is a mismatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from reprlib import repr as shortened
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidegate.errors import EventError, LogError
from tidegate.matching.arrays import I64
from tidegate.spark.log.event_columns import TIME_TYPE, VALUE_TYPES, LogColumn, values_of
from tidegate.spark.log.part_files import BATCH_EVENTS_MAX

Offsets = int | I64
"""The offset of the first event of a batch, or those of all where they have gaps."""

ArrowType = Any
"""A data type of Arrow; the stubs cannot create a column of a type known only at run time."""

OFFSET, TIME = "_offset", "_time"

_SPECIAL: dict[str, DataType] = {OFFSET: LongType(), TIME: TimestampType()}
_COLUMN_TYPES = (
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    StringType,
    TimestampType,
    TimestampNTZType,
)
_SPARK_TYPES: dict[pa.DataType, DataType] = {
    pa.bool_(): BooleanType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    TIME_TYPE: TimestampType(),
}


def check_columns(schema: StructType) -> None:
    """Raise LogError for columns that events cannot have.

    >>> check_columns(StructType().add("price", "double").add("day", "date"))
    Traceback (most recent call last):
        ...
    tidegate.errors.LogError: column 'day' is of date, which no value of an event has; ...
    """
    names: set[str] = set()
    if not schema.fields:
        raise LogError("there are no columns")
    for name, field in _leaves(schema, ""):
        if name in names:
            raise LogError(f"there are two columns for the attribute {name!r}")
        names.add(name)
        if name in _SPECIAL and field.dataType != _SPECIAL[name]:
            kind = _SPECIAL[name].simpleString()
            raise LogError(
                f"column {name!r} is of {field.dataType.simpleString()}, but must be of {kind}"
            )
        if not isinstance(field.dataType, _COLUMN_TYPES):
            raise LogError(
                f"column {name!r} is of {field.dataType.simpleString()}, which no value of an "
                "event has; use booleans, integers, floats, strings, timestamps or structs of them"
            )


def _leaves(schema: StructType, prefix: str) -> Iterator[tuple[str, StructField]]:
    """The fields that are not structs, with their dotted names."""
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from _leaves(field.dataType, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, field


def infer_columns(schemas: Iterable[pa.Schema]) -> StructType:
    """The columns that can hold all events of a log: the special ones, then each attribute.

    Nested attributes keep their dotted names. An attribute with integers and floats becomes a
    column of doubles.
    """
    types: dict[str, DataType] = {}
    for schema in schemas:
        for arrow_field in list(schema)[1:]:
            kind = _SPARK_TYPES[arrow_field.type]
            types[arrow_field.name] = _common_type(
                arrow_field.name, types.get(arrow_field.name), kind
            )
    if not types:
        raise LogError("the log has no events to infer columns from; give a schema")
    for special in _SPECIAL:
        if special in types:
            raise LogError(f"the name of attribute {special!r} is taken; give a schema")
    columns = StructType([StructField(name, kind) for name, kind in _SPECIAL.items()])
    for name in sorted(types):
        columns.add(StructField(name, types[name]))
    return columns


def _common_type(name: str, one: DataType | None, other: DataType) -> DataType:
    """The type of a column that can hold values of two types."""
    if one is None or one == other:
        return other
    if {type(one), type(other)} == {LongType, DoubleType}:
        return DoubleType()
    raise LogError(
        f"attribute {name!r} is {one.simpleString()} in some events and {other.simpleString()} in "
        "others; give a schema, and onMismatch=null to read the others as null"
    )


class Projection:
    """Converts columns of a log to the columns of a schema."""

    def __init__(self, schema: StructType, *, mismatch_to_null: bool) -> None:
        check_columns(schema)
        self._schema = schema
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._mismatch_to_null = mismatch_to_null

    def apply(self, batches: Iterable[tuple[Offsets, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Batches for Spark; small ones are joined, because each batch has a fixed cost."""
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for first, batch in batches:
            if waiting and rows + batch.num_rows > BATCH_EVENTS_MAX:
                yield _joined(waiting)
                waiting, rows = [], 0
            waiting.append(self.project(first, batch))
            rows += batch.num_rows
        if waiting:
            yield _joined(waiting)

    def project(self, offsets: Offsets, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert one batch, whose events have these offsets."""
        if isinstance(offsets, int):
            offsets = np.arange(offsets, offsets + batch.num_rows)
        source = _ColumnSource(offsets, batch, self._mismatch_to_null)
        arrays = [
            source.column(field, arrow.type, "")
            for field, arrow in zip(self._schema.fields, self._arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined: pa.RecordBatch = pa.concat_batches(batches)  # type: ignore[attr-defined] # not in stubs
    return joined


class _ColumnSource:
    """The columns of one batch, by the name of their attribute."""

    def __init__(self, offsets: I64, batch: pa.RecordBatch, mismatch_to_null: bool) -> None:
        self._offsets = offsets
        self._rows = batch.num_rows
        self._mismatch_to_null = mismatch_to_null
        self._times = batch.column(0)
        self._columns: dict[str, list[LogColumn]] = {}
        for name, column in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
            self._columns.setdefault(name, []).append(column)

    def column(self, field: StructField, kind: ArrowType, prefix: str) -> LogColumn:
        """The column for a field of the schema; ``prefix`` is the name of the struct it is in."""
        name = prefix + field.name
        if isinstance(field.dataType, StructType):
            column = self._struct(field.dataType, kind, name + ".")
        elif name == OFFSET:
            return pa.array(self._offsets)
        elif name == TIME:
            return self._times
        else:
            column = self._attribute(name, field.dataType, kind)
        if not field.nullable and column.null_count:
            offset = self._offsets[column.is_null().to_pylist().index(True)]
            raise EventError(
                f"column {name!r} must not be null, but the event at offset {offset} has no such "
                "attribute"
            )
        return column

    def _struct(self, inner: StructType, kind: ArrowType, prefix: str) -> LogColumn:
        """A struct, which is null where all of its attributes are absent."""
        fields = [kind.field(index) for index in range(kind.num_fields)]
        arrays = [
            self.column(field, arrow.type, prefix)
            for field, arrow in zip(inner.fields, fields, strict=True)
        ]
        absent = np.ones(self._rows, np.bool_)
        for array in arrays:
            absent &= array.is_null().to_numpy(zero_copy_only=False)
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(absent))

    def _attribute(self, name: str, wanted: DataType, kind: ArrowType) -> LogColumn:
        """The values of an attribute as one column."""
        merged: LogColumn = None
        for column in self._columns.get(name, ()):
            cast = _cast_exactly(column, kind)
            if cast.null_count > column.null_count and not self._mismatch_to_null:
                raise self._mismatch(name, wanted, column, cast)
            # An event has one value of an attribute, so at most one of the columns is not null.
            merged = cast if merged is None else pc.coalesce(merged, cast)
        return pa.nulls(self._rows, kind) if merged is None else merged

    def _mismatch(
        self, name: str, wanted: DataType, column: LogColumn, cast: LogColumn
    ) -> EventError:
        """The error for the first value that the cast has lost."""
        lost = pc.and_(cast.is_null(), column.is_valid())
        index = lost.to_pylist().index(True)
        value = values_of(column.slice(index, 1))[0]
        return EventError(
            f"column {name!r} is of {wanted.simpleString()}, but the event at offset "
            f"{self._offsets[index]} has the {VALUE_TYPES[column.type]} {shortened(value)}; give "
            "the column another type, or set onMismatch=null to read such values as null"
        )


def _cast_exactly(column: LogColumn, kind: ArrowType) -> LogColumn:
    """A column cast to another type, with nulls for values that are not exact in it."""
    if column.type == kind:
        return column
    if column.type == TIME_TYPE and pa.types.is_timestamp(kind):
        return column.cast(kind)
    if column.type not in (pa.int64(), pa.float64()) or not _is_number(kind):
        return pa.nulls(len(column), kind)
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    target = np.dtype(kind.to_pandas_dtype())
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(target)
        fits = _is_exact(values, cast, target)
    present = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(cast, kind, mask=~(fits & present))


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_exact(
    values: npt.NDArray[Any], cast: npt.NDArray[Any], target: np.dtype[Any]
) -> npt.NDArray[np.bool_]:
    """Which numbers are unchanged by a cast from 64-bit integers or floats to a numeric type."""
    if target.kind == "i":
        # The upper bound is exclusive, because 2.0**63 is a float but 2**63 - 1 is not.
        low, above = -(2.0 ** (8 * target.itemsize - 1)), 2.0 ** (8 * target.itemsize - 1)
        if values.dtype.kind == "i":
            return np.asarray(cast == values)
        return np.asarray((values >= low) & (values < above) & (values == np.floor(values)))
    if values.dtype.kind == "i":
        # Cast back and compared; 2.0**63, to which the largest integers round, cannot be cast back.
        back = np.where(cast < 2.0**63, cast, 0).astype(np.int64)
        return np.asarray((cast < 2.0**63) & (back == values))
    return np.asarray(cast == values)
