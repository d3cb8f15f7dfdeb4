"""Blocks of events as the columns that brokers match."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from tidegate.language.values import Value
from tidegate.matching.batches import Column, EventBatch
from tidegate.network.wire.event_block import EventBlock

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
    columns: list[tuple[str, Column]] = []
    if len(block.shapes) == 1:
        for name, values in zip(block.shapes[0].names, zip(*block.rows, strict=True), strict=True):
            columns += [(name, column) for column in _columns(values)]
        return EventBatch(len(block), columns, block.times_us)
    by_name: dict[str, list[Value | None]] = {}
    for index, (shape, row) in enumerate(zip(block.shape_of.tolist(), block.rows, strict=True)):
        for name, value in zip(block.shapes[shape].names, row, strict=True):
            sparse = by_name.get(name)
            if sparse is None:
                sparse = by_name[name] = [None] * len(block)
            sparse[index] = value
    for name, column_values in by_name.items():
        columns += [(name, column) for column in _columns(column_values)]
    return EventBatch(len(block), columns, block.times_us)


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
