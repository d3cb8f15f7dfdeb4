"""How precise a summary is: the budget within which its rows are kept.

A row of a summary costs bytes on the wire and time where it is searched; fewer and wider rows say
yes to more events than the subscriptions want. Where a table exceeds its budget, neighbouring
ranges and similar string rows are joined, those first whose join is the least harmful for each byte
that it saves (`range_joining.py` and `string_joining.py` define the harm). The budget stays in
force while subscriptions come and go: what was joined is taken apart again where there is room.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import SummaryError

BOUND_BYTES = 8
"""Bytes of a bound, sst of the paper's equation (1)."""
ID_BYTES = 4
"""Bytes of an id in the list of a row, sid of equations (1) and (2)."""

UNSPREAD_MAX = 65_536
"""Lists of a table with no more ids than this may be spread over its rows as they like."""


@dataclass(frozen=True, slots=True)
class SummaryBudget:
    """Limits of each table of a summary: of one attribute seen as one kind of value.

    ``rows_max`` is the number of its rows. ``bytes_max`` bounds its size as equations (1) and (2)
    of the paper count it; a table of a single row may exceed it, because ids cannot be joined.
    ``spread_max`` bounds the rows over which a range is spread, on average: many wide ranges that
    overlap would otherwise be listed a number of times that grows with the square of their number.

    With ``joins_covered`` a table has no row within another, as in section 3.1 of the paper: a
    constraint that lies in an existing row joins it, and a wider one takes over the rows that it
    overlaps or covers.
    """

    rows_max: int = 65_536
    bytes_max: int | None = None
    spread_max: int = 64
    joins_covered: bool = False

    def __post_init__(self) -> None:
        for name, value in (
            ("rows_max", self.rows_max),
            ("bytes_max", self.bytes_max),
            ("spread_max", self.spread_max),
        ):
            if value is not None and value < 1:
                raise SummaryError(f"{name} of a budget is {value}; it must be 1 or more")

    def exceeded(self, rows: int, text_bytes: int, ids: int, constraints: int) -> bool:
        """Whether a table with so many rows, bytes of bounds or texts, and ids is too large.

        ``constraints`` is how many constraints the ids are of.
        """
        return rows > 1 and (
            rows > self.rows_max
            or (self.bytes_max is not None and text_bytes + ID_BYTES * ids > self.bytes_max)
            or ids > max(UNSPREAD_MAX, self.spread_max * constraints)
        )

    def eased(self) -> SummaryBudget:
        """The budget to which a table that exceeds this one is reduced.

        A little less, so that not every change joins rows again.
        """
        return SummaryBudget(
            _eased(self.rows_max),
            None if self.bytes_max is None else _eased(self.bytes_max),
            _eased(self.spread_max),
            self.joins_covered,
        )


def _eased(limit: int) -> int:
    return max(1, limit - limit // 8)


EXACT_ENOUGH = SummaryBudget()
"""The default: joins nothing until an attribute has very many rows or very many wide ranges."""

PAPER = SummaryBudget(joins_covered=True)
"""Rows as in section 3.1 of the paper."""
