"""Segments: the events of one append, as a folder of part files that appeared by one rename.

The name of the folder is ``<first offset>-<end offset>``, followed by ``-<producer>-<batch>`` if
the append has them. So the listing of the log is its index: in which segment an offset is, where
the log ends, and which batches it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tidegate.errors import LogError
from tidegate.spark.log.part_files import parts_in

OFFSET_MAX = 2**63 - 1

_PRODUCER = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
# A producer may contain hyphens; the last hyphen is the one before the batch, which has none.
_NAME = re.compile(r"(\d{20})-(\d{20})(?:-([A-Za-z0-9._-]{1,100})-(\d{1,19}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class BatchKey:
    """A producer and the number of one of its batches; a log takes each pair only once."""

    producer: str
    batch: int

    def __post_init__(self) -> None:
        if not isinstance(self.producer, str) or _PRODUCER.fullmatch(self.producer) is None:
            raise LogError(
                f"{self.producer!r:.120} is not a valid name of a producer; "
                "use 1 to 100 of the characters A-Z a-z 0-9 . _ -"
            )
        if type(self.batch) is not int or not 0 <= self.batch <= OFFSET_MAX:
            raise LogError(
                f"{self.batch!r:.120} is not a batch number; use an integer from 0 to 2**63 - 1"
            )

    @classmethod
    def of(cls, producer: str | None, batch: int | None) -> BatchKey | None:
        """The key if both are given, None if neither is."""
        if producer is None and batch is None:
            return None
        if producer is None or batch is None:
            raise LogError("give a producer together with the number of its batch, or neither")
        return cls(producer, batch)


@dataclass(frozen=True, slots=True)
class Segment:
    """The offsets from ``first`` up to, but not including, ``end``."""

    first: int
    end: int
    key: BatchKey | None = None

    @classmethod
    def from_name(cls, name: str) -> Segment | None:
        """The segment whose folder has this name; None if it is not the name of a segment.

        >>> segment = Segment.from_name("00000000000000000003-00000000000000000005-desk-7-12")
        >>> segment.first, segment.end, segment.key
        (3, 5, BatchKey(producer='desk-7', batch=12))
        """
        fields = _NAME.fullmatch(name)
        if fields is None:
            return None
        first, end, producer, batch = fields.groups()
        key = None if producer is None else BatchKey(producer, int(batch))
        return cls(int(first), int(end), key)

    @property
    def name(self) -> str:
        """The name of the folder, with offsets padded so that names sort like numbers."""
        key = "" if self.key is None else f"-{self.key.producer}-{self.key.batch}"
        return f"{self.first:020}-{self.end:020}{key}"

    def batches(self, log: Path, begin: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The columns of the events between two offsets, each batch with its first offset."""
        parts = parts_in(log / self.name)
        if sum(part.events for part in parts) != self.end - self.first:
            raise LogError(f"{log / self.name} is damaged: a part is missing, or one is too many")
        offset = self.first
        for part in parts:
            if offset < end and offset + part.events > begin:
                yield from _clipped(offset, part.batches(), begin, end)
            offset += part.events


def _clipped(
    offset: int, batches: Iterable[pa.RecordBatch], begin: int, end: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        low = max(begin - offset, 0)
        high = min(end - offset, batch.num_rows)
        if low < high:
            yield offset + low, batch.slice(low, high - low)
        offset += batch.num_rows


def contiguous_segments(names: Iterable[str]) -> list[Segment] | None:
    """The segments among the names in a folder, in order; None if there is a gap or an overlap."""
    # Sorted by both offsets, because an empty segment comes before the one with the same first.
    segments = sorted(
        (segment for segment in map(Segment.from_name, names) if segment is not None),
        key=lambda segment: (segment.first, segment.end),
    )
    end = 0
    for segment in segments:
        if segment.first != end or segment.end < end:
            return None
        end = segment.end
    return segments
