"""Events as rows of floats, one for each channel: what the kernel reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.language.expressions import as_float
from tidegate.language.values import Value, to_micros
from tidegate.matching.batches import Column
from tidegate.matching.constraints import NUMBER, PRESENT, Channels
from tidegate.matching.parts import (
    F64,
)
from tidegate.matching.rows import BOOLEAN, STRING, TIME, StringPool


def encode_event(attributes: Mapping[str, Value], channels: Channels, pool: StringPool) -> F64:
    """One event, as a matrix of one row."""
    numbers = [math.nan] * len(channels)
    of_attribute = channels.of_attribute
    for name, value in attributes.items():
        for kind, channel in of_attribute.get(name, ()):
            if kind == PRESENT:
                numbers[channel] = 1.0
            elif kind == _KIND_OF_TYPE[type(value)]:
                numbers[channel] = _as_float(value, pool)
    return np.array([numbers], np.float64)


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
        return float(to_micros(value))
    return value + 0.0


def encode_columns(
    columns: Sequence[tuple[str, Column]],
    begin: int,
    length: int,
    channels: Channels,
    pool: StringPool,
) -> F64:
    """Some events of a batch, as a matrix."""
    matrix = np.full((length, max(1, len(channels))), np.nan)
    written: set[int] = set()
    for name, column in columns:
        for kind, channel in channels.of_attribute.get(name, ()):
            encoded = _encode_column(column.slice(begin, length), kind, pool)
            if encoded is None:
                continue
            if channel in written:
                encoded = np.where(np.isnan(encoded), matrix[:, channel], encoded)
            matrix[:, channel] = encoded
            written.add(channel)
    return matrix


def _encode_column(column: Column, kind: int, pool: StringPool) -> F64 | None:
    types = pa.types
    if kind == PRESENT:
        return _present(column)
    if kind == NUMBER and (types.is_floating(column.type) or types.is_integer(column.type)):
        return _floats(column)
    if kind == BOOLEAN and types.is_boolean(column.type):
        return _floats(column.cast(pa.int8()))
    if kind == TIME and types.is_timestamp(column.type):
        return _floats(column.cast(pa.int64()))
    if kind == STRING and (types.is_string(column.type) or types.is_dictionary(column.type)):
        return _string_numbers(column, pool)
    return None


def _present(column: Column) -> F64:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    present: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        present = present & ~np.isnan(_floats(column))
    return np.where(present, 1.0, np.nan)


def _floats(column: Column) -> F64:
    """Numbers as floats, NaN for null; the nearest float where an integer has too many bits."""
    if column.null_count == 0:
        result: F64 = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return result
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, values, np.nan)


def _string_numbers(column: Column, pool: StringPool) -> F64:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    known = np.array([np.nan if t is None else pool.find(t) for t in texts] + [np.nan])
    places = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    result: F64 = known[places]
    return result


def encode_variables(variables: Mapping[str, Value], channels: Channels) -> F64:
    """The broker's variables that programs use; NaN for those that are no numbers."""
    result = np.full(max(1, len(channels.variables)), np.nan)
    for name, number in channels.variables.items():
        value = as_float(variables.get(name))
        if value is not None:
            result[number] = value
    return result
