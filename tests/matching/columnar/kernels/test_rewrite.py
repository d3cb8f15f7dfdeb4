"""Bounds are written in place, and no others; what cannot be written is left as it is."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.columnar.kernels.layout import DEFAULT_SIZES, lay_out
from tidegate.matching.columnar.kernels.part import PackedPart, pack, unpack
from tidegate.matching.columnar.kernels.rewrite import (
    rewrite_entries,
    rewrite_entry,
)
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.entries.channels import NUMBER, Channels
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER, STRING
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import DEAD, EXACT_MAX
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS, CellArrays, PlannedRows
from tidegate.matching.rows.kernels.rewrite_plan import DONE, NOT_IN_PLACE, OTHER_KINDS
from tidegate.matching.rows.update_plans import plan_rewrite
from tidegate.matching.subscription import Moment, Subscription

COUNT = DEFAULT_SIZES.bitmap_entries_min + 40
NO_VARIABLES = np.zeros((2, 1))


def packed(*, flags: int = 0) -> PackedPart:
    """Entries of the filters `x < 0`, `x < 1` and so on."""
    entries = Entries(
        subscription=np.arange(COUNT, dtype=np.int32),
        flags=np.full(COUNT, flags, np.uint8),
        first=offsets(np.ones(COUNT, np.int64)),
        channel=np.zeros(COUNT, np.int32),
        low=np.full(COUNT, -np.inf),
        high=np.nextafter(np.arange(COUNT, dtype=np.float64), -np.inf),
        motion_first=np.zeros(COUNT + 1, np.int32),
        motion=np.zeros(0),
    )
    return pack(lay_out(entries, np.zeros(1, np.int32)))


def rewritten(part: PackedPart, entry: int, kind: int, value: float, text: str = "x < :a") -> int:
    """Let the entry compare with another value; returns the outcome."""
    channels = Channels()
    channels.channel("x", NUMBER)
    shape, row = parse(text).shape_and_row
    plan = plan_rewrite(shape, [FLOAT] * len(row), [0], channels)
    cell = np.array([value]).view(np.int64) if kind == FLOAT else np.array([int(value)])
    kinds, cells = np.full(len(row), kind, np.uint8), np.repeat(cell, len(row))
    done = rewrite_entry(
        plan, kinds, cells, 0, *part, entry, NO_VARIABLES, np.empty(SCRATCH_FLOATS)
    )
    return int(done)


def highs(part: PackedPart) -> list[float]:
    """The high bounds, by subscription."""
    fields = unpack(part)
    bound = fields.high[fields.first[:-1]]
    return [float(bound[place]) for place in np.argsort(fields.subscription)]


@pytest.mark.parametrize(("kind", "value"), [(FLOAT, 7.5), (INTEGER, -3.0), (FLOAT, 1e9)])
def test_one_bound_is_written_and_no_other(kind: int, value: float) -> None:
    part = packed()
    before = highs(part)
    place = unpack(part).subscription.tolist().index(20)
    assert rewritten(part, place, kind, value) == DONE
    after = highs(part)
    assert after[20] == math.nextafter(value, -math.inf)
    assert after[:20] + after[21:] == before[:20] + before[21:]


@pytest.mark.parametrize(
    ("kind", "value", "flags", "answer"),
    [
        (STRING, 3.0, 0, OTHER_KINDS),
        (FLOAT, math.inf, 0, NOT_IN_PLACE),
        (FLOAT, math.nan, 0, NOT_IN_PLACE),
        (FLOAT, float(EXACT_MAX), 0, NOT_IN_PLACE),
        (FLOAT, 3.0, DEAD, NOT_IN_PLACE),
    ],
)
def test_what_is_not_written_in_place(kind: int, value: float, flags: int, answer: int) -> None:
    part = packed(flags=flags)
    before = [each.tobytes() for each in part]
    assert rewritten(part, 5, kind, value) == answer
    assert [each.tobytes() for each in part] == before


def test_many_bounds_are_written_each_by_its_plan() -> None:
    part = packed()
    before = highs(part)
    channels = Channels()
    channels.channel("x", NUMBER)
    plans = [plan_rewrite(parse(text).shape_and_row[0], [FLOAT], [0], channels)
             for text in ("x < :a", "x <= :a")]  # fmt: skip
    first = np.array([0, len(plans[0]), len(plans[0]), len(plans[0]) + len(plans[1])])
    places = [unpack(part).subscription.tolist().index(number) for number in (3, 4, 5, 6)]
    kinds = np.array([FLOAT, FLOAT, FLOAT, STRING], np.uint8)
    cells = np.array([70.5, 71.5, 72.5, 73.5]).view(np.int64)
    done = np.full(4, 9, np.uint8)
    rewrite_entries(
        PlannedRows(np.concatenate(plans), first, np.array([0, 2, 1, 0]), np.arange(4)),
        CellArrays(kinds, cells),
        part,
        np.array(places, np.int32),
        NO_VARIABLES,
        np.empty(SCRATCH_FLOATS),
        done,
    )
    assert done.tolist() == [DONE, DONE, OTHER_KINDS, OTHER_KINDS]
    after = highs(part)
    assert after[3:7] == [math.nextafter(70.5, 0), 71.5, *before[5:7]]
    assert after[:3] + after[7:] == before[:3] + before[7:]


def test_bounds_that_leave_nothing() -> None:
    part = packed()
    assert rewritten(part, 0, FLOAT, 3.0, "x < :a and x > :a") == DONE
    first = int(unpack(part).first[0])
    assert np.isnan(unpack(part).low[first])
    assert np.isnan(unpack(part).high[first])


def test_after_many_writes_the_bits_still_fit() -> None:
    rng = random.Random(3)
    made = [Subscription(f"s{n}", parse("x < :a"), {"a": n}) for n in range(COUNT)]
    matcher, oracle = ColumnarMatcher(), NaiveMatcher()
    for each in (matcher, oracle):
        each.add(made)
    moment = Moment(None, {})
    for _ in range(300):
        id, value = f"s{rng.randrange(COUNT)}", rng.choice([rng.randint(-50, 300), rng.random()])
        matcher.update(id, {"a": value})
        oracle.update(id, {"a": value})
        event = Event.of({"x": rng.randint(-50, 300)})
        assert sorted(matcher.match(event, moment)) == sorted(oracle.match(event, moment))
