"""Which neighbouring ranges are joined under a budget: the least harmful first.

The harm of a join is the number of matches that it is expected to add for an event: each member of
one row is found for the values of the other one and of the gap between them too, so

    harm = only_a * chance(b) + only_b * chance(a) + either * chance(gap)

where the chance of a row is that of an event to fall into it. Nobody told the summary how events
are spread, so two guesses are added: evenly over the values between the lowest and the highest
bound, and evenly over the rows, because people subscribe where events are. What a join saves is its
bounds and the ids that both rows list. Pairs are taken by harm for each byte that is saved.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I64, Bools
from tidegate.matching.summary.budget import BOUND_BYTES, ID_BYTES
from tidegate.matching.summary.channels import after, before
from tidegate.matching.summary.tables import ChannelKind


def least_harmful_first(kind: ChannelKind, lows: F64, highs: F64, lengths: I64, common: I64) -> I64:
    """The pairs of a row and the next one, by the index of the first, in the order of their harm.

    ``lengths`` are the numbers of members of the rows, ``common`` those that a row and the next one
    share.
    """
    finite = np.concatenate((lows[np.isfinite(lows)], highs[np.isfinite(highs)]))
    # With Python's floats, so that bounds at both ends of their range do not overflow to infinity.
    first, last = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)

    def share(begin: F64, end: F64) -> F64:
        """The share of the extent that ranges have; an infinite end counts as far as the extent."""
        extent = max(last / 2 - first / 2, np.finfo(np.float64).tiny)
        begin, end = np.clip(begin, first, last), np.clip(end, first, last)
        return (end / 2 - begin / 2) / extent

    even = 1.0 / len(lows)
    chance = share(lows, highs) + even
    gap_low, gap_high = after(kind, highs[:-1]), before(kind, lows[1:])
    has_gap: Bools = gap_low <= gap_high
    gap_chance = np.where(has_gap, share(highs[:-1], lows[1:]) + even, 0.0)
    only_low, only_high = lengths[:-1] - common, lengths[1:] - common
    harm = (
        only_low * chance[1:]
        + only_high * chance[:-1]
        + (lengths[:-1] + lengths[1:] - common) * gap_chance
    )
    saved = 2 * BOUND_BYTES + ID_BYTES * common
    order: I64 = np.argsort(harm / saved, kind="stable")
    return order


def overlapping_joined(lows: F64, highs: F64) -> tuple[F64, F64]:
    """Ranges with those joined that have values in common.

    >>> overlapping_joined(np.array([1.0, 8.0, 2.0]), np.array([3.0, 9.0, 4.0]))
    (array([1., 8.]), array([4., 9.]))
    """
    order = np.argsort(lows, kind="stable")
    lows, reach = lows[order], np.maximum.accumulate(highs[order])
    begins: Bools = np.concatenate(([True], lows[1:] > reach[:-1]))
    ends = np.concatenate((begins[1:], [True]))
    return lows[begins], reach[ends]
