"""Parts that are built beside the index: whatever happens in between, answers are the oracle's.

The sizes are tiny, so that a few subscriptions make many parts, and each piece of work is an entry
or two. Between the pieces there are additions, removals, updates, pins, matches and jumps in time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.columnar.index import OPEN
from tidegate.matching.columnar.kernels.layout import LayoutSizes
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.kernels.flags import GONE
from tidegate.matching.subscription import Moment, Subscription

STEP_US = 125_000
"""Times are multiples of it, and rates of 8 a second: so bounds reach whole numbers exactly."""

TEXTS = (
    "x < :low",
    "x >= :low and x <= :high",
    "k = 'a' and x >= :low and x <= :high",
    "k = :key and x <= :high",
    "k = 'a' and x >= :low + 8 * t",
    "x >= :low - 8 * t and x <= :high - 8 * t",
    "k = 'b' and x >= :low + 4 * sin(t) and x <= :high + 4 * sin(t)",
    "y = :low and x >= @load + t and x <= 9 + t",
    "x < :low or y > :high + 8 * t",
    "x in (1, 2, 3) and y != :low",
    "k starts with 'a' and x < :high + t",
    "x > :low + t and x != 3",
    "k = :key and x < :low or k = 'b' and y != :high or x = :high",
    "x in (:low, :high, 4) and y < :low + t",
    "k starts with :key and y > :low",
    "k = :key and x <= :high + t",
)


class Interleaved:
    """A columnar matcher with tiny pieces and the oracle, which get the same changes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        sizes = IndexSizes(
            open_entries_max=3,
            windows_per_layout=self.rng.choice([1, 2, 64]),
            at_once_entries_max=self.rng.choice([0, 6, 20]),
            piece_entries=self.rng.choice([1, 2, 7]),
            layout=LayoutSizes(group_entries_min=2, bitmap_entries_min=2),
        )
        self.columnar = ColumnarMatcher(sizes=sizes, threaded=False)
        # the length of windows follows the clock, which is another one each time
        length = self.columnar._indexes._window_length
        length.has_enclosed = _ignored  # type: ignore[method-assign]
        self.naive = NaiveMatcher()
        self.both = (self.columnar, self.naive)
        self.ids: list[str] = []
        self.steps = 0
        self.time_us = 0
        self.load = 0
        self.building: Iterator[None] = iter(())
        self.replaced = 0

    def value(self) -> int:
        return self.rng.randrange(-3, 12)

    def parameters(self, text: str) -> dict[str, Value]:
        names = parse(text).parameters
        return {name: self.rng.choice("abc") if name == "key" else self.value() for name in names}

    def add(self, count: int) -> None:
        new: list[Subscription] = []
        for _ in range(count):
            self.steps += 1
            text = self.rng.choice(TEXTS)
            evolve: Evolve | None = self.rng.choice([None, None, Periodic(0.5), Cached(10_000.0)])
            id = f"s{self.steps}"
            self.ids.append(id)
            new.append(
                Subscription(id, parse(text), self.parameters(text), self.time_us, evolve=evolve)
            )
        for each in self.both:
            each.add(new)

    def remove(self) -> None:
        id = self.ids.pop(self.rng.randrange(len(self.ids)))
        for each in self.both:
            each.remove(id)

    def update(self, count: int) -> None:
        chosen = self.rng.sample(self.ids, min(count, len(self.ids)))
        changes: dict[str, Mapping[str, Value | None]] = {}
        for id in chosen:
            changed = self.parameters(str(self.naive.get(id).filter))
            kept = [each for each in changed if self.rng.random() < 0.7]
            changes[id] = {each: changed[each] for each in kept}
            self.naive.update(id, changes[id])
        if count > 1:
            self.columnar.update_many(changes)
        else:
            for id, each in changes.items():
                self.columnar.update(id, each)

    def pin(self) -> None:
        cached = [id for id in self.ids if isinstance(self.naive.get(id).evolve, Cached)]
        chosen = self.rng.sample(cached, min(4, len(cached)))
        if chosen:
            for each in self.both:
                each.pin(chosen, self.time_us)

    def event(self) -> Event:
        return Event.of({"x": self.value(), "y": self.value(), "k": self.rng.choice("abc")})

    def moment(self, time_us: int | None) -> Moment:
        return Moment(time_us, {"load": self.load})

    def match(self, time_us: int | None) -> None:
        event, moment = self.event(), self.moment(time_us)
        found = self.columnar.match(event, moment)
        assert sorted(found) == sorted(self.naive.match(event, moment))

    def match_batch(self) -> None:
        events = [self.event() for _ in range(5)]
        times = self.time_us + STEP_US * np.arange(5)
        batch = EventBatch.of_events(events).judged_at(times).with_variables({"load": self.load})
        found, expected = (each.match_batch(batch) for each in self.both)
        assert _pairs(found) == _pairs(expected)

    def build(self, steps: int) -> None:
        """Go on building, and begin anew where all is built."""
        for _ in range(steps):
            parts = self.columnar._indexes.current.parts
            before = parts[1:]
            if next(self.building, self) is self:
                self.building = self.columnar.build()
            self.replaced += parts[1:] != before

    def anything(self) -> None:
        dice = self.rng.random()
        if dice < 0.12:
            self.add(self.rng.choice([1, 1, 3, 9]))
        elif dice < 0.2 and self.ids:
            self.remove()
        elif dice < 0.4 and self.ids:
            self.update(self.rng.choice([1, 1, 1, 5]))
        elif dice < 0.44:
            self.pin()
        elif dice < 0.48:
            self.match_batch()
        elif dice < 0.5:
            self.match(self.rng.choice([None, self.time_us - 40 * STEP_US]))
        elif dice < 0.52:
            self.load = self.value()
        elif dice < 0.7:
            self.build(self.rng.choice([1, 1, 5, 30]))
        else:
            self.time_us += STEP_US * self.rng.choice([0, 0, 1, 1, 1, 2, 3, 30])
            self.match(self.time_us)

    def check_index(self) -> None:
        """The index leads to exactly the entries of the subscriptions that there are."""
        indexes, table = self.columnar._indexes, self.columnar._table
        indexes.flush()
        index = indexes.current
        found: dict[int, int] = {}
        for part in index.parts:
            for number, flags in zip(part.part.subscription, part.part.flags, strict=True):
                if not flags & GONE:
                    found[int(number)] = found.get(int(number), 0) + 1
        numbers = {table.number(id) for id in self.ids}
        assert set(found) == {each for each in numbers if index.places.all(each)}
        for number, count in found.items():
            owners = index.parts[index.places.part(number)].part.subscription
            entries = index.places.all(number)
            assert [owners.item(each) for each in entries] == [number] * count
            assert len(set(entries)) == count
        assert [each.removed for each in index.parts] == [
            int(np.count_nonzero(each.part.flags & GONE)) for each in index.parts
        ]


def _ignored(seconds: float) -> None:
    """Takes a duration in place of what would depend on it."""


def _pairs(matches: Matches) -> list[tuple[int, str]]:
    return sorted(zip(matches.events.tolist(), matches.subscriptions.to_pylist(), strict=True))


def check_run(seed: int, steps: int) -> Interleaved:
    run = Interleaved(seed)
    for step in range(steps):
        run.anything()
        if step % 20 == 0:
            run.check_index()
    run.check_index()
    return run


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_right_at_every_step_of_a_build(seed: int) -> None:
    assert check_run(seed, 250).replaced > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_answers_are_right_at_every_step_of_many_builds(seed: int) -> None:
    check_run(seed, 600)


def test_a_bound_that_became_a_key_is_no_key_any_more() -> None:
    """A range of one value, as it was when it was copied, is a key; the update widens it again."""
    sizes = IndexSizes(
        open_entries_max=1, at_once_entries_max=0,
        layout=LayoutSizes(group_entries_min=2, bitmap_entries_min=2),
    )  # fmt: skip
    matcher = ColumnarMatcher(sizes=sizes, threaded=False)
    for number in range(4):
        text = "x >= :low and x <= :high"
        matcher.add([Subscription(f"s{number}", parse(text), {"low": 1, "high": 1})])
        matcher.match(Event.of({"x": 1}), Moment(None))
    steps = matcher.build()
    for _ in range(3):  # some are copied by then, others are not
        next(steps)
    for number in range(4):
        matcher.update(f"s{number}", {"high": 5})
    for _ in steps:
        assert sorted(matcher.match(Event.of({"x": 4}), Moment(None))) == ["s0", "s1", "s2", "s3"]
    assert sorted(matcher.match(Event.of({"x": 4}), Moment(None))) == ["s0", "s1", "s2", "s3"]


def test_a_build_is_dropped_when_its_parts_are_merged_with_many_more() -> None:
    sizes = IndexSizes(open_entries_max=1, at_once_entries_max=0)
    matcher = ColumnarMatcher(sizes=sizes, threaded=False)
    index = matcher._indexes.current
    x_is_1, now = Event.of({"x": 1}), Moment(None)
    for number in range(3):
        matcher.add([Subscription(f"s{number}", parse("x > 0"))])
        matcher.match(x_is_1, now)
    steps = matcher.build()
    next(steps)
    old = index.parts[OPEN + 1 :]
    matcher.add([Subscription(f"more{number}", parse("x > 0")) for number in range(20)])
    assert len(matcher.match(x_is_1, now)) == 23
    for _ in steps:
        assert len(matcher.match(x_is_1, now)) == 23
    assert not set(map(id, old)) & set(map(id, index.parts))
    assert len(matcher.match(x_is_1, now)) == 23
