"""Matching in batches whose size follows the number of matches, so that memory stays bounded.

The result of a batch needs memory for each match, and an event may match no subscription or a
million. So the first batch is small; after each batch the next one gets at most twice its size, and
not more events than would have, at the same rate, `BATCH_MATCHES` matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.cli.files.events import CHUNK_EVENTS, EventChunk
from tidegate.matching.batches import Matches
from tidegate.matching.engine import Engine

FIRST_EVENTS = 64
"""Number of events in the first batch."""
BATCH_MATCHES = 2_000_000
"""Number of matches that a batch should not exceed."""
SINGLE_MAX = 8
"""Up to this many events are matched one by one, which is faster than building columns."""


class PacedMatcher:
    """Matches chunks of events; matches carry the index of the event in the file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch_events = FIRST_EVENTS

    def match(self, chunk: EventChunk) -> Iterator[Matches]:
        """Yields the matches of a chunk in batches, in the order of the events."""
        start = 0
        while start < len(chunk):
            batch = chunk.slice(start, start + self._batch_events)
            start += len(batch)
            if len(batch) <= SINGLE_MAX:
                matches = self._match_one_by_one(batch)
            else:
                matches = self._match_batch(batch)
            self._pace(len(batch), len(matches.events))
            if len(matches.events):
                yield matches

    def _match_one_by_one(self, batch: EventChunk) -> Matches:
        indexes: list[int] = []
        ids: list[str] = []
        for index, event in zip(batch.indexes.tolist(), batch.as_events(), strict=True):
            matching_ids = self._engine.match(event)
            indexes += [index] * len(matching_ids)
            ids += matching_ids
        return Matches(np.array(indexes, np.int64), pa.array(ids, pa.string()))

    def _match_batch(self, batch: EventChunk) -> Matches:
        table = self._engine.match_batch(batch.events, event_time=batch.event_time)
        positions: Any = table.column("event").to_numpy()
        ids: Any = table.column("subscription").combine_chunks()
        return Matches(batch.indexes[positions], ids)

    def _pace(self, events: int, matches: int) -> None:
        """Choose the size of the next batch from the events and matches of this one."""
        # Twice at most, because the matches of a few events say little about the next ones.
        affordable = BATCH_MATCHES * events // max(1, matches)
        self._batch_events = max(1, min(2 * self._batch_events, affordable, CHUNK_EVENTS))
