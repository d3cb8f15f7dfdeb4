"""Schemas of events: which Spark types can hold values of attributes, and their Arrow types."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from tidegate.errors import ConnectorError
from tidegate.language.spaces import TYPE_NAMES, Space
from tidegate.language.values import Value

BAD = "_bad"
"""The reason why a record cannot be read."""
RECORD = "_record"
"""The text of that record."""
SOURCE = "_source"
"""The file or the position in a topic of that record."""

VERDICT_FIELDS = tuple(t.StructField(name, t.StringType()) for name in (BAD, RECORD, SOURCE))
"""The columns that a source adds to those of the event; all are null for a good record."""

# Without timestamp_ntz: a time without a zone is read as UTC.
_ARROW_TYPES: dict[type[t.DataType], pa.DataType] = {
    t.BooleanType: pa.bool_(),
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.StringType: pa.string(),
    t.TimestampType: pa.timestamp("us", "UTC"),
}

_SAMPLES: dict[type[t.DataType], Value] = {
    t.BooleanType: True,
    t.ByteType: 1,
    t.ShortType: 1,
    t.IntegerType: 1,
    t.LongType: 1,
    t.FloatType: 0.5,
    t.DoubleType: 0.5,
    t.StringType: "",
    t.TimestampType: datetime(2026, 1, 1, tzinfo=UTC),
}
"""A value of each type, which fits a space only if all of them do."""


def event_schema(schema: str | t.StructType, taken: frozenset[str] = frozenset()) -> t.StructType:
    """Check a schema of events, given in Spark's DDL or as a StructType.

    ``taken`` are the names of columns that the source adds. All columns of the result are nullable,
    because any attribute may be absent from an event.
    """
    if isinstance(schema, str):
        try:
            parsed = t.StructType.fromDDL(schema)
        except PySparkException as error:
            raise ConnectorError(f"the schema {schema!r} is not DDL: {error}") from error
        if not isinstance(parsed, t.StructType):
            raise ConnectorError(f"the schema {schema!r} has no columns; write 'name type, ...'")
        schema = parsed
    if not schema.fields:
        raise ConnectorError("the schema of events has no columns")
    clashes = sorted((taken | {BAD, RECORD, SOURCE}).intersection(schema.names))
    if clashes:
        raise ConnectorError(
            f"column {clashes[0]!r} of the schema has the name of a column that the source adds; "
            "rename one of them"
        )
    _check(schema, "")
    return schema.toNullable()


def check_in_space(schema: t.StructType, space: Space, prefix: str = "") -> None:
    """Raise ConnectorError unless all columns are attributes of a space, of its types.

    ``prefix`` is the name of the struct whose columns these are, with a dot.
    """
    for field in schema.fields:
        kind, name = field.dataType, prefix + field.name
        if isinstance(kind, t.StructType):
            check_in_space(kind, space, name + ".")
            continue
        reason = space.misfit(name, _SAMPLES[type(kind)])
        if reason is None:
            continue
        declared = space.attributes.get(name)
        if declared is not None:
            reason = (
                f"{name!r} is {kind.simpleString()} here and {TYPE_NAMES[declared]} in space "
                f"{space.name!r}"
            )
        raise ConnectorError(f"column {reason}" if declared else reason)


def arrow_schema(schema: t.StructType) -> pa.Schema:
    """The same schema in Arrow; timestamps are in UTC."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])


def arrow_type(kind: t.DataType) -> pa.DataType:
    """The Arrow type of an attribute with a Spark type."""
    if isinstance(kind, t.StructType):
        return pa.struct(list(arrow_schema(kind)))
    return _ARROW_TYPES[type(kind)]


def _check(schema: t.StructType, prefix: str) -> None:
    """Check the columns of a schema, or of a struct in it; ``prefix`` is the name of the struct."""
    names = schema.names
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise ConnectorError(f"column {prefix + twice[0]!r} is in the schema twice")
    for field in schema.fields:
        kind, name = field.dataType, prefix + field.name
        if isinstance(kind, t.StructType):
            _check(kind, name + ".")
        elif isinstance(kind, t.ArrayType):
            raise ConnectorError(
                f"column {name!r} is {kind.simpleString()}; a list is not a value, "
                "so send one event for each of its items"
            )
        elif type(kind) not in _ARROW_TYPES:
            raise ConnectorError(
                f"column {name!r} is {kind.simpleString()}; an attribute is a boolean, an integer, "
                "a float, a double, a string, a timestamp or a struct of these"
            )
