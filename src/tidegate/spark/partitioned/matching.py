"""The task that matches events with the indexes of their bucket and those of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.matching.batches import VersionColumns, VersionMatches
from tidegate.spark.partitioned.event_buckets import BUCKET
from tidegate.spark.worker_tasks import DeliveryLayout, IndexHandle


@dataclass(frozen=True, slots=True)
class PartitionedTask:
    """Matches events with the indexes of their bucket and with those of the rest.

    For `mapInArrow` on the output of `with_bucket`.
    """

    rest: Sequence[IndexHandle]
    buckets: Sequence[Sequence[IndexHandle]]
    """The indexes of each bucket; empty if there are no buckets."""
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for all_events in batches:
            for events, indexes in self._by_bucket(all_events):
                batch = self.layout.event_batch(events)
                found: Iterable[VersionMatches]
                found = (index.open().match(batch) for index in indexes)
                if self.layout.grouped:  # one row for an event, whatever index its matches are in
                    found = [merged_matches(list(found))]
                for matches in found:
                    yield from self.layout.rows(events, matches, None)

    def _by_bucket(
        self, events: pa.RecordBatch
    ) -> Iterator[tuple[pa.RecordBatch, Sequence[IndexHandle]]]:
        """The events of each bucket, with the indexes for them."""
        if not self.buckets:
            if self.rest:
                yield events, self.rest
            return
        column = events.column(BUCKET).to_numpy(zero_copy_only=False)
        original = events.drop_columns([BUCKET])
        # Usually all events of a batch are in one bucket; the result does not rely on it.
        for bucket in np.unique(column).tolist():
            indexes = (*self.buckets[bucket], *self.rest)
            if indexes:
                chosen = column == bucket
                yield original if chosen.all() else original.filter(pa.array(chosen)), indexes


def merged_matches(found: Sequence[VersionMatches]) -> VersionMatches:
    """The matches of the same events in several indexes as those of one, ordered by event."""
    some = [each for each in found if len(each.events)]
    if len(some) < 2:
        return some[0] if some else found[0]
    # Only the versions that matched are copied: an index may have many more.
    used = [np.unique(each.numbers, return_inverse=True) for each in some]
    chosen = [_chosen(each.columns, numbers) for each, (numbers, _) in zip(some, used, strict=True)]
    columns = VersionColumns(*(pa.concat_arrays(parts) for parts in zip(*chosen, strict=True)))
    firsts = np.cumsum([0, *(len(numbers) for numbers, _ in used[:-1])])
    numbers = np.concatenate([code + first for (_, code), first in zip(used, firsts, strict=True)])
    events = np.concatenate([each.events for each in some])
    order = np.argsort(events, kind="stable")
    return VersionMatches(events[order], numbers[order].astype(np.int32), columns)


def _chosen(columns: VersionColumns, numbers: npt.NDArray[np.int32]) -> tuple[Any, Any, Any]:
    rows: Any = pa.array(numbers)
    all_columns = columns.subscription, columns.subscriber, columns.since
    subscription, subscriber, since = (each.take(rows) for each in all_columns)
    return subscription, subscriber, since
