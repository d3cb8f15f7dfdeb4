"""Blocks of events as the columns that brokers match."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyarrow.compute import coalesce

from tidegate.language.values import Value
from tidegate.matching.arrays import I64
from tidegate.matching.batches import Column, EventBatch
from tidegate.network.wire.body_columns import BodyColumns
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.event_shapes import EventShape

_ARROW_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    datetime: pa.timestamp("us", "UTC"),
}


def batch_of(block: EventBlock) -> EventBatch:
    """The events of a block as a batch, with their publication times.

    >>> from tidegate.language.events import Event
    >>> batch = batch_of(EventBlock.of([Event.of({"a": 1}), Event.of({"a": 2.5, "b": "x"})]))
    >>> [(name, column.to_pylist()) for name, column in batch.columns]
    [('a', [1, None]), ('a', [None, 2.5]), ('b', [None, 'x'])]
    """
    read = block.columns()
    columns = None if read is None else _columns_of(read, len(block))
    return EventBatch(
        len(block), _columns_of_rows(block) if columns is None else columns, block.times_us
    )


def _columns_of(
    read: Sequence[tuple[EventShape, I64 | None, BodyColumns]], length: int
) -> list[tuple[str, Column]] | None:
    """The columns of what a kernel has read; None if Arrow cannot take one of them."""
    columns: dict[tuple[str, Any], Column] = {}
    for shape, events, bodies in read:
        for place, name in enumerate(shape.names):
            arrays = bodies.arrays(place, events, length)
            if arrays is None:
                return None
            for each in arrays:
                before = columns.get((name, each.type))
                columns[name, each.type] = each if before is None else coalesce(before, each)
    return [(name, column) for (name, _), column in columns.items()]


def _columns_of_rows(block: EventBlock) -> list[tuple[str, Column]]:
    columns: list[tuple[str, Column]] = []
    if len(block.shapes) == 1:
        for name, values in zip(block.shapes[0].names, zip(*block.rows, strict=True), strict=True):
            columns += [(name, column) for column in _columns(values)]
        return columns
    by_name: dict[str, list[Value | None]] = {}
    for index, (shape, row) in enumerate(zip(block.shape_of.tolist(), block.rows, strict=True)):
        for name, value in zip(block.shapes[shape].names, row, strict=True):
            sparse = by_name.get(name)
            if sparse is None:
                sparse = by_name[name] = [None] * len(block)
            sparse[index] = value
    for name, column_values in by_name.items():
        columns += [(name, column) for column in _columns(column_values)]
    return columns


def _columns(values: Sequence[Value | None]) -> list[Column]:
    """The values of one attribute as a column for each of their types."""
    types = set(map(type, values))
    kinds = [each for each in _ARROW_TYPES if each in types]
    if len(kinds) == 1:
        return [pa.array(values, _ARROW_TYPES[kinds[0]])]
    return [
        pa.array([each if type(each) is kind else None for each in values], _ARROW_TYPES[kind])
        for kind in kinds
    ]
