"""Events as rows of floats, one for each channel, as the kernels read them.

A channel of another kind than the value has NaN, which satisfies no bounds. A float is exact for
booleans, numbers of strings and timestamps. Numbers and microseconds beyond 2**53 become the
nearest float; what decides about them, and about the order of strings, are their order labels, in a
channel of their own (entries/orders.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.language.expressions import as_float
from tidegate.language.values import Kind, Value, kind_of, to_us
from tidegate.matching.arrays import F64, I32, I64, NO_TIME
from tidegate.matching.batches import Column, EventBatch, presence
from tidegate.matching.rows.entries.channels import NUMBER, PATTERNS, PRESENT, Channels
from tidegate.matching.rows.entries.orders import ORDERED
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, STRING, TIME
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.store.cells import StringPool


class Encoded(NamedTuple):
    """Events as a matrix with a row for each, and the sets of pattern numbers.

    In a channel of patterns the matrix has the number of a set. Set ``s`` is
    `set_value[set_first[s]:set_first[s + 1]]`, in ascending order.
    """

    matrix: F64
    set_first: I32
    set_value: F64


def write_event_times(encoded: Encoded, channels: Channels, times_us: I64) -> None:
    """Write the times of events, NO_TIME if unknown, to the channel of lifetimes, if there is one.

    A time beyond 2**53 us (the year 2255) is rounded to a float, as the lifetimes are; the table
    has them exactly.
    """
    channel = channels.known_lifetime
    if channel is not None:
        encoded.matrix[:, channel] = np.where(times_us == NO_TIME, np.nan, times_us)


class _SetCollector:
    """Collects the sets of pattern numbers of some events."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._sets: list[I32] = []

    def add(self, attribute: str, text: str) -> float:
        """Add the set of the patterns that a string satisfies; returns its number, as a float."""
        self._sets.append(self._channels.satisfied(attribute, text))
        return float(len(self._sets) - 1)

    def encoded(self, matrix: F64) -> Encoded:
        """A matrix together with the sets that it refers to."""
        if not self._sets:
            return Encoded(matrix, _NO_SET_FIRST, _NO_SET_VALUE)
        first = np.cumsum([0, *map(len, self._sets)], dtype=np.int32)
        return Encoded(matrix, first, np.concatenate(self._sets).astype(np.float64))


_NO_SET_FIRST: I32 = np.zeros(1, np.int32)
_NO_SET_VALUE: F64 = np.zeros(0)
_NO_STRINGS = StringPool()
_NO_VARIABLES: F64 = np.full((1, 1), np.nan)


def encode_event(attributes: Mapping[str, Value], channels: Channels, pool: StringPool) -> Encoded:
    """Encode one event, as a matrix of one row."""
    # at least one column: probes of entries without constraints read the first
    numbers = [math.nan] * max(1, channels.columns)
    of_attribute = channels.of_attribute
    sets = _SetCollector(channels)
    for name, value in attributes.items():
        known = of_attribute.get(name)
        if known is None:
            continue
        kind_of_value = _KIND_OF_TYPE[type(value)]
        for kind, channel in known:
            if kind == kind_of_value:
                numbers[channel] = _as_float(value, pool)
            elif kind == PRESENT:
                numbers[channel] = 1.0
            elif kind == PATTERNS and isinstance(value, str):
                numbers[channel] = sets.add(name, value)
            elif kind == ORDERED + kind_of_value:
                numbers[channel] = _place(name, value, kind_of_value, channels)
    return sets.encoded(np.array([numbers], np.float64))


_KIND_OF_TYPE: dict[type, int] = {
    bool: BOOLEAN,
    int: NUMBER,
    float: NUMBER,
    str: STRING,
    datetime: TIME,
}


def _as_float(value: Value, pool: StringPool) -> float:
    """A value as a float of the channel of its kind; -1 for a string that no filter mentions."""
    kind = type(value)
    if kind is float or kind is int:  # most values are; so this is asked first
        # turns -0.0 into 0.0, whose bits are hashed
        return value + 0.0  # type: ignore[operator]
    if isinstance(value, str):
        return float(pool.find(value))
    if isinstance(value, datetime):
        return float(to_us(value))
    return float(value)


def encode_columns(
    columns: Sequence[tuple[str, Column]],
    begin: int,
    length: int,
    channels: Channels,
    pool: StringPool,
) -> Encoded:
    """Encode some events of a batch, given as columns.

    An attribute whose kind differs from event to event has several columns, so a channel that was
    written already keeps its values where the new column has none.
    """
    matrix = np.full((length, max(1, channels.columns)), np.nan)
    written: set[int] = set()
    sets = _SetCollector(channels)
    for name, column in columns:
        for kind, channel in channels.of_attribute.get(name, ()):
            chunk = column.slice(begin, length)
            if kind >= ORDERED:
                encoded = _encode_ordered(name, chunk, kind - ORDERED, channels)
            elif kind != PATTERNS:
                encoded = _encode_column(chunk, kind, pool)
            elif _has_strings(chunk):
                encoded = _encode_strings(chunk, partial(sets.add, name))
            else:
                continue
            if encoded is None:
                continue
            if channel in written:
                encoded = np.where(np.isnan(encoded), matrix[:, channel], encoded)
            matrix[:, channel] = encoded
            written.add(channel)
    return sets.encoded(matrix)


def _encode_column(column: Column, kind: int, pool: StringPool) -> F64 | None:
    """A column as the floats of a channel; None if its values are of another kind."""
    types = pa.types
    if kind == PRESENT:
        return np.where(presence(column), 1.0, np.nan)
    if kind == NUMBER and (types.is_floating(column.type) or types.is_integer(column.type)):
        return _floats(column)
    if kind == BOOLEAN and types.is_boolean(column.type):
        return _floats(column.cast(pa.int8()))
    if kind == TIME and types.is_timestamp(column.type):
        return _floats(column.cast(pa.int64()))
    if kind == STRING and _has_strings(column):
        return _encode_strings(column, pool.find)
    return None


def _encode_ordered(name: str, column: Column, kind: int, channels: Channels) -> F64 | None:
    """A column as the numbers of an ordered channel; None if its values are of another kind."""
    if kind == STRING:
        place = channels.orders.strings(name).place
        return _encode_strings(column, place) if _has_strings(column) else None
    floats = _encode_column(column, kind, _NO_STRINGS)
    if floats is None:
        return None
    numbers = channels.orders.long(name, kind)
    # whatever is smaller lies in one gap, because all bounds are long
    places = np.where(np.isnan(floats), np.nan, float(numbers.place(0)))
    exact = column.cast(pa.int64()) if kind == TIME else column
    for index in np.flatnonzero(np.abs(floats) >= EXACT_MAX).tolist():
        places[index] = numbers.place(exact[index].as_py())
    return places


def _place(name: str, value: Value, kind: int, channels: Channels) -> int:
    """The number of a value in an ordered channel."""
    if isinstance(value, str):
        return channels.orders.strings(name).place(value)
    number = to_us(value) if isinstance(value, datetime) else value
    return channels.orders.long(name, kind).place(number)


def _has_strings(column: Column) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_dictionary(column.type))


def _floats(column: Column) -> F64:
    """A column of numbers as floats, NaN for null; without -0.0, as in ``_as_float``."""
    if column.null_count == 0:
        result: F64 = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return result
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, values, np.nan)


def _encode_strings(column: Column, number: Callable[[str], float]) -> F64:
    """A column of strings as numbers, NaN for null; ``number`` is called once for each string."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    # one NaN more, at the end, for nulls; the index may need more bits than those of the column
    numbers = np.array([np.nan if t is None else number(t) for t in texts] + [np.nan])
    indices = coded.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    result: F64 = numbers[indices]
    return result


def encode_variables(variables: Mapping[str, Value], channels: Channels) -> F64:
    """Encode the variables that programs use, as one row; NaN for what is not a number.

    Kinds that were not expected are noticed: what was compiled for other kinds is to be made again.
    """
    if not channels.variable_columns:
        return _NO_VARIABLES
    row = np.full((1, channels.variable_columns), np.nan)
    for name, column in channels.variables.items():
        value = variables.get(name)
        number = as_float(value)
        if number is not None:
            row[0, column] = number
        if value is not None:
            kind = kind_of(value)
            if kind in _COMPUTED and kind not in channels.variable_kinds.get(name, _NUMBER):
                channels.noticed_kinds[name] = kind
    return row


_COMPUTED = (Kind.NUMBER, Kind.TIME)
"""Kinds of values that can be computed with."""
_NUMBER = frozenset([Kind.NUMBER])


def encode_batch_variables(batch: EventBatch, times_us: I64, channels: Channels) -> F64:
    """Encode the variables of some events of a batch, as a row for each event.

    One row for all if no provider is asked, so that no variable depends on the time.
    """
    provided = [name for name in channels.variables if batch.variables.is_provided(name)]
    if not provided:
        return encode_variables(batch.variables.at(None), channels)
    times, which = np.unique(times_us, return_inverse=True)
    moments = [batch.variables_at(None if time == NO_TIME else time) for time in times.tolist()]
    rows: F64 = np.concatenate([encode_variables(each, channels) for each in moments])[which]
    return rows
