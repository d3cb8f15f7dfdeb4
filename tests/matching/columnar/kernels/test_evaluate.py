"""Functions are evaluated for the pairs that bounds leave open, and for those alone."""

from __future__ import annotations

import math
from functools import reduce
from operator import or_

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.arrays import F64, I64
from tidegate.matching.columnar.kernels.evaluate import BLOCK_PAIRS, evaluate_unsure
from tidegate.matching.columnar.kernels.layout import flat
from tidegate.matching.columnar.kernels.match import match_events
from tidegate.matching.columnar.kernels.part import PackedPart, pack
from tidegate.matching.columnar.kernels.rewrite import enclose_entries
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.entries.blocks import entries_of
from tidegate.matching.rows.entries.channels import NUMBER, Channels
from tidegate.matching.rows.entries.constraints import Compiler
from tidegate.matching.rows.kernels.flags import EXACT_MAX, MOVING, UNSURE, VERIFY
from tidegate.matching.rows.kernels.motion import EVERY
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.store.cells import StringPool, encode
from tidegate.matching.rows.time_window import EventTimes, TimeWindow
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000
NO_SETS, NO_MEMBERS = np.zeros(1, np.int32), np.zeros(0)
NO_VARIABLES = np.zeros((1, 1))


def enclosed(text: str, begin: int, end: int, pin: int = EVERY) -> PackedPart:
    """A part of one entry that began at 0, with the number 7, enclosed for some seconds."""
    channels, pool = Channels(), StringPool()
    channels.channel("x", NUMBER)
    shape, row = parse(text).shape_and_row
    encoded = [encode(value, pool) for value in row if isinstance(value, (int, float))]
    cells = np.array([[cell for _, cell in encoded]], np.int64)
    (block,) = Compiler(channels, pool).blocks(shape, tuple(kind for kind, _ in encoded), cells)
    number, origin = np.array([7], np.int32), np.zeros(1, np.int64)
    entries = entries_of(block, number, origin, np.array([pin]))
    packed = pack(flat(entries, np.array([*channels.program, 0], np.int32)))
    window = TimeWindow.of(EventTimes(begin * SECOND, end * SECOND, False), NO_VARIABLES)
    enclose_entries(
        *packed, 0, len(entries), window.times, window.variables, np.empty(SCRATCH_FLOATS)
    )
    return packed


def evaluated(
    packed: PackedPart, events: F64, times_us: I64
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The pairs that the bounds leave, and those that match: event, subscription, flags."""
    room = len(events) + 64
    out = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8)
    count, _ = match_events(*packed, events, NO_SETS, NO_MEMBERS, *out)
    pairs = out[0][:count], out[1][:count], out[2][:count]
    left = list(zip(*(each.tolist() for each in pairs), strict=True))
    at, i32, _, _, f64, _, _ = packed
    matching = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.uint8)
    kept, seen = evaluate_unsure(
        at, i32, f64, events, times_us, NO_VARIABLES, np.empty(STACK_MAX),
        np.empty(BLOCK_PAIRS, np.int32), *pairs, *matching,
    )  # fmt: skip
    found = list(zip(*(each[:kept].tolist() for each in matching), strict=True))
    assert seen == reduce(or_, [flags for _, _, flags in found], 0)
    return left, found


def judged(packed: PackedPart, pairs: list[tuple[float, float]]) -> tuple[list[int], list[int]]:
    """Of events with an `x` at a time in seconds: those left open, and those that match."""
    events = np.array([[x] for x, _ in pairs])
    time_us = np.array([round(t * SECOND) for _, t in pairs])
    left, found = evaluated(packed, events, time_us)
    assert all(number == 7 and flags == MOVING for _, number, flags in found)
    return [event for event, _, flags in left if flags & UNSURE], [event for event, *_ in found]


def test_pairs_of_several_blocks_stay_in_order() -> None:
    rng = np.random.default_rng(1)
    count = 3 * BLOCK_PAIRS + 17
    xs, seconds = rng.uniform(-5, 7, count), rng.uniform(0, 2, count)
    _, matching = judged(
        enclosed("x >= -3 + t and x <= 3 + t", 0, 2), list(zip(xs, seconds, strict=True))
    )
    time_us = np.round(seconds * SECOND)
    expected = (xs >= -3 + time_us / SECOND) & (xs <= 3 + time_us / SECOND)
    assert matching == np.flatnonzero(expected).tolist()
    assert len(matching) > BLOCK_PAIRS


@pytest.mark.parametrize("text", ["x >= -3 + t and x <= 3 + t", "x >= t - 3 and x <= t + 3"])
def test_only_what_is_near_a_bound_is_evaluated(text: str) -> None:
    part = enclosed(text, 0, 2)
    values = [-4.0, -3.0, -1.5, -1.0, 0.0, 3.0, 3.5, 5.0, 5.5]
    unsure, matching = judged(part, [(x, 1.0) for x in values])
    assert [values[each] for each in matching] == [-1.5, -1.0, 0.0, 3.0, 3.5]
    assert [values[each] for each in unsure if values[each] not in (-1.0, 3.0)] == [
        -3.0, -1.5, 3.5, 5.0,
    ]  # fmt: skip


def test_each_event_is_judged_at_its_own_time() -> None:
    part = enclosed("x >= 2 + sin(t) and x <= 3 + sin(t)", 0, 3)
    times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    _, matching = judged(part, [(2.75, t) for t in times])
    expected = [2 + math.sin(t) <= 2.75 <= 3 + math.sin(t) for t in times]
    assert matching == [place for place, each in enumerate(expected) if each]
    assert 0 < len(matching) < len(times)


def test_a_function_that_is_pinned_is_evaluated_for_the_time_of_its_pin() -> None:
    pairs = [(1.5, 0.9), (1.5, 1.9), (1.5, 2.9)]
    assert judged(enclosed("x < t", 0, 3), pairs)[1] == [1, 2]
    assert judged(enclosed("x < t", 0, 3, EVERY + SECOND), pairs)[1] == [2]
    assert judged(enclosed("x < t", 0, 3, 1_600_000), pairs)[1] == [1, 2]
    assert judged(enclosed("x < t", 0, 3, 1_400_000), pairs)[1] == []


def test_what_is_undefined_matches_nothing() -> None:
    part = enclosed("x < 1 / (t - 1)", 0, 2)
    assert judged(part, [(-2.0, 0.0), (-2.0, 1.0), (-2.0, 2.0)])[1] == [0, 2]


def test_large_numbers_are_left_to_the_meaning_of_the_language() -> None:
    events = np.array([[float(EXACT_MAX)]])
    left, found = evaluated(enclosed("x >= t and x < 1e300 * t", 1, 2), events, np.array([SECOND]))
    assert [flags for *_, flags in left] == [MOVING | UNSURE]
    assert found == [(0, 7, MOVING | VERIFY)]


edges = st.sampled_from([-3.0, 3.0, 0.0, 2.0, 2.0**53, 1e-9]) | st.floats(-10, 10)


@given(st.lists(st.tuples(edges, st.integers(0, 5 * SECOND)), min_size=1, max_size=8))
@example([(2.0**53, 0), (2.0**53, 1)])
def test_pairs_are_those_of_the_oracle(pairs: list[tuple[float, int]]) -> None:
    columnar, naive = ColumnarMatcher(), NaiveMatcher()
    for matcher in (columnar, naive):
        matcher.add(
            Subscription(f"s{number}", parse(text), {}, 0)
            for number, text in enumerate(
                [
                    "x >= -3 + t and x <= 3 + t",
                    "x > -3 + 2 * sin(t * 2) and x < 3 + 2 * sin(t * 2)",
                    "x > -3 + 2 * sin(t * 2) and x < 3 + 2 * sin(t * 3)",
                    "x = t or x != 3 - t",
                ]
            )
        )
    for x, time_us in pairs:
        event, moment = Event({"x": x}), Moment(time_us)
        assert sorted(columnar.match(event, moment)) == sorted(naive.match(event, moment))
