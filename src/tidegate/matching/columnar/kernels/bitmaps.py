"""Bitmaps over the entries of large clusters, one for each bin of a channel; scan.py reads them.

The range of a channel is cut into bins with about equally many bounds in each. The bitmap of a bin
has a bit for every entry that some value of the bin could satisfy:

    bounds of x          edges   10      20          bin 0   bin 1   bin 2   no value
    entry 0:  x < 15              |       |            1       1       0        0
    entry 1:  x in 12..18         |       |            0       1       0        0
    entry 2:  x > 25              |       |            0       0       1        0
    entry 3:  no constraint       |       |            1       1       1        1

Rule: a bit may be set needlessly, never missing; the candidates are checked anyway.

Entries are put in the order of the cluster's most selective channel, by the middle of the bins they
reach. So the bits of one of its bins lie close together, and its *span*, from the first word with a
bit to the last, is all of a bitmap that has to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U64
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.kernels.jit import kernel

MAP_CHANNELS_MAX = 250
"""How many channels of a cluster have bitmaps: each takes up to 65 bits an entry."""

MAP_SHARE_MIN = 1 / 64
"""A channel gets bitmaps in a cluster if at least this share of its entries constrain it.

Below it, a word of 64 entries has on average not one that the channel could rule out.
"""

DENSE_COVERAGE_MIN = 0.2
"""A cluster is dense if a bin of its most selective channel leaves this share of its entries.

A word of 64 bits then has about 13 of them, so it is hardly ever zero: it does not pay to look
whether it is before the next channel (scan.py).
"""


class Bitmaps:
    """Builds the bitmaps of the clusters of a part, cluster by cluster."""

    def __init__(self) -> None:
        self._first = [0]
        self._channel: list[int] = []
        self._bins: list[int] = []
        self._edge_at: list[int] = []
        self._word_at: list[int] = []
        self._edges: list[F64] = []
        self._words: list[U64] = []
        self._spans: list[tuple[I32, I32]] = []
        self._span_start: list[int] = []
        self._dense: list[bool] = []
        self._edges_length = self._words_length = self._spans_length = 0

    def add_empty(self) -> None:
        """Add a cluster without bitmaps."""
        self._first.append(len(self._channel))
        self._span_start.append(self._spans_length)
        self._dense.append(False)

    def add_cluster(self, count: int, owner: I64, channel: I32, low: F64, high: F64) -> I64:
        """Add a cluster of ``count`` entries; returns the order that they are to have.

        Its constraints are given as columns; ``owner`` is the entry that each belongs to. There
        are no bitmaps for sets, which have no order, nor where no channel is constrained enough.
        """
        channels, counts = np.unique(channel[channel < SET], return_counts=True)
        worthwhile = channels[counts >= count * MAP_SHARE_MIN].tolist()
        if not worthwhile:
            self.add_empty()
            return np.arange(count)
        # more bins leave fewer candidates but take more memory; a bin should hold many bounds
        bins = 64 if count >= 4096 else 32 if count >= 512 else 16
        columns = []
        for each in worthwhile[:MAP_CHANNELS_MAX]:
            chosen = channel == each
            columns.append(
                _ChannelBins.of(each, owner[chosen], low[chosen], high[chosen], count, bins)
            )
        columns.sort(key=lambda column: column.coverage)
        position = np.empty(count, np.int64)
        # twice the middle of the bins that an entry reaches; those without a constraint come last
        along = np.full(count, 2 * bins, np.int64)
        along[columns[0].owner] = columns[0].begin + columns[0].end
        order = np.argsort(along, kind="stable")
        position[order] = np.arange(count)
        # columns are in order of coverage, so that a scan reads the most selective channel first
        self._span_start.append(self._spans_length)
        for column in columns:
            self._add_column(column, position, count)
        self._first.append(len(self._channel))
        self._dense.append(columns[0].coverage >= DENSE_COVERAGE_MIN)
        return order

    def _add_column(self, column: _ChannelBins, position: I64, count: int) -> None:
        """Add the bitmaps of a channel to the cluster; ``position`` is the new place of entries."""
        words = (count + 63) // 64
        bins = len(column.edges) + 1
        bits = np.zeros((bins + 1, words), np.uint64)
        _fill_bits(bits, position[column.owner], column.begin, column.end, position, column.free)
        if len(self._channel) == self._first[-1]:  # the first, most selective channel
            spans = _spans(bits)
            self._spans.append(spans)
            self._spans_length += len(spans[0])
        self._channel.append(column.channel)
        self._bins.append(bins)
        self._edge_at.append(self._edges_length)
        self._edges.append(column.edges)
        self._edges_length += len(column.edges)
        self._word_at.append(self._words_length)
        self._words.append(bits.ravel())
        self._words_length += bits.size

    def arrays(self) -> dict[str, Any]:
        """The fields of a part that describe bitmaps, by name."""
        none = np.zeros(0)
        return {
            "cluster_dense": np.array(self._dense, np.uint8),
            "map_first": np.array(self._first, np.int32),
            "map_channel": np.array(self._channel, np.int32),
            "map_bins": np.array(self._bins, np.int32),
            "map_edge": np.array(self._edge_at, np.int32),
            "map_word": np.array(self._word_at, np.int64),
            "edge": np.concatenate([*self._edges, none]),
            "word": np.concatenate([*self._words, none.astype(np.uint64)]),
            "span_first": np.concatenate([*(a for a, _ in self._spans), none]).astype(np.int32),
            "span_last": np.concatenate([*(b for _, b in self._spans), none]).astype(np.int32),
            "span_start": np.array(self._span_start, np.int32),
        }


@dataclass(slots=True)
class _ChannelBins:
    """The constraints of a cluster's entries on one channel, and the bins that they reach."""

    channel: int
    edges: F64
    owner: I64  # the entry of each constraint, numbered inside the cluster
    begin: I64  # the first and the last bin that it reaches
    end: I64
    free: I64  # the entries without a constraint on this channel
    coverage: float  # the share of entries that a bin leaves, on average

    @classmethod
    def of(
        cls, channel: int, owner: I64, low: F64, high: F64, count: int, bins: int
    ) -> _ChannelBins:
        edges = _edges(low, high, bins)
        # "right", as in bin_of: a value that equals an edge is in the bin above it
        begin = np.searchsorted(edges, low, side="right")
        end = np.searchsorted(edges, high, side="right")
        # the outside of bounds, and NaN, reach all bins: they are rare, and bits may be needless
        outside = ~(low <= high)
        begin[outside], end[outside] = 0, len(edges)
        free = np.setdiff1d(np.arange(count), owner)
        reached = float((end - begin + 1).sum()) / (len(edges) + 1)
        return cls(channel, edges, owner, begin, end, free, (reached + len(free)) / count)


def _edges(low: F64, high: F64, bins: int) -> F64:
    """The edges between bins, such that about equally many bounds fall into each.

    Bounds that many entries share may leave fewer bins than asked for.
    """
    bounds = np.concatenate([low, high])
    # quantiles of the bounds, not of the values of events, which are not known when laying out
    bounds = np.sort(bounds[np.isfinite(bounds)])
    if not len(bounds):
        return np.zeros(0)
    picks = np.linspace(0, len(bounds) - 1, bins + 1)[1:-1].astype(np.int64)
    return np.unique(bounds[picks])


@kernel
def _fill_bits(bits: U64, place: I64, begin: I64, end: I64, position: I64, free: I64) -> None:
    """Set the bits of all constraints of a channel, and those of entries without one.

    An entry with two constraints on the channel gets the bits of both, which are too many but none
    too few.
    """
    for index in range(len(place)):
        word, bit = place[index] >> 6, np.uint64(1) << np.uint64(place[index] & 63)
        for bin_index in range(begin[index], end[index] + 1):
            bits[bin_index, word] |= bit
    for index in range(len(free)):
        at = position[free[index]]
        word, bit = at >> 6, np.uint64(1) << np.uint64(at & 63)
        # also in the last row: an entry without a constraint matches events without a value
        for bin_index in range(bits.shape[0]):
            bits[bin_index, word] |= bit


@kernel
def _spans(bits: U64) -> tuple[I32, I32]:
    """The span of each bitmap: its first word with bits, and the one after its last.

    Without any bits the first is after the last.
    """
    first = np.zeros(len(bits), np.int32)
    last = np.zeros(len(bits), np.int32)
    for bin_index in range(len(bits)):
        first[bin_index] = bits.shape[1]
        for word in range(bits.shape[1]):
            if bits[bin_index, word] != 0:
                first[bin_index] = min(first[bin_index], word)
                last[bin_index] = word + 1
    return first, last
