"""Which string rows are joined under a budget: the least harmful first.

The harm of a join is the number of matches that it is expected to add for an event: each member of
the two rows is found for whatever the joined row fits. How texts are spread is not known; a text is
taken to have a character that is asked for with a chance of one in four, so that

    harm = members_a * (chance(joined) - chance(a)) + members_b * (chance(joined) - chance(b))
    chance(row) = 4 ** -(characters that the row requires)

Candidates are rows that are alike: neighbours when rows are sorted by how they start, by how they
end, and by their longest piece; and each row with the narrowest row that covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from tidegate.matching.summary.row_patterns import joined, literal_chars, pieces_of
from tidegate.matching.summary.tables import RowPattern

CHARS_MAX = 64
"""More characters than this make no row less likely."""

_ORDERS: tuple[Callable[[RowPattern], tuple[str, ...]], ...] = (
    lambda pattern: pieces_of(pattern),
    lambda pattern: tuple(piece[::-1] for piece in reversed(pieces_of(pattern))),
    lambda pattern: (max(pieces_of(pattern), key=len),),
)


class Join(NamedTuple):
    """Two rows and the one that takes their place."""

    harm: float
    one: RowPattern
    other: RowPattern
    into: RowPattern


def chance(pattern: RowPattern) -> float:
    """The chance of a text to satisfy a pattern."""
    return 4.0 ** -min(CHARS_MAX, literal_chars(pattern))


def harm_of(one: RowPattern, other: RowPattern, into: RowPattern, ids: tuple[int, int]) -> float:
    """The matches that a join is expected to add; ``ids`` are the numbers of members."""
    wide = chance(into)
    return ids[0] * (wide - chance(one)) + ids[1] * (wide - chance(other))


def least_harmful_first(
    ids: Mapping[RowPattern, int], covering: Callable[[RowPattern], list[RowPattern]]
) -> list[Join]:
    """The joins of similar rows in the order of their harm.

    ``ids`` are the numbers of members of all rows; ``covering`` returns the rows that cover one,
    itself included.
    """
    joins = {_join(one, other, ids) for one, other in _similar(list(ids), covering)}
    return sorted(joins)


def _join(one: RowPattern, other: RowPattern, ids: Mapping[RowPattern, int]) -> Join:
    if other < one:
        one, other = other, one
    into = joined(one, other)
    return Join(harm_of(one, other, into, (ids[one], ids[other])), one, other, into)


def _similar(
    rows: list[RowPattern], covering: Callable[[RowPattern], list[RowPattern]]
) -> Iterator[tuple[RowPattern, RowPattern]]:
    for order in _ORDERS:
        yield from pairwise(sorted(rows, key=lambda row: (order(row), row)))
    for row in rows:
        wider = [each for each in covering(row) if each != row]
        if wider:
            yield row, max(wider, key=lambda each: (literal_chars(each), each))
