"""Changes of the members of a table as runs of rows for each entry.

Theory of operation. In a range table an entry is mostly a member of consecutive rows, those that
its range was cut into. So a run of rows is two small numbers, where lists of members would have a
number for each row of it; and as the mask of an entry says in which tables it is, the entries
themselves take no bytes where all of them have runs.

Members are `Pairs` here, ``row * entry_count + entry``, in ascending order. A run starts where the
pair of the row before is absent: the starts and ends of all runs are the symmetric difference of
the pairs with the pairs shifted down by one row, one merge of two sorted arrays.

A difference has the runs in which the members of the new table differ from the *predicted* ones: a
row has the members of the old row in which it begins, less the removed entries. So where a range is
cut in two, or two are joined, nothing is written but the bounds.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I64
from tidegate.matching.summary.merging import spread
from tidegate.matching.summary.wire.columns import Reader
from tidegate.matching.summary.wire.layout import MemberRuns

PAIR_BYTES = 64
"""What a pair takes while tables are made of it and checked, about."""


def symmetric_difference(one: I64, other: I64) -> I64:
    """What is in one of two strictly ascending arrays and not in both, in ascending order.

    >>> symmetric_difference(np.array([1, 2]), np.array([2, 3])).tolist()
    [1, 3]
    """
    if not len(one) or not len(other):
        return one if len(one) else other
    both = np.concatenate((one, other))
    both.sort(kind="stable")  # which merges what is sorted already
    is_equal = both[1:] == both[:-1]
    is_single = np.ones(len(both), np.bool_)
    is_single[1:] &= ~is_equal
    is_single[:-1] &= ~is_equal
    return both[is_single]


def runs_of(pairs: I64, participants: I64, entry_count: int) -> MemberRuns:
    """The runs that strictly ascending pairs consist of."""
    # In the order of rows, the marks of one entry are by turns a start and an end.
    marks = symmetric_difference(pairs, pairs + entry_count)
    rows, entries = np.divmod(marks, max(1, entry_count))
    order = np.argsort(entries, kind="stable")
    rows, entries = rows[order], entries[order]
    starts, ends, entries = rows[::2], rows[1::2], entries[::2]
    is_first = np.ones(len(entries), np.bool_)
    is_first[1:] = entries[1:] != entries[:-1]
    ends_before = np.concatenate(([0], ends[:-1]))
    ends_before[is_first] = 0
    firsts = np.flatnonzero(is_first)
    return MemberRuns(
        np.searchsorted(participants, entries[firsts]),
        np.diff(firsts, append=len(entries)),
        starts - ends_before,
        ends - starts,
    )


def pairs_of(
    record: MemberRuns, participants: I64, row_count: int, entry_count: int, reader: Reader
) -> I64:
    """The pairs of some runs, strictly ascending."""
    ranks, counts = record.entries, record.run_counts
    gaps, lengths = record.run_gaps, record.run_lengths
    reader.indexes(ranks, len(participants))
    if len(counts) != len(ranks) or np.any(counts < 1):
        raise reader.malformed("an entry is listed without runs")
    # No number is larger than the rows are many, so that no sum overflows.
    bounded = counts.max(initial=0) <= len(gaps) and gaps.max(initial=0) <= row_count
    if not bounded or int(counts.sum()) != len(gaps) or len(gaps) != len(lengths):
        raise reader.malformed("the runs of an entry are missing")
    if np.any(lengths < 1) or np.any(lengths > row_count):
        raise reader.malformed("a run is empty, or has more rows than there are")
    firsts = np.cumsum(counts) - counts
    before = np.cumsum(gaps + lengths) - (gaps + lengths)
    starts = before - np.repeat(before[firsts], counts) + gaps
    later = np.ones(len(gaps), np.bool_)
    later[firsts] = False
    if np.any(starts + lengths > row_count) or np.any(gaps[later] < 1):
        raise reader.malformed("a run exceeds the rows, or adjoins the one before it")
    count = int(lengths.sum())
    reader.allowance.take(count, PAIR_BYTES)
    rows = spread(starts, lengths)
    entries = np.repeat(participants[np.repeat(ranks, counts)], lengths)
    # Entries ascend, so a stable sort by rows is enough; NumPy sorts small integers by radix.
    order = np.argsort(rows.astype(np.min_scalar_type(row_count)), kind="stable")
    pairs: I64 = rows[order] * entry_count + entries[order]
    return pairs
