"""Finding the matches of patterns among candidates: in a stream with state, in batch by sorting.

Both feed the candidates of a pattern, in the order of their times, to the same `Attempt` as the
embedded matcher (`language/patterns/attempts.py`).

Theory of operation of the stream. A pattern's state is the candidates that wait, in chunks as they
arrived, and its attempt, stored as the candidates that lead to it. Spark's watermark W is the
latest time of any event in earlier micro-batches, less the lateness, rounded down to milliseconds.
In each micro-batch,

- a candidate of a time before W is late: it becomes a row of its own and is not used;
- the others wait, and a timer is set for the watermark that passes the first of them;
- when the timer fires, in this micro-batch or a later one, all candidates of a time before W are
  fed to the attempt, sorted by time.

So whatever is fed in one micro-batch is earlier than whatever can still arrive in the next.
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
    join_candidates,
    read_candidates,
    sorted_candidates,
    write_candidates,
)

OUTPUT_ROWS_MAX = 10_000
"""The number of matches that go to Spark at once, which bounds the memory of a worker."""

WAITING_SCHEMA = t.StructType(
    [
        t.StructField("first", t.LongType()),
        t.StructField("candidates", t.StringType()),
    ]
)
"""A chunk of waiting candidates: the earliest time in microseconds, and their JSON."""

PROGRESS_SCHEMA = t.StructType(
    [
        t.StructField("pattern", t.StringType()),
        t.StructField("waiting", t.LongType()),
        t.StructField("first", t.LongType()),
        t.StructField("attempt", t.StringType()),
    ]
)
"""The text of the pattern, the number of waiting candidates, the earliest time among them in
microseconds, and the JSON of the candidates that the attempt holds."""


@dataclass(frozen=True, slots=True)
class StepSequence:
    """A pattern whose steps are evaluated already, so that only their order and times matter."""

    pattern: str
    steps: int
    within_us: int | None
    subscriber: str | None

    def attempt(self) -> Attempt[Candidate]:
        """An attempt at a match that holds no events yet."""
        return Attempt(self.steps, self.within_us, _satisfies)


def _satisfies(step: int, _: int, candidate: Candidate) -> bool:
    return bool(candidate.steps >> step & 1)


def result_row(
    id: str, sequence: StepSequence, candidates: list[Candidate], *, late: bool
) -> dict[str, Any]:
    """A row of the result, with times in microseconds."""
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
    """Yields the matches among candidates that are sorted by pattern and time; for `mapInArrow`."""

    sequences: Mapping[str, StepSequence]
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
        for id, rows in groupby(_rows(batches), key=itemgetter(0)):
            sequence = self.sequences[id]
            attempt = sequence.attempt()
            # Spark has sorted by time; candidates of the same time are ordered here.
            for _, tied in groupby(rows, key=itemgetter(1)):
                for each in sorted_candidates(
                    read_candidates(join_candidates(text for _, _, text in tied))
                ):
                    for match in attempt.take(each.time_us, each):
                        matched = [candidate for _, candidate in match]
                        yield result_row(id, sequence, matched, late=False)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, int, str]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


# -- in a stream ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SequenceState:
    """The state of a pattern except for the waiting candidates themselves."""

    waiting: int = 0
    first_us: int | None = None
    """The earliest time among the waiting candidates."""
    attempt: str = "[]"
    """The JSON of the candidates that lead to the attempt; feeding them again restores it."""


class SequenceProcessor(StatefulProcessor):
    """Yields the matches in a stream of candidates, grouped by pattern; for `transformWithState`.

    A pattern keeps at most ``pending_max`` candidates. If a query is restarted with a checkpoint
    and the text of a pattern has changed, or the pattern is gone, then its state is dropped.
    """

    def __init__(self, sequences: Mapping[str, StepSequence], pending_max: int) -> None:
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
        """Add candidates to those that wait; late ones become rows of the result."""
        (id,) = key
        sequence = self._sequences[id]
        watermark_us = _watermark_us(timerValues)
        times_us: list[int] = []
        texts: list[str] = []
        for row in rows:
            if watermark_us is not None and row.time_us < watermark_us:
                late = read_candidates(join_candidates([row.candidate]))
                yield Row(**result_row(id, sequence, late, late=True))
            else:
                times_us.append(row.time_us)
                texts.append(row.candidate)
        if times_us:
            self._add_waiting(id, sequence, min(times_us), texts, watermark_us)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Feed the candidates of times before the watermark to the attempt."""
        (id,) = key
        sequence = self._sequences.get(id)
        watermark_us = _watermark_us(timerValues)
        state = self._read(sequence)
        if sequence is None or watermark_us is None or state.first_us is None:
            return
        if state.first_us >= watermark_us:
            # An earlier candidate arrived after this timer was set. Its own, earlier timer has
            # taken the candidate of this one along.
            return
        attempt = sequence.attempt()
        for each in read_candidates(state.attempt):
            attempt.take(each.time_us, each)
        ready, rest = self._split_waiting(watermark_us)
        for each in sorted_candidates(ready):
            for match in attempt.take(each.time_us, each):
                matched = [candidate for _, candidate in match]
                yield Row(**result_row(id, sequence, matched, late=False))
        first_us = min((each_us for each_us, _ in rest), default=None)
        replayed = [candidate for _, candidate in attempt.events_to_replay()]
        waiting = state.waiting - len(ready)
        self._check_pending(id, waiting + len(replayed))
        if waiting or replayed:
            self._write(sequence, _SequenceState(waiting, first_us, write_candidates(replayed)))
        else:
            self._progress.clear()
        if first_us is not None:
            self._handle.registerTimer(_expiry_ms(first_us))

    def close(self) -> None:
        """Do nothing: the processor holds no resources."""

    def _add_waiting(
        self,
        id: str,
        sequence: StepSequence,
        first_us: int,
        texts: list[str],
        watermark_us: int | None,
    ) -> None:
        """Add candidates, none of which is late, to those that wait."""
        state = self._read(sequence)
        waiting = state.waiting + len(texts)
        earliest_us = first_us if state.first_us is None else min(state.first_us, first_us)
        # If the earliest is before the watermark, its timer fires in this micro-batch and takes
        # candidates away; the limit is checked then.
        if watermark_us is None or earliest_us >= watermark_us:
            self._check_pending(id, waiting)
        self._waiting.appendValue((first_us, join_candidates(texts)))
        self._write(sequence, _SequenceState(waiting, earliest_us, state.attempt))
        if earliest_us != state.first_us:
            self._handle.registerTimer(_expiry_ms(earliest_us))

    def _split_waiting(self, watermark_us: int) -> tuple[list[Candidate], list[tuple[int, str]]]:
        """Remove the candidates before the watermark; returns them and the remaining chunks."""
        ready: list[Candidate] = []
        rest: list[tuple[int, str]] = []
        staying: list[Candidate] = []
        for first_us, text in self._waiting.get():
            if first_us >= watermark_us:
                rest.append((first_us, text))
                continue
            for each in read_candidates(text):
                (ready if each.time_us < watermark_us else staying).append(each)
        if staying:
            rest.append((min(each.time_us for each in staying), write_candidates(staying)))
        if rest:
            self._waiting.put(rest)
        else:
            self._waiting.clear()
        return ready, rest

    def _read(self, sequence: StepSequence | None) -> _SequenceState:
        """The stored state, which is dropped if it is of another text of the pattern."""
        stored = self._progress.get()
        if stored is None:
            return _SequenceState()
        pattern, waiting, first_us, attempt = stored
        if sequence is not None and pattern == sequence.pattern:
            return _SequenceState(waiting, first_us, attempt)
        self._progress.clear()
        self._waiting.clear()
        return _SequenceState()

    def _write(self, sequence: StepSequence, state: _SequenceState) -> None:
        self._progress.update((sequence.pattern, state.waiting, state.first_us, state.attempt))

    def _check_pending(self, id: str, kept: int) -> None:
        if kept > self._pending_max:
            raise LateEventsError(
                f"pattern {id!r} has to keep {kept} events and may keep {self._pending_max}; allow "
                "less lateness, a shorter `within`, or a larger pending_max"
            )


def _watermark_us(timer_values: TimerValues) -> int | None:
    """The watermark in microseconds; None before the first one, which Spark represents by 0."""
    watermark_ms = timer_values.getCurrentWatermarkInMs()
    return None if watermark_ms <= 0 else watermark_ms * 1000


def _expiry_ms(first_us: int) -> int:
    """The first watermark in milliseconds that is later than a time.

    Spark fires a timer when the watermark reaches the timer's time.
    """
    return max(1, first_us // 1000 + 1)
