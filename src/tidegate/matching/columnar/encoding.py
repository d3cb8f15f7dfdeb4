"""Events as rows of floats, one for each channel: what the kernel reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.language.expressions import as_float
from tidegate.language.values import Value, to_us
from tidegate.matching.arrays import F64, I32, I64, NO_TIME
from tidegate.matching.batches import Column, EventBatch, presence
from tidegate.matching.columnar.entries.channels import NUMBER, PATTERNS, PRESENT, Channels
from tidegate.matching.columnar.kernels.cell_kinds import BOOLEAN, STRING, TIME
from tidegate.matching.columnar.store.cells import StringPool


class Encoded(NamedTuple):
    """Events as a matrix, and the sets that stand in it by their number."""

    matrix: F64
    set_first: I32  # where a set begins; one more at the end
    set_value: F64


def tell_times(encoded: Encoded, channels: Channels, times_us: I64) -> None:
    """Let lifetimes see when events are judged, NO_TIME for those that have no time."""
    channel = channels.known_lifetime
    if channel is not None:
        encoded.matrix[:, channel] = np.where(times_us == NO_TIME, np.nan, times_us)


class _SetCollector:
    """Collects sets of numbers."""

    def __init__(self) -> None:
        self._sets: list[I32] = []

    def add(self, numbers: I32) -> float:
        """Take a set in; gives its number."""
        self._sets.append(numbers)
        return float(len(self._sets) - 1)

    def encoded(self, matrix: F64) -> Encoded:
        """A matrix together with these sets."""
        if not self._sets:
            return Encoded(matrix, _NO_SET_FIRST, _NO_SET_VALUE)
        first = np.cumsum([0, *map(len, self._sets)], dtype=np.int32)
        return Encoded(matrix, first, np.concatenate(self._sets).astype(np.float64))


_NO_SET_FIRST: I32 = np.zeros(1, np.int32)
_NO_SET_VALUE: F64 = np.zeros(0)
_NO_VARIABLES: F64 = np.full((1, 1), np.nan)


def encode_event(attributes: Mapping[str, Value], channels: Channels, pool: StringPool) -> Encoded:
    """One event, as a matrix of one row."""
    numbers = [math.nan] * max(1, len(channels))
    of_attribute = channels.of_attribute
    sets = _SetCollector()
    for name, value in attributes.items():
        for kind, channel in of_attribute.get(name, ()):
            if kind == _KIND_OF_TYPE[type(value)]:
                numbers[channel] = _as_float(value, pool)
            elif kind == PRESENT:
                numbers[channel] = 1.0
            elif kind == PATTERNS and isinstance(value, str):
                numbers[channel] = sets.add(channels.satisfied(name, value))
    return sets.encoded(np.array([numbers], np.float64))


_KIND_OF_TYPE: dict[type, int] = {
    bool: BOOLEAN,
    int: NUMBER,
    float: NUMBER,
    str: STRING,
    datetime: TIME,
}


def _as_float(value: Value, pool: StringPool) -> float:
    """A value as the channel of its kind has it."""
    if isinstance(value, str):
        return float(pool.find(value))
    if isinstance(value, datetime):
        return float(to_us(value))
    return value + 0.0


def encode_columns(
    columns: Sequence[tuple[str, Column]],
    begin: int,
    length: int,
    channels: Channels,
    pool: StringPool,
) -> Encoded:
    """Some events of a batch, as a matrix."""
    matrix = np.full((length, max(1, len(channels))), np.nan)
    written: set[int] = set()
    sets = _SetCollector()
    for name, column in columns:
        for kind, channel in channels.of_attribute.get(name, ()):
            some = column.slice(begin, length)
            if kind != PATTERNS:
                encoded = _encode_column(some, kind, pool)
            elif _holds_strings(some):
                encoded = _by_text(some, lambda text: sets.add(channels.satisfied(name, text)))  # noqa: B023
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
    types = pa.types
    if kind == PRESENT:
        return np.where(presence(column), 1.0, np.nan)
    if kind == NUMBER and (types.is_floating(column.type) or types.is_integer(column.type)):
        return _floats(column)
    if kind == BOOLEAN and types.is_boolean(column.type):
        return _floats(column.cast(pa.int8()))
    if kind == TIME and types.is_timestamp(column.type):
        return _floats(column.cast(pa.int64()))
    if kind == STRING and _holds_strings(column):
        return _by_text(column, pool.find)
    return None


def _holds_strings(column: Column) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_dictionary(column.type))


def _floats(column: Column) -> F64:
    """Numbers as floats, NaN for null; the nearest float where an integer has too many bits."""
    if column.null_count == 0:
        result: F64 = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return result
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, values, np.nan)


def _by_text(column: Column, number: Callable[[str], float]) -> F64:
    """A column of strings as numbers, found once for each that differs."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    known = np.array([np.nan if t is None else number(t) for t in texts] + [np.nan])
    places = coded.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    result: F64 = known[places]
    return result


def encode_variables(variables: Mapping[str, Value], channels: Channels) -> F64:
    """The broker's variables that programs use, in one row; NaN for those that are no numbers."""
    if not channels.variables:
        return _NO_VARIABLES
    found = [as_float(variables.get(name)) for name in channels.variables]
    return np.array([[math.nan if each is None else each for each in found]])


def encode_variables_of(batch: EventBatch, times_us: I64, channels: Channels) -> F64:
    """The same for some events of a batch: a row for each, or one if they differ in none."""
    provided = [name for name in channels.variables if batch.known.is_provided(name)]
    if not provided:
        return encode_variables(batch.known.at(None), channels)
    times, which = np.unique(times_us, return_inverse=True)
    moments = [batch.variables_at(None if time == NO_TIME else time) for time in times.tolist()]
    rows: F64 = np.concatenate([encode_variables(each, channels) for each in moments])[which]
    return rows
