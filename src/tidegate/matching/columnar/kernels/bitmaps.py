"""Bitmaps over the entries of large segments, one for each cell of a channel (see scanning.py).

The range of a channel is cut into cells with about equally many bounds in each. The entries are
ordered along the most selective channel, so that the bits of one of its cells lie close together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U64
from tidegate.matching.columnar.kernels.jit import kernel
from tidegate.matching.columnar.kernels.part import SET

MAP_CHANNELS_MAX = 250
DENSE_COVERAGE_MIN = 0.2
MAP_SHARE_MIN = 1 / 64
"""A channel gets bitmaps in a segment if at least this share of its entries constrain it."""


class Bitmaps:
    """Builds the bitmaps of all segments."""

    def __init__(self) -> None:
        self._first = [0]
        self._channel: list[int] = []
        self._cells: list[int] = []
        self._edge_at: list[int] = []
        self._word_at: list[int] = []
        self._edges: list[F64] = []
        self._words: list[U64] = []
        self._spans: list[tuple[I32, I32]] = []
        self._span_start: list[int] = []
        self._dense: list[bool] = []
        self._edges_length = self._words_length = self._spans_length = 0

    def add_empty(self) -> None:
        """A segment without bitmaps."""
        self._first.append(len(self._channel))
        self._span_start.append(self._spans_length)
        self._dense.append(False)

    def add_segment(self, count: int, owner: I64, channel: I32, low: F64, high: F64) -> I64:
        """A segment with bitmaps, of so many entries; gives the order that they now have.

        Its constraints are given as columns, with the number of the entry that each belongs to.
        """
        channels, numbers = np.unique(channel[channel < SET], return_counts=True)
        worth = channels[numbers >= count * MAP_SHARE_MIN].tolist()
        if not worth:
            self.add_empty()
            return np.arange(count)
        cells = 64 if count >= 4096 else 32 if count >= 512 else 16
        columns = []
        for each in worth[:MAP_CHANNELS_MAX]:
            chosen = channel == each
            columns.append(
                _ChannelBins.of(each, owner[chosen], low[chosen], high[chosen], count, cells)
            )
        columns.sort(key=lambda column: column.coverage)
        position = np.empty(count, np.int64)
        along = np.full(count, 2 * cells, np.int64)
        along[columns[0].owner] = columns[0].begin + columns[0].end
        order = np.argsort(along, kind="stable")
        position[order] = np.arange(count)
        self._span_start.append(self._spans_length)
        for column in columns:
            self._add_column(column, position, count)
        self._first.append(len(self._channel))
        self._dense.append(columns[0].coverage >= DENSE_COVERAGE_MIN)
        return order

    def _add_column(self, column: _ChannelBins, position: I64, count: int) -> None:
        words = (count + 63) // 64
        cells = len(column.edges) + 1
        bits = np.zeros((cells + 1, words), np.uint64)
        _fill_bits(bits, position[column.owner], column.begin, column.end, position, column.free)
        if len(self._channel) == self._first[-1]:
            spans = _spans(bits)
            self._spans.append(spans)
            self._spans_length += len(spans[0])
        self._channel.append(column.channel)
        self._cells.append(cells)
        self._edge_at.append(self._edges_length)
        self._edges.append(column.edges)
        self._edges_length += len(column.edges)
        self._word_at.append(self._words_length)
        self._words.append(bits.ravel())
        self._words_length += bits.size

    def arrays(self) -> dict[str, Any]:
        """The arrays of a part that describe bitmaps."""
        none = np.zeros(0)
        return {
            "segment_dense": np.array(self._dense, np.uint8),
            "map_first": np.array(self._first, np.int32),
            "map_channel": np.array(self._channel, np.int32),
            "map_cells": np.array(self._cells, np.int32),
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
    """The constraints that a segment's entries have on one channel, as cells."""

    channel: int
    edges: F64
    owner: I64  # whose constraint it is, numbered inside the segment
    begin: I64  # the first and the last cell that it reaches
    end: I64
    free: I64  # the entries without a constraint on this channel
    coverage: float  # the share of entries that a cell leaves, on average

    @classmethod
    def of(
        cls, channel: int, owner: I64, low: F64, high: F64, count: int, cells: int
    ) -> _ChannelBins:
        edges = _edges(low, high, cells)
        begin = np.searchsorted(edges, low, side="right")
        end = np.searchsorted(edges, high, side="right")
        outside = ~(low <= high)
        begin[outside], end[outside] = 0, len(edges)
        free = np.setdiff1d(np.arange(count), owner)
        reached = float((end - begin + 1).sum()) / (len(edges) + 1)
        return cls(channel, edges, owner, begin, end, free, (reached + len(free)) / count)


def _edges(low: F64, high: F64, cells: int) -> F64:
    """Borders between cells, so that about equally many bounds fall into each."""
    bounds = np.concatenate([low, high])
    bounds = np.sort(bounds[np.isfinite(bounds)])
    if not len(bounds):
        return np.zeros(0)
    picks = np.linspace(0, len(bounds) - 1, cells + 1)[1:-1].astype(np.int64)
    return np.unique(bounds[picks])


@kernel
def _fill_bits(bits: U64, place: I64, begin: I64, end: I64, position: I64, free: I64) -> None:
    for index in range(len(place)):
        word, bit = place[index] >> 6, np.uint64(1) << np.uint64(place[index] & 63)
        for cell in range(begin[index], end[index] + 1):
            bits[cell, word] |= bit
    for index in range(len(free)):
        at = position[free[index]]
        word, bit = at >> 6, np.uint64(1) << np.uint64(at & 63)
        for cell in range(bits.shape[0]):
            bits[cell, word] |= bit


@kernel
def _spans(bits: U64) -> tuple[I32, I32]:
    """For each cell, the words that have bits: the first, and the one behind the last."""
    first = np.zeros(len(bits), np.int32)
    last = np.zeros(len(bits), np.int32)
    for cell in range(len(bits)):
        first[cell] = bits.shape[1]
        for word in range(bits.shape[1]):
            if bits[cell, word] != 0:
                first[cell] = min(first[cell], word)
                last[cell] = word + 1
    return first, last
