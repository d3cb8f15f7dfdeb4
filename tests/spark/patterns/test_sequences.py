"""The state of patterns in a stream, without Spark: any split into micro-batches, one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from tidegate.errors import LateEventsError
from tidegate.language.events import Event
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.language.values import to_us
from tidegate.spark.patterns.candidates import candidate_json
from tidegate.spark.patterns.sequences import SequenceProcessor, SortedTask, StepSequence

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = ["x = 1", "x = 2", "x >= 1", "x in (0, 2)", "x != 1"]
NEVER_LATE = 2**62

Stream = list[tuple[float, int | None]]
"""Events as pairs of a second and a value of x, in the order of arrival."""


def sequence_of(pattern: Pattern) -> StepSequence:
    return StepSequence(str(pattern), len(pattern.steps), pattern.within_us, "me")


def times_us_of(second: float) -> int:
    return to_us(START + timedelta(seconds=second))


def candidates(pattern: Pattern, events: Stream) -> list[Row]:
    """The output of the index: a row for each event that satisfies some step."""
    found: list[Row] = []
    for second, x in events:
        steps = sum(
            1 << index for index, step in enumerate(pattern.steps) if step.matches({"x": x})
        )
        if steps:
            time_us = times_us_of(second)
            text = candidate_json(time_us, steps, json.dumps({"x": x, "second": second}))
            found.append(Row(subscription="p", time_us=time_us, candidate=text))
    return found


def run(
    pattern: Pattern, batches: list[Stream], lateness_s: float
) -> tuple[list[list[float]], list[float]]:
    """The matches of a stream in micro-batches, and its late events, by their seconds."""
    tester = simulated(pattern)
    rows: list[Row] = []
    latest = -1e9
    end: list[Stream] = [[(1e6, None)], []]
    for batch in batches + end:
        mark = round((latest - lateness_s) * 1000) + times_us_of(0) // 1000
        if mark > tester._currentWatermarkMs and latest > -1e9:
            rows += cast(list[Row], tester.setWatermark(mark))
        rows += tester.test("p", candidates(pattern, batch))
        latest = max([latest, *(second for second, _ in batch)])
    found = [[event["second"] for event in row.events] for row in rows if not row.late]
    return found, [row.events[0]["second"] for row in rows if row.late]


def simulated(pattern: Pattern, pending_max: int = 1000) -> TwsTester:
    processor = SequenceProcessor({"p": sequence_of(pattern)}, pending_max)
    return TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: NEVER_LATE)


def embedded(pattern: Pattern, events: Stream) -> list[list[float]]:
    """The matches of the embedded matcher for events that are not late."""
    matcher = SequenceMatcher(pattern)
    ordered = sorted(events, key=lambda each: (each[0], each[1] is not None, each[1]))
    found: list[list[float]] = []
    for second, x in ordered:
        event = Event.of({"x": x, "second": second}, START + timedelta(seconds=second))
        found += [[float(str(e.attributes["second"])) for e in m] for m in matcher.feed(event)]
    return found


def in_time(batches: list[Stream], lateness_s: float) -> tuple[Stream, Stream]:
    """The events that are not late by the micro-batches before theirs, and the late ones."""
    good: Stream = []
    late: Stream = []
    latest = -1e9
    for batch in batches:
        for each in batch:
            (late if each[0] < latest - lateness_s else good).append(each)
        latest = max([latest, *(second for second, _ in batch)])
    return good, late


patterns = st.builds(
    lambda steps, within: parse_pattern(" then ".join(steps) + within),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    st.sampled_from(["", " within 0 s", " within 2 s", " within 5 s"]),
)
streams = st.lists(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 2])), max_size=6), max_size=6
)


@given(patterns, streams, st.sampled_from([0.0, 3.0, 100.0]))
@example(  # an event of the watermark's own time, before which another one can still come
    parse_pattern("x = 1 then x = 2"), [[(0, 2), (3, 2)], [(6, 0)], [(3, 1)]], 3.0
)
def test_gives_what_the_embedded_matcher_gives(
    pattern: Pattern, batches: list[Stream], lateness_s: float
) -> None:
    good, behind = in_time(batches, lateness_s)
    late = [each.time_us for each in candidates(pattern, behind)]
    found, given_late = run(pattern, batches, lateness_s)
    assert found == embedded(pattern, good)
    assert [times_us_of(second) for second in given_late] == late


def splits(events: Stream) -> Iterator[list[Stream]]:
    """All ways to split a stream into micro-batches."""
    for cuts in product([False, True], repeat=len(events) - 1):
        batches = [events[:1]]
        for cut, event in zip(cuts, events[1:], strict=True):
            if cut:
                batches.append([event])
            else:
                batches[-1].append(event)
        yield batches


@pytest.mark.parametrize("within", ["", " within 2 s"])
def test_every_split_gives_the_same(within: str) -> None:
    pattern = parse_pattern("x = 1 then x != 1 then x = 2" + within)
    events: Stream = [(1, 0), (0, 1), (2, 1), (3, 0), (3, 2), (2, 2), (4, 1), (5, 2), (6, 2)]
    wanted = embedded(pattern, events)
    assert len(wanted) == 2
    assert [each for each in splits(events) if run(pattern, each, 2.0) != (wanted, [])] == []


@given(patterns, st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 2])), max_size=30))
def test_sorted_candidates_give_the_same(pattern: Pattern, events: Stream) -> None:
    event = pa.struct([pa.field("second", pa.float64())])
    schema = pa.schema([pa.field("events", pa.list_(event))])
    task = SortedTask({"p": sequence_of(pattern)}, schema)
    rows = sorted(candidates(pattern, events), key=lambda row: int(row.time_us))
    batches = [pa.RecordBatch.from_pylist([row.asDict()]) for row in rows]
    found = [row["events"] for batch in task(iter(batches)) for row in batch.to_pylist()]
    assert [[each["second"] for each in row] for row in found] == embedded(pattern, events)


def test_state_is_bounded() -> None:
    pattern = parse_pattern("x = 1 then x = 2 within 100 s")
    tester = simulated(pattern, pending_max=2)
    tester.test("p", candidates(pattern, [(0, 1), (1, 1)]))
    with pytest.raises(LateEventsError, match="pattern 'p' has to keep 3 events and may keep 2"):
        tester.test("p", candidates(pattern, [(2, 1)]))
    tester = simulated(pattern, pending_max=2)
    tester.test("p", candidates(pattern, [(0, 1), (1, 1)]))
    tester.setWatermark(times_us_of(1.5) // 1000)
    assert state(tester) == (str(pattern), 0, None, [0, 1])
    tester.test("p", candidates(pattern, [(2, 1)]))
    with pytest.raises(LateEventsError, match="has to keep 3 events"):
        tester.setWatermark(times_us_of(9) // 1000)


def state(tester: TwsTester) -> Any:
    kept = tester.peekValueState("progress", "p")
    if kept is None:
        return None
    pattern, waiting, first, attempt = kept
    return pattern, waiting, first, [event["second"] for _, _, event in json.loads(attempt)]


def test_state_ends_with_the_match() -> None:
    pattern = parse_pattern("x = 1 then x = 2")
    tester = simulated(pattern)
    tester.test("p", candidates(pattern, [(0, 1), (1, 2)]))
    assert state(tester) == (str(pattern), 2, times_us_of(0), [])
    assert len(tester.setWatermark(times_us_of(9) // 1000)) == 1
    assert state(tester) is None
    assert tester.peekListState("waiting", "p") == []


def test_a_changed_pattern_begins_anew() -> None:
    old, new = parse_pattern("x = 1 then x = 2"), parse_pattern("x = 1 then x = 0")
    tester = simulated(new)
    tester.updateValueState("progress", "p", (str(old), 1, times_us_of(0), "[]"))
    tester.updateListState("waiting", "p", [(times_us_of(0), "[]")])
    tester.handle.setGroupingKey("p")
    tester.handle.registerTimer(times_us_of(0) // 1000 + 1)
    tester.test("p", candidates(new, [(5, 1)]))
    assert state(tester) == (str(new), 1, times_us_of(5), [])
    assert tester.setWatermark(times_us_of(1) // 1000) == []
    assert state(tester) == (str(new), 1, times_us_of(5), [])


def test_a_pattern_that_is_gone_leaves_nothing() -> None:
    tester = TwsTester(
        SequenceProcessor({}, 9), timeMode="EventTime", eventTimeExtractor=lambda _: NEVER_LATE
    )
    tester.updateValueState("progress", "p", ("x = 1", 1, times_us_of(0), "[]"))
    tester.handle.setGroupingKey("p")
    tester.handle.registerTimer(times_us_of(0) // 1000 + 1)
    assert tester.setWatermark(times_us_of(1) // 1000) == []
    assert state(tester) is None
    tester.processor.close()


def test_times_before_1970_wait_for_a_watermark() -> None:
    pattern = parse_pattern("x = 1")
    tester = simulated(pattern)
    before = (datetime(1969, 1, 1, tzinfo=UTC) - START).total_seconds()
    assert tester.test("p", candidates(pattern, [(before, 1)])) == []
    assert len(tester.setWatermark(1)) == 1
