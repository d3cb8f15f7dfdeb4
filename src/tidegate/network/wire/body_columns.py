"""The bodies of many events as columns, read by a kernel; rows in Python are made only when asked.

What the kernel does not read, because it is unusual or malformed, is left to
`values.decode_bodies`: the answer is then None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.language.values import to_us
from tidegate.matching.arrays import I64, U8, Bools
from tidegate.network.wire.kernels.bodies import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    TIME,
    gather,
    read_bodies,
)

EVENTS_MIN = 8
"""For fewer events the decoder in Python is faster."""
TIMES_US: I64 = np.array(
    [to_us(datetime.min.replace(tzinfo=UTC)), to_us(datetime.max.replace(tzinfo=UTC))], np.int64
)
"""The first and the last timestamp."""
_STRING_BYTES_MAX = 2**31 - 1
"""The bytes of one column of strings in Arrow."""


@dataclass(frozen=True, slots=True)
class BodyColumns:
    """The values of some events of one shape: arrays with a row for each event."""

    data: U8
    kinds: U8
    numbers: I64
    begins: I64

    @classmethod
    def read(
        cls, bodies: bytes | memoryview, starts: I64, events: I64, width: int
    ) -> BodyColumns | None:
        """The values of events whose bodies have ``width`` values; None if some are not read."""
        shape = (len(events), width)
        columns = cls(
            np.frombuffer(bodies, np.uint8), np.zeros(shape, np.uint8),
            np.zeros(shape, np.int64), np.zeros(shape, np.int64),
        )  # fmt: skip
        count = read_bodies(
            columns.data, starts, events, TIMES_US, columns.kinds, columns.numbers, columns.begins
        )
        return columns if count == len(events) else None

    def arrays(self, place: int, rows: I64 | None, length: int) -> list[Any] | None:
        """One attribute as Arrow arrays of ``length``, one for each type; None if it is too long.

        ``rows`` are the places of the events among all; None if these are all.
        """
        kinds, numbers = self.kinds[:, place], self.numbers[:, place]
        found = []
        for kind in (BOOL, INT, FLOAT, STRING, TIME):
            is_kind = kinds == kind
            if not is_kind.any():
                continue
            present, values = is_kind, numbers
            if rows is not None:
                present, values = np.zeros(length, np.bool_), np.zeros(length, np.int64)
                present[rows], values[rows] = is_kind, numbers
            if kind == STRING:
                strings = self._strings(place, present, values, rows)
                if strings is None:
                    return None
                found.append(strings)
            else:
                mask = None if present.all() else ~present
                found.append(_array(kind, values, mask))
        return found

    def _strings(self, place: int, present: Bools, sizes: I64, rows: I64 | None) -> Any | None:
        sizes = np.where(present, sizes, 0)
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if offsets[-1] > _STRING_BYTES_MAX:
            return None
        begins = self.begins[:, place]
        if rows is not None:
            begins = np.zeros(len(sizes), np.int64)
            begins[rows] = self.begins[:, place]
        out = np.empty(int(offsets[-1]), np.uint8)
        gather(self.data, np.ascontiguousarray(begins), sizes, offsets, out)
        valid = None
        if not present.all():
            valid = pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
        buffers = [valid, pa.py_buffer(offsets.astype(np.int32).data), pa.py_buffer(out.data)]
        return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _array(kind: int, numbers: I64, mask: Bools | None) -> Any:
    numbers = np.ascontiguousarray(numbers)
    if kind == FLOAT:
        return pa.array(numbers.view(np.float64), pa.float64(), mask=mask, from_pandas=False)
    if kind == BOOL:
        return pa.array(numbers.astype(np.bool_), pa.bool_(), mask=mask)
    if kind == TIME:
        times = numbers.view("datetime64[us]")
        return pa.array(times, pa.timestamp("us"), mask=mask).cast(pa.timestamp("us", "UTC"))
    return pa.array(numbers, pa.int64(), mask=mask)
