"""What runs in Spark's Python workers: Arrow batches of events in, Arrow batches of matches out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, VersionMatches, times_us_of
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.spark.delivery_rows import grouped_rows, plain, single_rows

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `mapInArrow` runs."""

ASSERT, RETRACT = "assert", "retract"
"""What a delivery of a stream does: it says that an event matches, or takes that back."""


class OpensIndex(Protocol):
    """Where a worker finds an index."""

    def open(self) -> AsOfMatcher:
        """The index, which stays open in this process for the next task."""
        ...


@dataclass(frozen=True, slots=True)
class DeliveryLayout:
    """How events come in and deliveries go out."""

    event_time: str | None
    kept: tuple[str, ...]
    """The columns of events that stand in the result."""
    grouped: bool
    variables: Mapping[str, Value] = field(default_factory=dict)
    attributes: Mapping[str, str] | None = None
    """The attributes that columns hold, where these have other names. An attribute whose values are
    of several kinds has a column for each."""
    coded: bool = False
    """Whether ids and names are coded in what goes out; see `delivery_rows.py`."""

    def taken(self, events: pa.RecordBatch) -> EventBatch:
        """Events of Spark, judged at their times."""
        batch = EventBatch.of(events).knowing(self.variables)
        time_us = None
        if self.event_time is not None:
            column: Any = dict(batch.columns)[self.event_time]
            time_us = times_us_of(column, self.event_time)
        if self.attributes is not None:
            named = self.attributes
            columns = [(named[name], each) for name, each in batch.columns if name in named]
            batch = replace(batch, columns=columns)
        return batch if time_us is None else batch.judged_at(time_us)

    def rows(
        self, events: pa.RecordBatch, found: VersionMatches, operation: str | None
    ) -> Iterator[pa.RecordBatch]:
        """What is delivered: matches, one by one or by event, and what is done with them."""
        kept = events.select(list(self.kept))
        made = grouped_rows if self.grouped else single_rows
        for rows in made(kept, found, coded=self.coded):
            if operation is None:
                yield rows
            else:
                yield rows.append_column("operation", pa.repeat(operation, rows.num_rows))


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Matches the events of a partition; for `mapInArrow`."""

    index: OpensIndex
    layout: DeliveryLayout
    operation: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.index.open()
        for events in batches:
            found = matcher.match(self.layout.taken(events))
            yield from self.layout.rows(events, found, self.operation)


@dataclass(frozen=True, slots=True)
class PlainTask:
    """Runs a task and gives what Spark can take: texts in place of codes; for `mapInArrow`."""

    task: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(plain, self.task(batches))


@dataclass(frozen=True, slots=True)
class CorrectionTask:
    """Matches events with versions as they were thought to be and as they are now known to be.

    Gives what the first gave and the second does not, to be taken back, and the reverse.
    """

    before: OpensIndex
    after: OpensIndex
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matchers = self.before.open(), self.after.open()
        for events in batches:
            batch = self.layout.taken(events)
            before, after = (matcher.match(batch) for matcher in matchers)
            wrong, missing = _only_in_one(before, after)
            yield from self.layout.rows(events, wrong, RETRACT)
            yield from self.layout.rows(events, missing, ASSERT)


def _only_in_one(a: VersionMatches, b: VersionMatches) -> tuple[VersionMatches, VersionMatches]:
    """The matches of one that the other does not have."""
    codes: dict[tuple[str | None, object], int] = {}
    pairs: list[npt.NDArray[np.int64]] = []
    for each in (a, b):
        ids, since = each.columns.subscription.to_pylist(), each.columns.since.to_pylist()
        known = zip(ids, since, strict=True)
        of_number = np.array([codes.setdefault(key, len(codes)) for key in known], np.int64)
        pairs.append(each.events << 32 | of_number[each.numbers])
    first, second = pairs
    return _chosen(a, ~np.isin(first, second)), _chosen(b, ~np.isin(second, first))


def _chosen(found: VersionMatches, chosen: npt.NDArray[np.bool_]) -> VersionMatches:
    return replace(found, events=found.events[chosen], numbers=found.numbers[chosen])
