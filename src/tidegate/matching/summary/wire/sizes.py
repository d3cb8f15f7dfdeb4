"""The size of a summary by the formulas of the paper, to stand beside the bytes of the wire form.

"Subscription Summarization", 5.1. For each arithmetic attribute, with n_sr ranges, n_e equalities
and L_a ids in the lists of both:

    AACS = (2 n_sr + n_e) sst + L_a sid                                                          (1)

and for each string attribute, with n_r rows and L_s ids in their lists:

    SACS = n_r ssv + L_s sid                                                                     (2)

The paper counts no lengths of lists, names of attributes or operators of rows. Here all of n_sr,
n_e, L_a, n_r and L_s are counted in given tables; sst, sid and ssv are those of table 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.matching.summary.tables import SummaryTables


@dataclass(frozen=True, slots=True)
class StorageSizes:
    """Bytes of an arithmetic value, of an id and of a string, named as in the paper."""

    sst: int = 4
    sid: int = 4
    ssv: int = 10


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The sums over all attributes of what the formulas count."""

    n_sr: int
    n_e: int
    l_a: int
    n_r: int
    l_s: int

    @classmethod
    def of(cls, tables: SummaryTables) -> RowCounts:
        points = [int(np.count_nonzero(table.lows == table.highs)) for table in tables.ranges]
        return cls(
            n_sr=sum(len(table.lows) for table in tables.ranges) - sum(points),
            n_e=sum(points),
            l_a=sum(len(table.members) for table in tables.ranges),
            n_r=sum(len(table.patterns) for table in tables.strings),
            l_s=sum(len(table.members) for table in tables.strings),
        )

    def aacs_bytes(self, sizes: StorageSizes) -> int:
        """Equation (1), summed over the attributes."""
        return (2 * self.n_sr + self.n_e) * sizes.sst + self.l_a * sizes.sid

    def sacs_bytes(self, sizes: StorageSizes) -> int:
        """Equation (2), summed over the attributes."""
        return self.n_r * sizes.ssv + self.l_s * sizes.sid


def formula_bytes(tables: SummaryTables, sizes: StorageSizes = StorageSizes()) -> int:  # noqa: B008
    """The sum of both equations.

    >>> from tidegate.matching.summary.tables import NO_ENTRIES
    >>> formula_bytes(NO_ENTRIES)
    0
    """
    counts = RowCounts.of(tables)
    return counts.aacs_bytes(sizes) + counts.sacs_bytes(sizes)
