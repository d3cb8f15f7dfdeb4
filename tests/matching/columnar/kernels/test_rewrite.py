"""Bounds are written in place, and no others; what cannot be written is left as it is."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.columnar.kernels.layout import DEFAULT_SIZES, LayoutSizes, lay_out
from tidegate.matching.columnar.kernels.part import PackedPart, pack, unpack
from tidegate.matching.columnar.kernels.rewrite import (
    rewrite_entries,
    rewrite_entry,
)
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.entries.channels import NUMBER, Channels
from tidegate.matching.rows.entries.making import EntryMaker
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER, STRING
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import DEAD, EXACT_MAX
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS, CellArrays, PlannedRows
from tidegate.matching.rows.kernels.rewrite_plan import DONE, NOT_IN_PLACE, OTHER_KINDS
from tidegate.matching.rows.update_plans import plan_update
from tidegate.matching.subscription import Moment, Subscription

COUNT = DEFAULT_SIZES.bitmap_entries_min + 40
NO_VARIABLES = np.zeros((2, 1))


def packed(*, flags: int = 0) -> PackedPart:
    """Entries of the filters `x < 0`, `x < 1` and so on."""
    entries = Entries(
        subscription=np.arange(COUNT, dtype=np.int32),
        flags=np.full(COUNT, flags, np.int32),
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
    plan = plan_update(shape, [FLOAT] * len(row), [0], channels).alone
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
    plans = [plan_update(parse(text).shape_and_row[0], [FLOAT], [0], channels).alone
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


KEYED = (
    "s = :a and x < :b",
    "x = :b and s = :a and y >= 2",
    "x = :b and x <= :c and s starts with 'a'",
    "s = :a and (x > :b or y = :c)",
    "s = :a and x < :b + t",
    "s starts with 'b' and y = :c and x != :b",
)
NUMBERS = (0, -0.0, 0.0, 1, 1.0, -2.5, 2**53, 2**53 + 1, -(2**63), math.inf, None)
TEXTS = ("a", "b", "ab", "", "A", None, 1, True)


def keyed_parameters(rng: random.Random) -> dict[str, Value | None]:
    drawn = {"a": rng.choice(TEXTS), "b": rng.choice(NUMBERS), "c": rng.choice((*NUMBERS, "a"))}
    return {name: drawn[name] for name in rng.sample("abc", rng.randint(1, 3))}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("many", [False, True])
def test_keys_change_as_in_the_oracle(seed: int, many: bool) -> None:
    """Also of entries that are pending, in the open part, or in a part that is laid out again."""
    rng = random.Random(seed)
    sizes = IndexSizes(
        open_entries_max=8,
        layout=LayoutSizes(groups_max=3, group_entries_min=2, bitmap_entries_min=4),
    )
    matcher, oracle = ColumnarMatcher(sizes=sizes), NaiveMatcher()
    parsed = [parse(text) for text in KEYED]
    count = 60
    for each in (matcher, oracle):
        rng_of_each = random.Random(seed)
        each.add(
            Subscription(
                f"s{n}",
                filter := parsed[n % len(parsed)],
                {
                    name: value
                    for name, value in keyed_parameters(rng_of_each).items()
                    if name in filter.parameters and value is not None
                },
            )
            for n in range(count)
        )
    moment = Moment(None, {})
    for _ in range(60):
        changed: dict[str, dict[str, Value | None]] = {}
        for n in rng.sample(range(count), rng.randint(1, 5)):
            known = parsed[n % len(parsed)].parameters
            values = {k: v for k, v in keyed_parameters(rng).items() if k in known}
            changed[f"s{n}"] = values
        if many:
            matcher.update_many(changed)
        else:
            for id, values in changed.items():
                matcher.update(id, values)
        for id, values in changed.items():
            oracle.update(id, values)
        for _ in range(rng.randint(0, 3)):
            event = Event.of(
                {"s": rng.choice(TEXTS), "x": rng.choice(NUMBERS), "y": rng.choice(NUMBERS)}
            )
            assert sorted(matcher.match(event, moment)) == sorted(oracle.match(event, moment))


def test_an_entry_whose_key_changes_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not made anew from its row, which takes many times as long."""
    matcher = ColumnarMatcher(sizes=IndexSizes(open_entries_max=2))
    matcher.add(
        Subscription(f"s{n}", parse("s = :a and x < :b"), {"a": f"v{n}", "b": n}) for n in range(40)
    )
    moment = Moment(None, {})
    assert matcher.match(Event.of({"s": "v7", "x": 3}), moment) == ["s7"]

    def fail(*_: object) -> None:
        raise AssertionError("an entry is made from its row")

    monkeypatch.setattr(EntryMaker, "entries", fail)
    matcher.update("s7", {"a": "other", "b": 9.5})
    assert matcher.match(Event.of({"s": "v7", "x": 3}), moment) == []
    assert matcher.match(Event.of({"s": "other", "x": 9}), moment) == ["s7"]
    assert matcher.match(Event.of({"s": "other", "x": 9.5}), moment) == []
