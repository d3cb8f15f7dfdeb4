"""Tasks that run in Spark's Python workers: Arrow batches of events in, Arrow batches of deliveries
out.

Each task is a picklable callable for `mapInArrow`. It holds no index, only a handle; the worker
opens the index behind it once and keeps it open for later tasks.
"""

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
from tidegate.spark.delivery_rows import decoded, grouped_rows, single_rows

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function that `mapInArrow` can run."""

ASSERT, RETRACT = "assert", "retract"
"""The values of the column `operation`: an event matches; a delivery made earlier was wrong."""


class IndexHandle(Protocol):
    """The handle of an index, which a task holds in place of the index itself."""

    def open(self) -> AsOfMatcher:
        """The index, which stays open in this process for later tasks."""
        ...


@dataclass(frozen=True, slots=True)
class DeliveryLayout:
    """How the columns of events are read and those of deliveries are written."""

    event_time: str | None
    kept: tuple[str, ...]
    """The event's columns that are part of the result."""
    grouped: bool
    variables: Mapping[str, Value] = field(default_factory=dict)
    attributes: Mapping[str, str] | None = None
    """The attribute of each column, where the names differ; columns that are not listed are not
    attributes. An attribute whose values are of several types has a column for each type."""
    used: frozenset[str] | None = None
    """The attributes that are read, with the time of the events; None for all."""
    encoded: bool = False
    """Whether ids in the output are dictionary-encoded; see `delivery_rows.py`."""

    def event_batch(self, events: pa.RecordBatch) -> EventBatch:
        """The attributes of events, with the variables and the times at which they are judged."""
        batch = EventBatch.of(events, self.used).with_variables(self.variables)
        # Read before columns are renamed: ``event_time`` is the name of a column, which need not be
        # an attribute.
        time_us = None
        if self.event_time is not None:
            column: Any = dict(batch.columns)[self.event_time]
            time_us = times_us_of(column, self.event_time)
        if self.attributes is not None:
            names = self.attributes
            columns = [(names[name], each) for name, each in batch.columns if name in names]
            batch = replace(batch, columns=columns)
        return batch if time_us is None else batch.judged_at(time_us)

    def rows(
        self, events: pa.RecordBatch, matches: VersionMatches, operation: str | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of deliveries, with a column `operation` if one is given."""
        kept = events.select(list(self.kept))
        make_rows = grouped_rows if self.grouped else single_rows
        for rows in make_rows(kept, matches, encoded=self.encoded):
            if operation is None:
                yield rows
            else:
                yield rows.append_column("operation", pa.repeat(operation, rows.num_rows))


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Matches the events of a partition with one index."""

    index: IndexHandle
    layout: DeliveryLayout
    operation: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.index.open()
        for events in batches:
            matches = matcher.match(self.layout.event_batch(events))
            yield from self.layout.rows(events, matches, self.operation)


@dataclass(frozen=True, slots=True)
class DecodingTask:
    """Runs a task and replaces dictionary-encoded columns by strings, because Spark needs those."""

    task: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(decoded, self.task(batches))


@dataclass(frozen=True, slots=True)
class CorrectionTask:
    """Matches events again after a late change: with the versions before it and those after it.

    Matches that only the versions before have are retracted, matches that only those after have
    are asserted.
    """

    before: IndexHandle
    after: IndexHandle
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matchers = self.before.open(), self.after.open()
        for events in batches:
            batch = self.layout.event_batch(events)
            before, after = (matcher.match(batch) for matcher in matchers)
            wrong, missing = _only_in_one(before, after)
            yield from self.layout.rows(events, wrong, RETRACT)
            yield from self.layout.rows(events, missing, ASSERT)


def _only_in_one(a: VersionMatches, b: VersionMatches) -> tuple[VersionMatches, VersionMatches]:
    """The matches of ``a`` that ``b`` does not have, and the reverse.

    The same version has different numbers in the two indexes, so both are mapped to common codes.
    A match is then one integer: the event in the upper 32 bits, the code of its version below.
    """
    codes: dict[tuple[str | None, object], int] = {}
    pairs: list[npt.NDArray[np.int64]] = []
    for each in (a, b):
        ids, since = each.columns.subscription.to_pylist(), each.columns.since.to_pylist()
        versions = zip(ids, since, strict=True)
        code_of = np.array([codes.setdefault(key, len(codes)) for key in versions], np.int64)
        pairs.append(each.events << 32 | code_of[each.numbers])
    first, second = pairs
    return _filtered(a, ~np.isin(first, second)), _filtered(b, ~np.isin(second, first))


def _filtered(matches: VersionMatches, chosen: npt.NDArray[np.bool_]) -> VersionMatches:
    return replace(matches, events=matches.events[chosen], numbers=matches.numbers[chosen])
