"""The parts of an index: how they come, shrink and go, and which of them events look at."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from support.small_parts import small_columnar, small_sizes
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.index import Index
from tidegate.matching.columnar.index_part import IndexPart
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import DEFAULT_SIZES, IndexSizes
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import SHARED
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.time_window import NO_TIMES, EventTimes
from tidegate.matching.subscription import Moment, Subscription

NO_PROGRAM = np.zeros(1, np.int32)
LIFETIME = 1


def entries_of(lifetimes: Sequence[tuple[float, float]], first: int = 0) -> Entries:
    """Entries of subscriptions with numbers from ``first`` on: `x = 1`, and a lifetime."""
    count = len(lifetimes)
    bounds = np.array([each for life in lifetimes for each in ((1.0, 1.0), life)])
    return Entries(
        subscription=np.arange(first, first + count, dtype=np.int32),
        flags=np.zeros(count, np.int32),
        first=offsets(np.full(count, 2)),
        channel=np.tile(np.array([0, LIFETIME], np.int32), count),
        low=bounds[:, 0].copy(),
        high=bounds[:, 1].copy(),
        motion_first=np.zeros(count + 1, np.int32),
        motion=np.zeros(0),
    )


def filled(past_max: int, *chunks: Sequence[tuple[float, float]]) -> Index:
    """An index with lifetimes; each chunk of them is flushed by itself."""
    made = Index(LIFETIME, small_sizes(past_max))
    first = 0
    for chunk in chunks:
        made.reserve(first + len(chunk))
        made.add(entries_of(chunk, first))
        made.flush(NO_PROGRAM, 0)
        first += len(chunk)
    return made


def seconds(begin: int, count: int) -> list[tuple[float, float]]:
    """Lifetimes one after the other, each ten long."""
    return [(10.0 * step, 10.0 * step + 9) for step in range(begin, begin + count)]


def lengths(made: Index) -> list[int]:
    return [len(part) for part in made.parts]


def visited(made: Index, begin: int, end: int) -> list[int]:
    """Which parts events of some times have to look at."""
    times = EventTimes(begin, end, False)
    return [place for place, part in enumerate(made.parts) if part.may_match(times)]


# -- parts of the past ------------------------------------------------------------------------


def test_parts_of_the_past_are_not_made_larger_than_allowed() -> None:
    made = filled(8, *(seconds(begin, 5) for begin in range(0, 40, 5)))
    assert lengths(made) == [0, *[5] * 8]
    made = filled(10, *(seconds(begin, 5) for begin in range(0, 40, 5)))
    assert lengths(made) == [0, *[10] * 4]
    assert lengths(filled(8, seconds(0, 9))) == [0, 9]


def test_parts_of_now_are_merged_however_large() -> None:
    made = Index(sizes=small_sizes(8))
    for begin in range(0, 40, 5):
        made.reserve(begin + 5)
        made.add(entries_of(seconds(begin, 5), begin))
        made.flush(NO_PROGRAM, 0)
    assert max(lengths(made)) > 8
    assert all(part.may_match(NO_TIMES) for part in made.parts if len(part))


def test_only_parts_of_the_times_of_events_are_looked_at() -> None:
    made = filled(5, seconds(0, 5), seconds(5, 5), seconds(20, 5), seconds(25, 3))
    assert lengths(made) == [3, 5, 5, 5]
    assert visited(made, -9, -1) == []
    assert visited(made, 0, 0) == visited(made, 49, 49) == [1]
    assert visited(made, 49, 50) == [1, 2]
    assert visited(made, 100, 199) == []
    assert visited(made, 99, 200) == [2, 3]
    assert visited(made, 279, 300) == [0]
    assert visited(made, 280, 300) == []
    assert visited(made, -(2**60), 2**60) == [0, 1, 2, 3]


def test_events_without_times_look_at_no_past_after_1970() -> None:
    made = filled(5, [(5.0, 9.0)] * 5)
    assert not any(part.may_match(NO_TIMES) for part in made.parts)


def test_an_empty_part_is_never_looked_at() -> None:
    assert not IndexPart(Index().parts[0].packed).may_match(EventTimes(0, 1, False))
    assert visited(Index(LIFETIME), -(2**60), 2**60) == []


# -- what goes --------------------------------------------------------------------------------


def test_a_part_shrinks_when_most_of_it_is_gone() -> None:
    made = filled(100, seconds(0, 10))
    for number in range(5):
        made.remove(number)
    assert lengths(made) == [0, 10]
    made.remove(5)
    assert lengths(made) == [0, 4]
    assert visited(made, 0, 59) == []
    assert visited(made, 0, 60) == [1]


def test_a_part_goes_when_all_of_it_is_gone_and_those_behind_it_stay_known() -> None:
    made = filled(5, seconds(0, 5), seconds(5, 5), seconds(10, 5), seconds(15, 3))
    for number in (5, 6, 7, 8, 9):
        made.remove(number)
    assert lengths(made) == [3, 5, 5]
    for number in (0, 1, 2, 14):
        made.remove(number)
    assert lengths(made) == [3, 2, 5]
    for number in (3, 4, 10, 11, 12, 13):
        made.remove(number)
    assert lengths(made) == [3]
    made.add(entries_of(seconds(0, 5), 0))
    made.flush(NO_PROGRAM, 0)
    assert lengths(made) == [0, 8]


def test_all_entries_of_a_subscription_go_at_once() -> None:
    made = Index(LIFETIME, small_sizes(100))
    made.reserve(3)
    entries = entries_of(seconds(0, 6))
    entries.subscription = np.array([0, 1, 1, 1, 1, 2], np.int32)
    entries.flags = np.where(entries.subscription == 1, SHARED, 0).astype(np.int32)
    made.add(entries)
    made.flush(NO_PROGRAM, 0)
    made.remove(1)
    assert lengths(made) == [0, 2]
    assert visited(made, 10, 49) == [1], "it spans them still"


def test_what_has_no_entries_can_be_taken_away() -> None:
    """Whatever part its number stood in before."""
    made = filled(5, seconds(0, 5), seconds(5, 5))
    for number in (5, 6, 7, 8, 9):
        made.remove(number)
    assert lengths(made) == [0, 5]
    made.remove(9)
    made.reserve(11)
    made.remove(10)
    assert lengths(made) == [0, 5]


def test_an_index_comes_back_from_a_snapshot_as_it_was(tmp_path: Path) -> None:
    made = filled(5, seconds(0, 5), seconds(5, 5), seconds(10, 2))
    made.remove(0)
    made.remove(1)
    into = SectionWriter()
    made.save(into, "past")
    into.write(tmp_path / "index")
    loaded = Index.load(SectionReader(tmp_path / "index"), "past", 1000, small_sizes(5))
    for each in (made, loaded):
        assert each.lifetime == LIFETIME
        assert lengths(each) == [2, 5, 5]
        each.remove(2)
        assert lengths(each) == [2, 2, 5]
        assert visited(each, 0, 29) == []
        assert visited(each, 0, 30) == [1]


# -- as a part of the matcher -----------------------------------------------------------------


def subscription(id: str, text: str, rng: random.Random | None = None) -> Subscription:
    filter = Filter(parse_filter(text))
    rng = rng or random.Random(0)
    parameters: dict[str, Value] = {name: rng.randrange(5) for name in filter.parameters}
    return Subscription(id, filter, parameters, rng.randrange(10**6))


def test_subscriptions_without_entries_come_and_go() -> None:
    """The open part stays, although all its entries are removed."""
    matcher = ColumnarMatcher()
    matcher.add([subscription("a", "x = 1"), subscription("b", "false")])
    matcher.remove("a")
    matcher.remove("b")
    matcher.add([subscription("c", "x = 1")])
    assert matcher.match(Event.of({"x": 1}), Moment()) == ["c"]


def test_a_number_whose_part_is_gone_goes_to_one_without_entries() -> None:
    matcher = small_columnar()
    ids = [f"s{number}" for number in range(5)]
    matcher.add(subscription(id, "x = 1") for id in ids)
    for id in ids:
        matcher.remove(id)
    matcher.add(subscription(id, "false") for id in ids)
    for id in ids:
        matcher.remove(id)
    matcher.add([subscription("a", "x = 1")])
    assert matcher.match(Event.of({"x": 1}), Moment()) == ["a"]


FILTERS = [
    "x = :p",
    "x = 1 and y > :p",
    "x in (1, 2, :p) or y = :q",
    "x >= :p + t and x <= :q + t",
    "x > 3 * sin(:p * t)",
    "s = 's1' and y < :q",
    "s starts with 's' and x != :p",
    "not x between :p and :q",
    "x = 1 and x = 2",
    "false",
]


class Both:
    """The oracle and the columnar matcher, changed alike."""

    def __init__(self, rng: random.Random, sizes: IndexSizes = DEFAULT_SIZES) -> None:
        self.rng = rng
        self.sizes = sizes
        self.naive, self.columnar = NaiveMatcher(), ColumnarMatcher(sizes=sizes)
        self.ids: list[str] = []
        self.made = 0

    def reload(self, path: Path) -> None:
        self.columnar.save(path)
        self.columnar = ColumnarMatcher.load(path, sizes=self.sizes)

    def add(self, count: int) -> None:
        ids = [f"s{number}" for number in range(self.made, self.made + count)]
        new = [subscription(id, self.rng.choice(FILTERS), self.rng) for id in ids]
        self.naive.add(new)
        self.columnar.add(new)
        self.made += count
        self.ids += ids

    def remove(self, count: int) -> None:
        for id in self.rng.sample(self.ids, min(count, len(self.ids))):
            self.ids.remove(id)
            self.naive.remove(id)
            self.columnar.remove(id)

    def update(self, count: int) -> None:
        for id in self.rng.sample(self.ids, min(count, len(self.ids))):
            names = self.naive.get(id).filter.parameters
            if names:
                new = {self.rng.choice(sorted(names)): self.rng.choice([0, 1, 2.5, "s1", None])}
                self.naive.update(id, new)
                self.columnar.update(id, new)

    def agree(self, time_us: Iterable[int]) -> bool:
        times = np.array(list(time_us), np.int64)
        values = [
            {"x": self.rng.randrange(-1, 6), "y": self.rng.randrange(6), "s": f"s{each % 3}"}
            for each in range(len(times))
        ]
        batch = EventBatch.of_events([Event.of(each) for each in values]).judged_at(times)
        return _pairs(self.naive, batch) == _pairs(self.columnar, batch)


def _pairs(matcher: NaiveMatcher | ColumnarMatcher, batch: EventBatch) -> list[tuple[int, str]]:
    found = matcher.match_batch(batch)
    return sorted(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_under_heavy_churn_it_agrees_with_naive(seed: int, tmp_path: Path) -> None:
    """Parts grow, shrink to a few entries, and go; numbers are used again."""
    rng = random.Random(seed)
    both = Both(rng, small_sizes(windows_per_layout=rng.choice([1, 3, 64])))
    for step in range(25):
        both.add(rng.choice([1, 3, 20]))
        both.update(4)
        both.remove(rng.choice([0, 2, 15, 200]))
        assert both.agree(rng.randrange(2 * 10**6) for _ in range(6))
        if step % 8 == 7:
            both.reload(tmp_path / str(step))
        both.update(4)
        assert both.agree(rng.choice([0, 10**6, 10**12, 10**16]) for _ in range(3))


def test_large_parts_that_are_emptied() -> None:
    """With the limits as they are."""
    both = Both(random.Random(1))
    both.add(1500)
    for count in (400, 400, 500, 150, 60):
        both.remove(count)
        both.update(20)
        assert both.agree(range(0, 2 * 10**6, 10**5))
    both.add(700)
    assert both.agree(range(0, 2 * 10**6, 10**5))
