"""Matching in batches whose size follows the number of matches, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.cli.files.events import CHUNK_EVENTS, EventChunk
from tidegate.matching.batches import Matches
from tidegate.matching.engine import Engine

FIRST_EVENTS = 64
BATCH_MATCHES = 2_000_000
ALONE_MAX = 8
"""So few events are matched one by one, which is then faster than to make columns of them."""


class PacedMatcher:
    """Matches chunks of events; the matches name events by their indexes in the file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch_events = FIRST_EVENTS

    def match(self, chunk: EventChunk) -> Iterator[Matches]:
        """The matches of a chunk in parts, which are in the order of the events."""
        start = 0
        while start < len(chunk):
            part = chunk.part(start, start + self._batch_events)
            start += len(part)
            matches = self._match_alone(part) if len(part) <= ALONE_MAX else self._match_batch(part)
            self._pace(len(part), len(matches.events))
            if len(matches.events):
                yield matches

    def _match_alone(self, chunk: EventChunk) -> Matches:
        indexes: list[int] = []
        ids: list[str] = []
        for index, event in zip(chunk.indexes.tolist(), chunk.one_by_one(), strict=True):
            found = self._engine.match(event)
            indexes += [index] * len(found)
            ids += found
        return Matches(np.array(indexes, np.int64), pa.array(ids, pa.string()))

    def _match_batch(self, chunk: EventChunk) -> Matches:
        table = self._engine.match_batch(chunk.events, event_time=chunk.event_time)
        places: Any = table.column("event").to_numpy()
        ids: Any = table.column("subscription").combine_chunks()
        return Matches(chunk.indexes[places], ids)

    def _pace(self, events: int, matches: int) -> None:
        """Choose the next size: at most twice the last one, for not too many matches."""
        affordable = BATCH_MATCHES * events // max(1, matches)
        self._batch_events = max(1, min(2 * self._batch_events, affordable, CHUNK_EVENTS))
