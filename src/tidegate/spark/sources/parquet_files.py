"""Parquet files read into the columns of a schema, with the reasons why some cannot be read.

Spark's own reader fails at a file whose column has another type, and the stream fails with it.
This reader, for streams that should continue, takes the paths of files, checks the schema of each,
and reads the good files with Arrow. A bad file becomes one bad record.

The rule for drift: a column of the file is accepted if every value of its type is a value of the
type in the schema, as for int32 and bigint. It is cast then. Anything else is drift.

A file is bad if its bytes can be read and are no such Parquet. If the bytes cannot be read, that is
an error of the storage: the batch fails, and Spark reads the file again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import types as t

from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE, VERDICT_FIELDS, arrow_schema
from tidegate.spark.storage.folder import as_connector_error
from tidegate.spark.storage.locations import Credentials, folder_at

ROWS_PER_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Turns batches of paths into batches of events with their verdict; for `mapInArrow`."""

    schema: t.StructType
    credentials: Credentials

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.schema)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from _read(str(path), schema, self)


def _read(path: str, schema: pa.Schema, reader: ParquetReader) -> Iterator[pa.RecordBatch]:
    declared = reader.schema
    # Spark gives paths without escapes, so the last slash is the one before the name.
    parent, slash, name = path.rpartition("/")
    folder = folder_at(parent + slash, reader.credentials)
    with as_connector_error(folder):
        source = folder.open_input(name)
    try:
        with source, pq.ParquetFile(source) as file:
            reason = find_fault(file.schema_arrow, schema, declared)
            if reason is None:
                for batch in file.iter_batches(ROWS_PER_BATCH, columns=_columns(file, schema)):
                    yield _conformed(batch, schema)
                return
    except (pa.ArrowInvalid, OSError) as error:
        # Arrow raises an OSError for damaged content too.
        with as_connector_error(folder):
            folder.read(name)
        reason = f"cannot be read: {error}"
    # One row for the whole file: its rows cannot be read, but its path is kept.
    nulls = [pa.nulls(1, field.type) for field in schema]
    verdict = {BAD: reason, RECORD: None, SOURCE: path}
    cells = [pa.array([verdict[field.name]], pa.string()) for field in VERDICT_FIELDS]
    yield pa.RecordBatch.from_arrays(nulls + cells, schema=_with_verdict(schema))


def find_fault(found: pa.Schema, schema: pa.Schema, declared: t.StructType) -> str | None:
    """The message for the first column of a file that does not fit the schema; None if all fit.

    ``declared`` is the same schema in Spark's types, for the message.
    """
    for field, declared_field in zip(schema, declared.fields, strict=True):
        index = found.get_field_index(field.name)
        if index >= 0:
            found_type = found.field(index).type
            fault = _fault_of(found_type, field.type, declared_field.dataType, field.name)
            if fault is not None:
                return fault
    return None


def _fault_of(
    found: pa.DataType, wanted: pa.DataType, declared: t.DataType, name: str
) -> str | None:
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        assert isinstance(declared, t.StructType)
        for field, inner in zip(wanted, declared.fields, strict=True):
            index = found.get_field_index(field.name)
            if index >= 0:
                fault = _fault_of(
                    found.field(index).type, field.type, inner.dataType, f"{name}.{field.name}"
                )
                if fault is not None:
                    return fault
        return None
    if _fits(found, wanted):
        return None
    if pa.types.is_nested(found) and not pa.types.is_struct(found):
        return f"column {name!r} is a list, and a list is not a value"
    return f"column {name!r} is {found}, the schema says {declared.simpleString()}"


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of the found type is a value of the wanted one."""
    types = pa.types
    if types.is_dictionary(found):
        found = found.value_type
    if found == wanted or types.is_null(found):
        return True
    if types.is_integer(wanted):
        return types.is_signed_integer(found) and found.bit_width <= wanted.bit_width
    if types.is_floating(wanted):
        exact = 24 if wanted.bit_width == 32 else 53  # bits of the mantissa
        narrower = types.is_floating(found) and found.bit_width <= wanted.bit_width
        return narrower or (types.is_signed_integer(found) and found.bit_width <= exact)
    if types.is_timestamp(wanted):
        return bool(types.is_timestamp(found))
    return bool(types.is_string(wanted) and types.is_large_string(found))


def _columns(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name in file.schema_arrow.names]


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema, absent ones as nulls, and an empty verdict."""
    count = batch.num_rows
    columns = [
        _cast(batch.column(field.name), field.type)
        if field.name in batch.schema.names
        else pa.nulls(count, field.type)
        for field in schema
    ]
    columns += [pa.nulls(count, pa.string()) for _ in VERDICT_FIELDS]
    return pa.RecordBatch.from_arrays(columns, schema=_with_verdict(schema))


def _cast(column: pa.Array[Any], wanted: pa.DataType) -> pa.Array[Any]:
    if not pa.types.is_struct(wanted):
        return column.cast(wanted)
    found = column.type
    arrays = [
        _cast(pc.struct_field(column, field.name), field.type)
        if found.get_field_index(field.name) >= 0
        else pa.nulls(len(column), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=column.is_null())


def _with_verdict(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *(pa.field(each.name, pa.string()) for each in VERDICT_FIELDS)])
