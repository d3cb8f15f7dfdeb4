"""Links through all that happens to an index: parts, time windows, the past, snapshots, threads."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.random_changes import RandomChanges
from support.small_parts import small_columnar, small_sizes
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.matching.columnar.link_search import FIRST_PAIRS
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.subscription import Moment, Subscription

WEST, EAST = 2, 4
ALL = COLLECTED | WEST | EAST
ONE = Event.of({"x": 1})


def of_filters(texts: list[str], links: int) -> ColumnarMatcher:
    """A matcher whose subscriptions all have the same links."""
    matcher = ColumnarMatcher()
    matcher.add(Subscription(str(number), parse(text)) for number, text in enumerate(texts))
    for number in range(len(texts)):
        matcher.set_links(str(number), links)
    return matcher


# -- changes --------------------------------------------------------------------------------------


class MoreChanges(RandomChanges):
    """Also updates of many at once, pins, and, in the columnar matcher alone, past versions."""

    matcher: ColumnarMatcher

    def run(self, count: int) -> None:
        for _ in range(count):
            self.random.choice([self.update_many, self.pin, self.keep_past, super().compare])()
            super().run(2)

    def update_many(self) -> None:
        updates = {
            id: dict.fromkeys(self.oracle.get(id).filter.parameters, self.random.randint(0, 6))
            for id in self.random.sample(self.ids, len(self.ids) // 2)
        }
        self.matcher.update_many(updates)
        for id, values in updates.items():
            self.oracle.update(id, values)

    def pin(self) -> None:
        ids = self.random.sample(self.ids, len(self.ids) // 3)
        self._both("pin", ids, self.random.choice([None, self.now_us]))

    def keep_past(self) -> None:
        """Versions that ended before all events to come."""
        filter = parse(f"a = {self.random.randint(0, 6)}")
        self.matcher.keep_past([Subscription("past", filter, since=-9, until=self.now_us)])
        self.now_us += 1


@pytest.mark.parametrize("windows_per_layout", [1, 64])
@settings(max_examples=max(3, settings().max_examples // 20))
@given(st.integers(0, 2**32))
def test_random_changes(windows_per_layout: int, seed: int) -> None:
    matcher = ColumnarMatcher(sizes=small_sizes(windows_per_layout=windows_per_layout))
    MoreChanges(seed, matcher).run(25)


def test_links_may_be_set_while_entries_are_pending() -> None:
    matcher = of_filters([f"x = {i % 3}" for i in range(50)], WEST)
    assert matcher._indexes.current.parts[0].link_bits is not None
    assert not matcher._indexes.is_flushed, "setting links lays nothing out"
    assert matcher.match_links(ONE, Moment(), ALL).links == WEST


def test_links_follow_entries_into_other_parts() -> None:
    """The open part is laid out, parts are merged, and shrink when most of one is removed."""
    matcher = small_columnar()
    event = Event.of({"x": 1, "y": 1})
    for number in range(200):
        matcher.add([Subscription(str(number), parse(f"x < {number} or y = {number % 7}"))])
        matcher.set_links(str(number), COLLECTED if number % 50 == 1 else WEST)
        if number % 3 == 0:
            found = matcher.match_links(event, Moment(), ALL)
            assert set(found.collected) == {str(each) for each in range(1, number + 1, 50)}
    assert len(matcher._indexes.parts) > 1
    for number in range(150):
        matcher.remove(str(number))
        found = matcher.match_links(event, Moment(), ALL)
        assert set(found.collected) == {id for id in ("1", "51", "101", "151") if id in matcher}
        assert found.links == COLLECTED | WEST


def test_the_open_part_comes_last() -> None:
    """What the other parts decide is not looked for in it."""
    matcher = of_filters(["x = 1"] * 1_000, WEST)
    assert matcher.match_links(ONE, Moment(), WEST).steps == 2
    matcher.add([Subscription("new", parse("x > 0"))])
    matcher.set_links("new", WEST)
    assert matcher.match_links(ONE, Moment(), WEST).steps == 2
    matcher.set_links("new", EAST)
    found = matcher.match_links(ONE, Moment(), WEST | EAST)
    assert (found.links, found.steps) == (WEST | EAST, 4)


def test_entries_that_are_gone_are_not_looked_at() -> None:
    matcher = of_filters(["x = 1"] * 1_000, WEST)
    for id in ("5", "7"):
        matcher.set_links(id, COLLECTED)
    for id, steps in (("5", 3), ("7", 2)):
        assert matcher.match_links(ONE, Moment(), COLLECTED).steps == steps
        matcher.remove(id)
    assert matcher.match_links(ONE, Moment(), COLLECTED).steps == 1, "the group is looked up"


def test_more_entries_than_the_first_buffers_have_room_for() -> None:
    count = 2 * FIRST_PAIRS + 500
    matcher = of_filters(["x = 1"] * count, COLLECTED | EAST)
    found = matcher.match_links(ONE, Moment(), ALL)
    assert found.links == COLLECTED | EAST
    assert len(set(found.collected)) == len(found.collected) == count


def test_functions_near_their_bounds_are_evaluated() -> None:
    """Also those of `Cached` filters as of the time at which they are pinned."""
    matcher = small_columnar()
    for number in range(20):
        filter = parse(f"x < {number} + t")
        matcher.add([Subscription(str(number), filter, since=0, evolve=Cached(1.0))])
        matcher.set_links(str(number), 1 << number)
    for time_us, pinned_us, smallest in ((0, None, 6), (3_000_000, None, 3), (3_000_000, 1, 5)):
        matcher.pin([str(number) for number in range(20)], pinned_us)
        found = matcher.match_links(Event.of({"x": 5}), Moment(time_us), 2**20 - 1)
        assert found.links == sum(1 << number for number in range(smallest, 20)), time_us


# -- the past, and snapshots ----------------------------------------------------------------------


def test_past_versions_have_no_links() -> None:
    matcher = small_columnar()
    matcher.add([Subscription("a", parse("x < :p"), {"p": 5}, since=0)])
    matcher.set_links("a", WEST | COLLECTED)
    matcher.succeed(["a"], np.array([10]), [{"p": 1}])
    early, late = (
        matcher.match_links(Event.of({"x": x}), Moment(time_us), ALL)
        for x, time_us in ((3, 5), (0, 15))
    )
    assert matcher.match(Event.of({"x": 3}), Moment(5)) == ["a"], "of the past version"
    assert (early.links, early.collected) == (0, [])
    assert (late.links, late.collected) == (WEST | COLLECTED, ["a"])


def test_a_snapshot_has_no_links(tmp_path: Path) -> None:
    matcher = of_filters([f"x < {i}" for i in range(30)], WEST)
    matcher.save(tmp_path / "index")
    loaded = ColumnarMatcher.load(tmp_path / "index", sizes=small_sizes())
    assert len(loaded.match(ONE, Moment())) == 28
    assert loaded.match_links(ONE, Moment(), ALL).links == 0
    loaded.set_links("29", EAST)
    loaded.add([Subscription("new", parse("x = 1"))])
    loaded.set_links("new", COLLECTED)
    found = loaded.match_links(ONE, Moment(), ALL)
    assert (found.links, found.collected) == (EAST | COLLECTED, ["new"])
    assert matcher.match_links(ONE, Moment(), ALL).links == WEST


def test_without_links_parts_have_no_bits() -> None:
    matcher = small_columnar()
    matcher.add(Subscription(str(i), parse(f"x < {i}")) for i in range(100))
    matcher.match(ONE, Moment())
    matcher.remove("7")
    assert matcher.match_links(ONE, Moment(), ALL).steps == 0
    assert all(each.link_bits is None for each in matcher._indexes.parts)


# -- threads --------------------------------------------------------------------------------------


def test_readers_and_writers_at_once() -> None:
    matcher = small_columnar()
    matcher.add([Subscription("always", parse("x >= 0")), Subscription("near", parse("x < 5 + t"))])
    matcher.set_links("always", WEST)
    matcher.set_links("near", COLLECTED)
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = matcher.match_links(Event.of({"x": 1, "y": 1}), Moment(), ALL)
            if not found.links & WEST or "near" not in found.collected:
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for i in range(300):
        matcher.add([Subscription(str(i), parse(f"x = {i % 9} and y = {i % 4}"))])
        matcher.set_links(str(i), 1 << i % 20)
        if i % 3 == 0:
            matcher.remove(str(i))
    done.set()
    for each in readers:
        each.join()
    assert wrong == []
