"""Finding the events that satisfy steps of patterns, with one index of all steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as t

from tidegate.matching.batches import VersionMatches
from tidegate.spark.patterns.candidates import candidate_json, events_as_json
from tidegate.spark.worker_tasks import DeliveryLayout, IndexHandle

CANDIDATE_SCHEMA = t.StructType(
    [
        t.StructField("subscription", t.StringType(), False),
        t.StructField("time_us", t.LongType(), False),
        t.StructField("candidate", t.StringType(), False),
    ]
)
"""The rows that go to a pattern's state: the pattern's id, the event's time, and the candidate as
JSON.

The time is a plain number and not Spark's event time. Otherwise Spark would drop rows behind the
watermark before they are counted as late.
"""


def step_id(step: int, pattern_id: str) -> str:
    """The id of a step in the index."""
    return f"{step}:{pattern_id}"


@dataclass(frozen=True, slots=True)
class StepTask:
    """Yields the candidates among the events of a partition; for `mapInArrow`."""

    index: IndexHandle
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.index.open()
        for events in batches:
            batch = self.layout.event_batch(events)
            matches = matcher.match(batch)
            if len(matches.events):
                assert batch.times_us is not None
                yield _candidates(events.select(list(self.layout.kept)), batch.times_us, matches)


def _candidates(
    events: pa.RecordBatch, times_us: npt.NDArray[np.int64], matches: VersionMatches
) -> pa.RecordBatch:
    """A row for each pair of an event and a pattern, with all steps that the event satisfies.

    A match is an event and the number of a step. The steps of one pattern are combined to a bit
    mask: matches are sorted by the pair, and the bits of equal pairs are OR-ed.
    """
    numbers, which = np.unique(matches.numbers, return_inverse=True)
    patterns: dict[str, int] = {}
    bits = np.empty(len(numbers), np.int64)
    codes = np.empty(len(numbers), np.int64)
    for index, name in enumerate(matches.columns.subscription.take(numbers).to_pylist()):
        # The first colon is ours; the id of a pattern may have more of them.
        step, _, pattern = str(name).partition(":")
        bits[index] = 1 << int(step)
        codes[index] = patterns.setdefault(pattern, len(patterns))
    pairs = matches.events * len(patterns) + codes[which]
    order = np.argsort(pairs, kind="stable")
    pairs, begins = np.unique(pairs[order], return_index=True)
    steps = np.bitwise_or.reduceat(bits[which][order], begins)
    rows, codes = np.divmod(pairs, len(patterns))
    ids: Any = pa.array(list(patterns), pa.string()).take(codes)
    candidate_times_us = times_us[rows]
    texts = _candidate_texts(events, rows, candidate_times_us, steps)
    return pa.RecordBatch.from_arrays(
        [ids, pa.array(candidate_times_us), texts], names=CANDIDATE_SCHEMA.names
    )


def _candidate_texts(
    events: pa.RecordBatch,
    rows: npt.NDArray[np.int64],
    times_us: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
) -> Any:
    """The JSON of candidates, whose events are given by row.

    The JSON of an event that is a candidate of several patterns is made once.
    """
    matched, indexes = np.unique(rows, return_inverse=True)
    event_texts = events_as_json(events.take(matched))
    parts = zip(times_us.tolist(), steps.tolist(), indexes.tolist(), strict=True)
    texts = [candidate_json(time_us, bits, event_texts[index]) for time_us, bits, index in parts]
    return pa.array(texts, pa.string())
