"""The tree matcher under random changes, with every setting, against the oracle."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.random_changes import ExtremeChanges, RandomChanges, RandomUpdates
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.search_tree import SearchTree
from tidegate.matching.tree.tuning import PLAIN, TreeTuning

TUNINGS = {
    "small leaves": TreeTuning(leaf_paths_max=1),
    "larger leaves": TreeTuning(leaf_paths_max=4),
    "as in the paper": PLAIN,
    "a factored level": TreeTuning(leaf_paths_max=2, factored=1),
    "three factored levels": TreeTuning(leaf_paths_max=2, factored=3),
    "no delayed branching": TreeTuning(leaf_paths_max=1, delays_branching=False),
    "only trivial tests eliminated": TreeTuning(leaf_paths_max=0, delays_branching=False),
}


def change_at_random(seed: int, tuning: TreeTuning, count: int) -> None:
    """Compare a tree with the oracle under random changes, and check its records."""
    matcher = TreeMatcher(tuning)
    RandomChanges(seed, matcher).run(count)
    check_tree(matcher._index.tree)


@pytest.mark.parametrize("tuning", TUNINGS)
@settings(max_examples=max(2, settings().max_examples // 40))
@given(st.integers(0, 2**32))
def test_random_changes(tuning: str, seed: int) -> None:
    change_at_random(seed, TUNINGS[tuning], 60)


@pytest.mark.parametrize("tuning", TUNINGS)
@settings(max_examples=max(2, settings().max_examples // 40))
@given(st.integers(0, 2**32))
def test_random_updates(tuning: str, seed: int) -> None:
    matcher = TreeMatcher(TUNINGS[tuning])
    updates = RandomUpdates(seed, matcher)
    for _ in range(8):
        updates.run(10)
        check_tree(matcher._index.tree)


@pytest.mark.parametrize("tuning", TUNINGS)
@settings(max_examples=max(3, settings().max_examples // 20))
@given(st.integers(0, 2**32))
def test_random_changes_with_extreme_numbers(tuning: str, seed: int) -> None:
    matcher = TreeMatcher(TUNINGS[tuning])
    ExtremeChanges(seed, matcher).run(60)
    check_tree(matcher._index.tree)


def test_a_value_in_the_envelope_is_not_yet_a_match() -> None:
    """The envelope was taken for proved by the branch of a factored value."""
    change_at_random(32, TUNINGS["three factored levels"], 150)


def test_the_order_of_levels_follows_the_subscriptions() -> None:
    matcher = TreeMatcher()
    matcher.add(Subscription(f"x{i}", parse(f"x{i % 10} = {i % 50}")) for i in range(300))
    first = matcher._index.tree
    matcher.add(Subscription(f"y{i}", parse(f"y = {i % 90} and z = {i % 7}")) for i in range(3_000))
    assert matcher._index.tree is not first
    channels = {number: name for (name, _), number in matcher._channels.numbers.items()}
    assert [channels[each] for each in matcher._index.tree.storage.order][:3] == ["y", "z", "x0"]
    both = matcher.match(Event.of({"x3": 3, "y": 89, "z": 5}), Moment())
    assert len(both) == 6 + len([i for i in range(3_000) if i % 90 == 89 and i % 7 == 5])
    check_tree(matcher._index.tree)


def test_garbage_of_removed_entries_is_given_back() -> None:
    matcher = TreeMatcher()
    matcher.add(Subscription(str(i), parse(f"x = {i} and y = 1")) for i in range(2_000))
    for i in range(1_900):
        matcher.remove(str(i))
    assert not matcher._index.tree.records.is_wasteful
    assert matcher.match(Event.of({"x": 1_950, "y": 1}), Moment()) == ["1950"]


def test_updates_of_a_few_subscriptions_do_not_fill_the_memory() -> None:
    matcher = TreeMatcher()
    matcher.add(Subscription(str(i), parse("x = :v and y = 1"), {"v": i}) for i in range(3))
    for v in range(2_000):
        matcher.update("1", {"v": v})
    assert matcher._index.tree.records.bounds < 2_000
    assert matcher.match(Event.of({"x": 1_999, "y": 1}), Moment()) == ["1"]


def test_a_variable_that_comes_later_has_a_column_before_the_next_event() -> None:
    matcher = TreeMatcher()
    matcher.add([Subscription("a", parse("x < @a + t"), since=0, evolve=Cached(1.0))])
    assert matcher.match(Event.of({"x": 1}), Moment(0, {"a": 5})) == ["a"]
    matcher.add([Subscription("b", parse("x < @b + t"), since=0, evolve=Cached(1.0))])
    matcher.pin(["a", "b"], 0)
    window = matcher._index._window
    assert window is not None
    assert window.variables.shape == (2, 2)
    found = matcher.match(Event.of({"x": 1}), Moment(0, {"a": 0, "b": 5}))
    assert found == ["b"]


def test_changes_while_another_tree_is_built_are_in_it() -> None:
    matcher = TreeMatcher()
    matcher.add(Subscription(str(i), parse("x = :v and y = 1"), {"v": i}) for i in range(100))
    matcher.set_links("5", 0b10)
    index = matcher._index
    copied = index.copy()
    tree = index.build(copied, [1, 0])
    matcher.update("3", {"v": 1_000})
    matcher.remove("4")
    matcher.add([Subscription("new", parse("x = 2000"))])
    with matcher._lock:
        index.replace(tree)
    check_tree(index.tree)
    for x, expected in {3: [], 1_000: ["3"], 4: [], 2_000: ["new"], 7: ["7"]}.items():
        assert matcher.match(Event.of({"x": x, "y": 1}), Moment()) == expected
    assert matcher.match_links(Event.of({"x": 5, "y": 1}), Moment(), 0b110).links == 0b10


def test_readers_and_writers_go_on_while_the_order_is_chosen_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = TreeMatcher()
    matcher.add(Subscription(f"x{i}", parse(f"x{i % 10} = {i % 50}")) for i in range(300))
    event = Event.of({"x3": 3, "y": 89, "z": 5, "w": 1})
    seen: list[list[str]] = []

    def meanwhile() -> None:
        matcher.add([Subscription("new", parse("w = 1"))])
        matcher.remove("x3")
        matcher.set_links("new", 0b10)
        seen.append(matcher.match(event, Moment()))

    def build(entries: Entries, order: list[int]) -> SearchTree:
        other = threading.Thread(target=meanwhile)
        other.start()
        other.join(60)  # it would wait for the lock if it were held, and `seen` would be empty
        built.append(right(entries, order))
        return built[-1]

    right, built = matcher._index.build, list[SearchTree]()
    monkeypatch.setattr(matcher._index, "build", build)
    matcher.add(Subscription(f"y{i}", parse(f"y = {i % 90} and z = {i % 7}")) for i in range(3_000))
    assert [matcher._index.tree] == built
    (found,) = seen
    assert "new" in found
    assert "x3" not in found
    assert sorted(matcher.match(event, Moment())) == sorted(found)
    assert matcher.match_links(event, Moment(), 0b110).links == 0b10
    check_tree(matcher._index.tree)


def test_columns_of_events_stay_while_a_tree_is_built_that_may_look_at_them() -> None:
    """Searches read beyond the end of the columns, at levels of the new tree."""
    matcher = TreeMatcher(PLAIN)
    matcher.add(Subscription(str(i), parse(f"x{i} = 1 and y = {i}")) for i in range(300))
    index = matcher._index
    with matcher._rebuilding:
        order = list(index.tree.storage.order)
        tree = index.build(index.copy(), order)
        for i in range(300):
            matcher.remove(str(i))
        matcher.add([Subscription("new", parse("y = 1"))])
        matcher.match(Event.of({"y": 1}), Moment())  # begins another tree, with one level
        matcher.add([Subscription("other", parse("z = 1"))])
        matcher.remove("other")  # gives columns back
        with matcher._lock:
            index.replace(tree)
    assert index.columns == max(order) + 1
    assert index.columns <= matcher._channels.columns
    assert matcher.match(Event.of({"y": 1}), Moment()) == ["new"]
    check_tree(index.tree)


def test_readers_and_writers_at_once() -> None:
    matcher = TreeMatcher(TreeTuning(leaf_paths_max=2))
    matcher.add([Subscription("always", parse("x >= 0"))])
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = matcher.match(Event.of({"x": 1, "y": 1}), Moment())
            if "always" not in found:
                wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(400):
        matcher.add([Subscription(str(i), parse(f"x = {i % 9} and y = {i % 4}"))])
        if i % 3 == 0:
            matcher.remove(str(i))
    done.set()
    reader.join()
    assert wrong == []
