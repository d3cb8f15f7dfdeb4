"""Columns beside a batch of events: a few distinct values with a code for each row, and stamps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from tidegate.matching.arrays import I32, I64
from tidegate.routing.messages import Peer, Stamp

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Coded(Generic[V]):
    """A column of few distinct values: that of a row is ``values[codes[row]]``.

    >>> column = Coded.of(["a", "b", "a"])
    >>> column.values, column.codes.tolist(), column.row(2)
    (['a', 'b'], [0, 1, 0], 'a')
    """

    values: Sequence[V]
    codes: I32

    @classmethod
    def of(cls, rows: Iterable[V]) -> Coded[V]:
        """The column of some values."""
        known: dict[V, int] = {}
        codes = [known.setdefault(each, len(known)) for each in rows]
        return cls(list(known), np.array(codes, np.int32))

    @classmethod
    def constant(cls, value: V, length: int) -> Coded[V]:
        """A column with the same value in all rows."""
        return cls([value], np.zeros(length, np.int32))

    @classmethod
    def concatenated(cls, columns: Sequence[Coded[V]]) -> Coded[V]:
        """The rows of several columns, one column after the other."""
        known: dict[V, int] = {}
        codes = [np.zeros(0, np.int32)]
        for column in columns:
            ours = [known.setdefault(each, len(known)) for each in column.values]
            codes.append(np.array(ours, np.int32)[column.codes])
        return cls(list(known), np.concatenate(codes))

    def __len__(self) -> int:
        return len(self.codes)

    def row(self, index: int) -> V:
        """The value of one row."""
        return self.values[self.codes.item(index)]

    def rows(self) -> list[V]:
        """The values of all rows."""
        values = self.values
        return [values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, slots=True)
class StampColumns:
    """The stamps of events (see `Stamp`), in columns of equal length."""

    brokers: Coded[Peer]
    begun_us: I64
    numbers: I64

    @classmethod
    def of(cls, stamps: Sequence[Stamp]) -> StampColumns:
        """The columns of some stamps."""
        return cls(
            Coded.of(each.broker for each in stamps),
            np.array([each.begun_us for each in stamps], np.int64),
            np.array([each.number for each in stamps], np.int64),
        )

    @classmethod
    def concatenated(cls, columns: Sequence[StampColumns]) -> StampColumns:
        """The stamps of several columns, one after the other."""
        nothing = np.zeros(0, np.int64)
        return cls(
            Coded.concatenated([each.brokers for each in columns]),
            np.concatenate([nothing, *(each.begun_us for each in columns)]),
            np.concatenate([nothing, *(each.numbers for each in columns)]),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, index: int) -> Stamp:
        """The stamp of one event."""
        return Stamp(self.brokers.row(index), self.begun_us.item(index), self.numbers.item(index))
