"""What runs in Spark's Python workers: Arrow batches of events in, Arrow batches of matches out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, VersionMatches, micros_of
from tidegate.spark.shipping import IndexFile

OUTPUT_ROWS_MAX = 200_000
"""At most so many matches go to Spark at once, which bounds the memory of a worker."""


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Matches the events of a partition; for `mapInArrow`."""

    index: IndexFile
    event_time: str | None
    kept: tuple[str, ...]
    """The columns of events that stand in the result."""
    grouped: bool
    variables: Mapping[str, Value] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.index.open()
        for events in batches:
            found = matcher.match(event_batch(events, self.event_time, self.variables))
            kept = events.select(list(self.kept))
            yield from grouped_rows(kept, found) if self.grouped else single_rows(kept, found)


def event_batch(
    events: pa.RecordBatch, event_time: str | None, variables: Mapping[str, Value]
) -> EventBatch:
    """Events of Spark, judged at their times."""
    batch = EventBatch.of(events).knowing(variables)
    if event_time is None:
        return batch
    column: Any = dict(batch.columns)[event_time]
    return batch.judged_at(micros_of(column, event_time))


def single_rows(events: pa.RecordBatch, found: VersionMatches) -> Iterator[pa.RecordBatch]:
    """A row for each match: the columns of the event, and what matched."""
    for begin in range(0, len(found.events), OUTPUT_ROWS_MAX):
        some = slice(begin, begin + OUTPUT_ROWS_MAX)
        rows = events.take(found.events[some])
        added = delivery_arrays(found, found.numbers[some])
        arrays = [*rows.columns, *added.values()]
        yield pa.RecordBatch.from_arrays(arrays, names=[*rows.schema.names, *added])


def grouped_rows(events: pa.RecordBatch, found: VersionMatches) -> Iterator[pa.RecordBatch]:
    """A row for each event that matches anything: its columns, and the list of what matched."""
    matched, first = np.unique(found.events, return_index=True)
    borders = np.append(first, len(found.events))
    begin = 0
    while begin < len(matched):
        # as many events as have few enough matches; one at the least
        most = np.searchsorted(borders, borders[begin] + OUTPUT_ROWS_MAX, "right") - 1
        end = max(begin + 1, int(most))
        inner = delivery_arrays(found, found.numbers[borders[begin] : borders[end]])
        offsets = pa.array((borders[begin : end + 1] - borders[begin]).astype(np.int32))
        structs = pa.StructArray.from_arrays(list(inner.values()), names=list(inner))
        rows = events.take(matched[begin:end])
        lists = pa.ListArray.from_arrays(offsets, structs)
        yield pa.RecordBatch.from_arrays(
            [*rows.columns, lists], names=[*rows.schema.names, "deliveries"]
        )
        begin = end


def delivery_arrays(found: VersionMatches, numbers: Any) -> dict[str, Any]:
    """What versions deliver to whom, by the names of the result's columns."""
    chosen = pa.array(numbers)
    columns = found.columns
    return {
        "subscription": columns.subscription.take(chosen),
        "subscriber": columns.subscriber.take(chosen),
        "version": columns.since.take(chosen),
    }
