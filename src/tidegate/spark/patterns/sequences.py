"""Finding the matches of patterns among candidates: in a stream with state, in batch by sorting.

Both feed the candidates of a pattern, in the order of their times, to the attempt that the
embedded matcher has too (`language/attempts.py`).

Theory of operation of the stream. A pattern's state is the candidates that wait, in chunks as they
came, and its attempt, as the candidates that lead to it. Spark's watermark W is the latest time
that earlier micro-batches saw, of any event, less the lateness; Spark counts it in whole
milliseconds and rounds down. In each micro-batch,

- a candidate from before W is late: it becomes a row of its own and is not used;
- the others wait, and a timer is set for when the first of them is before the watermark;
- when it fires, in this micro-batch or in a later one, all that are before W are taken in order.

So whatever is taken in one micro-batch is before whatever can still come in the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from tidegate.errors import LateEventsError
from tidegate.language.patterns.attempts import Attempt
from tidegate.spark.patterns.candidates import (
    Candidate,
    in_order,
    joined,
    read_candidates,
    write_candidates,
)

OUTPUT_ROWS_MAX = 10_000
"""At most so many matches go to Spark at once, which bounds the memory of a worker."""

WAITING_SCHEMA = t.StructType(
    [
        t.StructField("first", t.LongType()),
        t.StructField("candidates", t.StringType()),
    ]
)
"""A chunk of waiting candidates: the time of the first of them in microseconds, and their JSON."""

PROGRESS_SCHEMA = t.StructType(
    [
        t.StructField("pattern", t.StringType()),
        t.StructField("waiting", t.LongType()),
        t.StructField("first", t.LongType()),
        t.StructField("attempt", t.StringType()),
    ]
)
"""Of which pattern the state is, how many candidates wait, the time of the first of them, and the
JSON of those that the attempt holds."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """What is needed of a pattern once its steps are evaluated."""

    pattern: str
    steps: int
    within: int | None
    subscriber: str | None

    def attempt(self) -> Attempt[Candidate]:
        """A fresh attempt at a match."""
        return Attempt(self.steps, self.within, _satisfies)


def _satisfies(step: int, _: int, candidate: Candidate) -> bool:
    return bool(candidate.steps >> step & 1)


def result_row(
    id: str, sequence: Sequence, candidates: list[Candidate], *, late: bool
) -> dict[str, Any]:
    """A row of the result, times as microseconds."""
    return {
        "subscription": id,
        "subscriber": sequence.subscriber,
        "events": [each.event for each in candidates],
        "first_time": candidates[0].time_us,
        "last_time": candidates[-1].time_us,
        "late": late,
    }


# -- in batch ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortedTask:
    """Finds the matches among candidates sorted by pattern and time; for `mapInArrow`."""

    sequences: Mapping[str, Sequence]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[dict[str, Any]] = []
        for row in self._matches(batches):
            rows.append(row)
            if len(rows) == OUTPUT_ROWS_MAX:
                yield pa.RecordBatch.from_pylist(rows, schema=self.schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=self.schema)

    def _matches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        for id, of_pattern in groupby(_rows(batches), key=itemgetter(0)):
            sequence = self.sequences[id]
            attempt = sequence.attempt()
            for _, tied in groupby(of_pattern, key=itemgetter(1)):
                for each in in_order(read_candidates(joined(text for _, _, text in tied))):
                    for match in attempt.take(each.time_us, each):
                        found = [candidate for _, candidate in match]
                        yield result_row(id, sequence, found, late=False)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, int, str]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


# -- in a stream ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SequenceState:
    """The state of a pattern but for the waiting candidates themselves."""

    waiting: int = 0
    first: int | None = None
    attempt: str = "[]"


class SequenceProcessor(StatefulProcessor):
    """Finds the matches in a stream of candidates, grouped by pattern; for `transformWithState`.

    A pattern keeps at most ``pending_max`` candidates. If its text is another one when a query
    goes on from a checkpoint, or if it is gone, then its state is dropped.
    """

    def __init__(self, sequences: Mapping[str, Sequence], pending_max: int) -> None:
        self._sequences = sequences
        self._pending_max = pending_max

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._waiting = handle.getListState("waiting", WAITING_SCHEMA)
        self._progress = handle.getValueState("progress", PROGRESS_SCHEMA)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """Let candidates wait; those that are late become rows."""
        (id,) = key
        sequence = self._sequences[id]
        border = _border(timerValues)
        times: list[int] = []
        texts: list[str] = []
        for row in rows:
            if border is not None and row.time_us < border:
                late = read_candidates(joined([row.candidate]))
                yield Row(**result_row(id, sequence, late, late=True))
            else:
                times.append(row.time_us)
                texts.append(row.candidate)
        if times:
            self._wait(id, sequence, min(times), texts, border)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Take the candidates that are before the watermark."""
        (id,) = key
        sequence = self._sequences.get(id)
        border = _border(timerValues)
        before = self._read(sequence)
        if sequence is None or border is None or before.first is None or before.first >= border:
            return  # an earlier candidate came after this timer was set, and took this one along
        attempt = sequence.attempt()
        for each in read_candidates(before.attempt):
            attempt.take(each.time_us, each)
        ready, rest = self._split(border)
        for each in in_order(ready):
            for match in attempt.take(each.time_us, each):
                found = [candidate for _, candidate in match]
                yield Row(**result_row(id, sequence, found, late=False))
        first = min((first for first, _ in rest), default=None)
        held = [candidate for _, candidate in attempt.held()]
        waiting = before.waiting - len(ready)
        self._check(id, waiting + len(held))
        if waiting or held:
            self._write(sequence, _SequenceState(waiting, first, write_candidates(held)))
        else:
            self._progress.clear()
        if first is not None:
            self._handle.registerTimer(_expiry_ms(first))

    def close(self) -> None:
        """Nothing is open."""

    def _wait(
        self, id: str, sequence: Sequence, first: int, texts: list[str], border: int | None
    ) -> None:
        """Let candidates wait, none of which is before the border."""
        before = self._read(sequence)
        waiting = before.waiting + len(texts)
        earliest = first if before.first is None else min(before.first, first)
        if border is None or earliest >= border:  # else the timer will let some go
            self._check(id, waiting)
        self._waiting.appendValue((first, joined(texts)))
        self._write(sequence, _SequenceState(waiting, earliest, before.attempt))
        if earliest != before.first:
            self._handle.registerTimer(_expiry_ms(earliest))

    def _split(self, border: int) -> tuple[list[Candidate], list[tuple[int, str]]]:
        """Candidates before the border, which wait no more, and chunks of those that go on."""
        ready: list[Candidate] = []
        rest: list[tuple[int, str]] = []
        staying: list[Candidate] = []
        for first, text in self._waiting.get():
            if first >= border:
                rest.append((first, text))
                continue
            for each in read_candidates(text):
                (ready if each.time_us < border else staying).append(each)
        if staying:
            rest.append((min(each.time_us for each in staying), write_candidates(staying)))
        if rest:
            self._waiting.put(rest)
        else:
            self._waiting.clear()
        return ready, rest

    def _read(self, sequence: Sequence | None) -> _SequenceState:
        stored = self._progress.get()
        if stored is None:
            return _SequenceState()
        pattern, waiting, first, attempt = stored
        if sequence is not None and pattern == sequence.pattern:
            return _SequenceState(waiting, first, attempt)
        self._progress.clear()
        self._waiting.clear()
        return _SequenceState()

    def _write(self, sequence: Sequence, progress: _SequenceState) -> None:
        self._progress.update(
            (sequence.pattern, progress.waiting, progress.first, progress.attempt)
        )

    def _check(self, id: str, kept: int) -> None:
        if kept > self._pending_max:
            raise LateEventsError(
                f"pattern {id!r} has to keep {kept} events and may keep {self._pending_max}; allow "
                "less lateness, a shorter `within`, or a larger pending_max"
            )


def _border(timer_values: TimerValues) -> int | None:
    """The watermark in microseconds; None before there is one, when Spark says 0."""
    millis = timer_values.getCurrentWatermarkInMs()
    return None if millis <= 0 else millis * 1000


def _expiry_ms(first: int) -> int:
    """The first watermark that is behind a time. Spark fires a timer when it reaches its time."""
    return max(1, first // 1000 + 1)
