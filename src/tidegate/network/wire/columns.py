"""Columns of numbers in a frame, and a reader that checks that they are there before it takes them.

A layout is a table of names and NumPy types that both ends use. A frame with columns begins with a
head in MessagePack, for what is not one number for each event:

    head_size  u32        all integers are little endian
    head       head_size bytes
    ...        columns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.msgpack import Decoder, Encoder

from tidegate.errors import ProtocolError
from tidegate.matching.arrays import I64
from tidegate.network.wire.values import MALFORMED

T = TypeVar("T")
Part = bytes | memoryview
"""A piece of a frame; pieces are joined when the frame is written."""
Layout = Sequence[tuple[str, str]]
"""Names of columns, each with its type as NumPy writes it: `<u4`."""

_SIZE_BYTES = 4
_U64_TOP = np.uint64(2**63)
_encoder = Encoder()


def encode_head(head: object) -> bytes:
    """A head with its size before it."""
    encoded = _encoder.encode(head)
    return len(encoded).to_bytes(_SIZE_BYTES, "little") + encoded


def encode_count(count: int) -> bytes:
    """The number of the rows of columns that follow."""
    return count.to_bytes(_SIZE_BYTES, "little")


def encode_columns(layout: Layout, columns: Sequence[npt.NDArray[Any]]) -> list[Part]:
    """The bytes of columns, which have one length."""
    return [
        column.astype(type).tobytes() for (_, type), column in zip(layout, columns, strict=True)
    ]


class ColumnReader:
    """Reads the head and the columns of one frame, from its beginning on."""

    def __init__(self, data: memoryview, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def count(self, count_max: int) -> int:
        """A number of rows, which is at most ``count_max``."""
        count = int.from_bytes(self._take(_SIZE_BYTES), "little")
        if count > count_max:
            raise ProtocolError(f"{self._what}: {count} rows, where at most {count_max} are taken")
        return count

    def head(self, decoder: Decoder[T]) -> T:
        """The head."""
        size = int.from_bytes(self._take(_SIZE_BYTES), "little")
        try:
            return decoder.decode(self._take(size))
        except MALFORMED as error:
            raise ProtocolError(f"{self._what}: the head is malformed: {error}") from None

    def columns(self, layout: Layout, count: int) -> list[I64]:
        """The columns of a layout, as integers of 64 bits with a sign."""
        return [self._column(name, np.dtype(type), count) for name, type in layout]

    def _column(self, name: str, type: np.dtype[Any], count: int) -> I64:
        column = np.frombuffer(self._take(count * type.itemsize), type)
        if type.kind == "u" and type.itemsize == 8 and np.any(column >= _U64_TOP):
            raise ProtocolError(f"{self._what}: a number in {name} is larger than 2**63 - 1")
        return column.astype(np.int64)

    def rest(self) -> memoryview:
        """Everything that was not read yet."""
        return self._data[self._at :]

    def _take(self, size: int) -> memoryview:
        end = self._at + size
        if end > len(self._data):
            raise ProtocolError(
                f"{self._what} is cut off: {end} bytes are needed, {len(self._data)} are there"
            )
        taken = self._data[self._at : end]
        self._at = end
        return taken
