"""Lists of entries, before they are laid out as a part.

Rows of different lengths are held compressed, as sparse matrices are: one array with all rows one
after the other, and one with the offset of each row and, at its end, that of the end.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.matching.arrays import F64, I32, I64
from tidegate.matching.rows.kernels.jit import kernel


@dataclass(slots=True)
class Entries:
    """Entries, with their constraints by ascending channel, and their motion."""

    subscription: I32
    flags: I32
    """Flags, and above them the ordinal (flags.py)."""
    first: I32
    """Where the constraints of each entry begin."""
    channel: I32
    low: F64
    high: F64
    motion_first: I32
    """Where the motion of each entry begins."""
    motion: F64

    def __len__(self) -> int:
        return len(self.subscription)


def no_entries() -> Entries:
    """An empty list."""
    i32, f64, first = np.zeros(0, np.int32), np.zeros(0), np.zeros(1, np.int32)
    return Entries(i32, i32, first, i32, f64, f64, first, f64)


def still_entries(entries: int, constraints: int) -> Entries:
    """Room for so many entries with so many constraints in all, none of which move."""
    first = np.zeros(entries + 1, np.int32)
    return Entries(
        np.zeros(entries, np.int32), np.zeros(entries, np.int32), first,
        np.zeros(constraints, np.int32), np.zeros(constraints), np.zeros(constraints),
        np.zeros(entries + 1, np.int32), np.zeros(0),
    )  # fmt: skip


def beginning(entries: Entries, count: int) -> Entries:
    """The first entries of a list in which nothing moves, as views."""
    end = entries.first.item(count)
    return Entries(
        entries.subscription[:count], entries.flags[:count], entries.first[: count + 1],
        entries.channel[:end], entries.low[:end], entries.high[:end],
        entries.motion_first[: count + 1], entries.motion,
    )  # fmt: skip


def concatenate(lists: list[Entries]) -> Entries:
    """Several lists of entries as one."""
    if len(lists) == 1:
        return lists[0]
    joined: dict[str, Any] = {}
    # offsets begin at 0 in each list, so they are made again from the lengths of the rows
    for field in fields(Entries):
        arrays = [getattr(each, field.name) for each in lists]
        if field.name in ("first", "motion_first"):
            joined[field.name] = offsets(np.concatenate([np.diff(array) for array in arrays]))
        else:
            joined[field.name] = np.concatenate(arrays)
    return Entries(**joined)


def limited(entries: Entries, channel: int, low: F64, high: F64) -> Entries:
    """The entries with one more constraint each, on a channel that none of them constrains yet."""
    count = len(entries)
    owner = np.repeat(np.arange(count), np.diff(entries.first))
    owners = np.concatenate([owner, np.arange(count)])
    channels = np.concatenate([entries.channel, np.full(count, channel, np.int32)])
    # entry by entry, and inside of an entry by channel
    order = np.lexsort((channels, owners))
    return replace(
        entries,
        first=offsets(np.diff(entries.first) + 1),
        channel=channels[order],
        low=np.concatenate([entries.low, low])[order],
        high=np.concatenate([entries.high, high])[order],
    )


def offsets(lengths: npt.NDArray[Any]) -> I32:
    """The offsets of compressed rows of these lengths, and that of their end."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def permuted(order: I64, first: I32, source: I64) -> tuple[I32, I64]:
    """Compressed rows in another order: their offsets and their elements."""
    begins = offsets(np.diff(first)[order])
    # contiguous: views with gaps, such as those of the words of entries, are another type to Numba
    return begins, _gather(order, np.ascontiguousarray(first), source, begins)


def permuted_rows(order: I64, first: I32) -> tuple[I32, I64]:
    """As ``permuted``, of rows whose elements are numbered through."""
    starts = first[order]
    begins = offsets(first[order + 1] - starts)
    return begins, _numbered(starts, begins)


@kernel
def _numbered(starts: I32, offsets: I32) -> I64:
    # no array of all elements is needed, so it is quick to take few rows out of many
    result = np.empty(offsets[-1], np.int64)
    for index in range(len(starts)):
        for step in range(offsets[index + 1] - offsets[index]):
            result[offsets[index] + step] = starts[index] + step
    return result


@kernel
def _gather(order: I64, first: I32, source: I64, offsets: I32) -> I64:
    # a kernel, because NumPy has no gather of rows of different lengths
    result = np.empty(offsets[-1], np.int64)
    for index in range(len(order)):
        begin = first[order[index]]
        for step in range(offsets[index + 1] - offsets[index]):
            result[offsets[index] + step] = source[begin + step]
    return result
