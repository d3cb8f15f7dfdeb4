"""The columns of events and deliveries, checked before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.errors import EventError
from tidegate.language.filters import check_values
from tidegate.language.values import Value

DELIVERY_FIELDS = [
    t.StructField("subscription", t.StringType(), False),
    t.StructField("subscriber", t.StringType(), True),
    t.StructField("version", t.TimestampType(), True),
]
"""The columns that a delivery adds to the event's. `version` is the time from which the matching
version of the subscription holds; it is null where subscriptions have no times."""

GROUPED_FIELD = t.StructField(
    "deliveries", t.ArrayType(t.StructType(DELIVERY_FIELDS), False), False
)
"""The column that replaces them where deliveries are grouped by event."""

_VALUE_TYPES = (
    t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType,
    t.DecimalType, t.StringType, t.TimestampType, t.TimestampNTZType, t.DateType, t.NullType,
)  # fmt: skip


def check_events(events: DataFrame, event_time: str | None) -> None:
    """Check that each column can be an attribute, and that ``event_time`` is a timestamp column."""
    check_attributes(events, None)
    check_event_time(events, event_time)


def check_attributes(events: DataFrame, names: Collection[str] | None) -> None:
    """Check that some attributes, or all columns, have types of values."""
    for each in events.schema.fields:
        _check_type(each.name, each.dataType, names)


def check_event_time(events: DataFrame, event_time: str | None) -> None:
    """Check that ``event_time``, if given, is a timestamp column."""
    if event_time is None:
        return
    names = events.columns
    if event_time not in names:
        raise EventError(
            f"the events have no column {event_time!r} with their time; they have "
            f"{', '.join(names)}"
        )
    kind = events.schema[event_time].dataType
    if not isinstance(kind, (t.TimestampType, t.TimestampNTZType)):
        raise EventError(
            f"column {event_time!r} holds the time of events and must be of timestamps, "
            f"not {kind.simpleString()}"
        )


def used_columns(events: DataFrame, attributes: Iterable[str]) -> list[str]:
    """The columns in which attributes are: those of their names, and structs with such fields."""
    wanted = set(attributes)
    prefixes = {name[:end] for name in wanted for end, letter in enumerate(name) if letter == "."}
    return [name for name in events.columns if name in wanted or name in prefixes]


def needed_columns(events: DataFrame, names: Collection[str]) -> DataFrame:
    """The events with these columns only; sources such as Parquet then do not read the others."""
    chosen = [name for name in events.columns if name in names]
    if len(chosen) == len(events.columns) or not chosen:
        return events
    return events.select(*map(quoted_column, chosen))


def check_time_zone(events: DataFrame, event_time: str) -> None:
    """Check that the event time of a stream has a time zone.

    A `timestamp_ntz` has none: Spark derives no watermark from it, and compares it with other
    times as if it were in the session's zone, while the matcher takes it as UTC.
    """
    if isinstance(events.schema[event_time].dataType, t.TimestampNTZType):
        raise EventError(
            f"column {event_time!r} holds the time of events and is of timestamp_ntz, which has no "
            "time zone, as the time of a stream must have one; cast it to timestamp"
        )


def _check_type(name: str, kind: t.DataType, names: Collection[str] | None) -> None:
    if isinstance(kind, t.StructType):
        for each in kind.fields:
            _check_type(f"{name}.{each.name}", each.dataType, names)
        return
    if isinstance(kind, _VALUE_TYPES) or (names is not None and name not in names):
        return
    raise EventError(
        f"column {name!r} of the events is of {kind.simpleString()}, which is no value type; "
        "drop it, or take booleans, numbers, strings, timestamps or dates"
    )


def checked_variables(variables: Mapping[str, object] | None) -> dict[str, Value]:
    """The values of `@name` in filters; nulls and NaN count as absent and are left out."""
    values = check_values("variable @", variables or {})
    return {name: value for name, value in values.items() if value is not None}


def kept_columns(events: DataFrame, key: str | Sequence[str] | None, added: set[str]) -> list[str]:
    """The event's columns that are part of the result: all, or those of the key.

    ``added`` are the columns that the result has besides.
    """
    names = events.columns
    kept = names if key is None else [key] if isinstance(key, str) else list(key)
    missing = [name for name in kept if name not in names]
    if missing:
        raise EventError(
            f"the events have no column {missing[0]!r} for the key; they have {', '.join(names)}"
        )
    taken = [name for name in kept if name in added]
    if taken:
        raise EventError(
            f"the events have a column {taken[0]!r}, which the result adds; "
            "rename it, or choose other columns with `key`"
        )
    return kept


def result_schema(events: DataFrame, kept: Sequence[str], *, grouped: bool) -> t.StructType:
    """The columns of the result of a match."""
    added = [GROUPED_FIELD] if grouped else DELIVERY_FIELDS
    return t.StructType([*(events.schema[name] for name in kept), *added])


def quoted_column(name: str) -> Column:
    """The column with exactly this name; a dot in it does not lead into a struct."""
    return f.col("`" + name.replace("`", "``") + "`")
