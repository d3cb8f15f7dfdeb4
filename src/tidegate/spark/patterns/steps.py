"""Which events satisfy which steps of which patterns, found by the index of all steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as t

from tidegate.matching.batches import VersionMatches
from tidegate.spark.patterns.candidates import candidate_text, events_as_json
from tidegate.spark.worker import DeliveryLayout, OpensIndex

CANDIDATE_SCHEMA = t.StructType(
    [
        t.StructField("subscription", t.StringType(), False),
        t.StructField("time_us", t.LongType(), False),
        t.StructField("candidate", t.StringType(), False),
    ]
)
"""What goes to a pattern's state: the pattern's id, the event's time, and the JSON of it all.

The time stands here as a plain number and not as Spark's event time, so that Spark does not drop
what is behind the watermark before anyone has counted it.
"""


def step_id(step: int, pattern_id: str) -> str:
    """The id under which a step stands in the index."""
    return f"{step}:{pattern_id}"


@dataclass(frozen=True, slots=True)
class StepTask:
    """Finds the candidates among the events of a partition; for `mapInArrow`."""

    index: OpensIndex
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.index.open()
        for events in batches:
            batch = self.layout.taken(events)
            found = matcher.match(batch)
            if len(found.events):
                assert batch.times_us is not None
                yield _candidates(events.select(list(self.layout.kept)), batch.times_us, found)


def _candidates(
    events: pa.RecordBatch, times_us: npt.NDArray[np.int64], found: VersionMatches
) -> pa.RecordBatch:
    """A row for each event and pattern: all steps that the event satisfies, together."""
    numbers, which = np.unique(found.numbers, return_inverse=True)
    patterns: dict[str, int] = {}
    bits = np.empty(len(numbers), np.int64)
    codes = np.empty(len(numbers), np.int64)
    for index, name in enumerate(found.columns.subscription.take(numbers).to_pylist()):
        step, _, pattern = str(name).partition(":")
        bits[index] = 1 << int(step)
        codes[index] = patterns.setdefault(pattern, len(patterns))
    pairs = found.events * len(patterns) + codes[which]
    order = np.argsort(pairs, kind="stable")
    pairs, begins = np.unique(pairs[order], return_index=True)
    steps = np.bitwise_or.reduceat(bits[which][order], begins)
    places, codes = np.divmod(pairs, len(patterns))
    ids: Any = pa.array(list(patterns), pa.string()).take(codes)
    times = times_us[places]
    texts = _texts(events, places, times, steps)
    return pa.RecordBatch.from_arrays([ids, pa.array(times), texts], names=CANDIDATE_SCHEMA.names)


def _texts(
    events: pa.RecordBatch,
    places: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
) -> Any:
    """The JSON of candidates; an event of several patterns is written once."""
    matched, rows = np.unique(places, return_inverse=True)
    written = events_as_json(events.take(matched))
    parts = zip(times.tolist(), steps.tolist(), rows.tolist(), strict=True)
    texts = [candidate_text(time, bits, written[row]) for time, bits, row in parts]
    return pa.array(texts, pa.string())
