"""Bounds that change in the tree: entries that keep their ways are not taken out of it."""

from __future__ import annotations

import pytest

from support.search_trees import arrays_of, matching
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.kernels import layout as la
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning

TEXT = "x = :x and y between :low and :high and z < :z"
SECOND_US = 1_000_000


def populated(text: str, parameters: dict[str, Value], factored: int = 0) -> TreeMatcher:
    """A tree in which ranges of `y` are cut, with a subscription `s` at the end of its leaf's list.

    An entry that is taken out and placed again comes to the front.
    """
    matcher = TreeMatcher(TreeTuning(order=("x", "y", "z"), leaf_paths_max=4, factored=factored))
    matcher.add([Subscription("s", parse(text), parameters, since=0)])
    matcher.add(
        Subscription(f"{x}{i}", parse(f"x = {x} and y between {10 * i} and {10 * i + 5}"))
        for x in range(2)
        for i in range(12)
    )
    matcher.match(Event({}), Moment(0))
    low, high = parameters["low"], parameters.get("high", 200)
    matcher.add([Subscription("last", parse(f"x = 0 and y between {low} and {high}"))])
    matcher.match(Event({}), Moment(0))
    return matcher


def ways(matcher: TreeMatcher) -> list[list[int]]:
    """The paths of `s`, each with its leaf and its neighbours."""
    arrays = arrays_of(matcher)
    entry = matcher._index.tree.records.only_of(matcher._table.number("s"))
    found: list[list[int]] = []
    path = int(arrays.entry[la.entry_at(entry, la.E_PATHS)])
    while path != la.NONE:
        found.append(arrays.path[la.path_at(path, 0) : la.path_at(path + 1, 0)].tolist())
        path = found[-1][la.P_SIBLING]
    return found


def check(matcher: TreeMatcher, text: str, parameters: dict[str, Value]) -> None:
    """Check the tree, and that `s` is found as it should be."""
    check_tree(matcher._index.tree)
    oracle = NaiveMatcher()
    oracle.add([Subscription("s", parse(text), parameters, since=0)])
    for x in range(2):
        for y in range(-5, 140):
            event = Event.of({"x": x, "y": y, "z": 1})
            expected = oracle.match(event, Moment(0))
            assert [id for id in matcher.match(event, Moment(0)) if id == "s"] == expected


START: dict[str, Value] = {"x": 0, "low": 51, "high": 54, "z": 5}


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({"z": 9}, True),  # tested at the leaf only
        ({"low": 50.5}, True),  # on the same side of all cuts
        ({"low": 53, "high": 53.5, "z": 0}, True),
        ({"low": 51, "high": 54}, True),  # as before
        ({"x": 1}, False),
        ({"low": 111, "high": 112}, False),
        ({"low": 51, "high": 51}, False),  # a value now, with another branch than ranges have
        ({"low": 54, "high": 51}, False),  # nothing satisfies it
        ({"low": -100, "high": 500}, False),
    ],
)
def test_only_what_takes_other_branches_is_placed_anew(
    changes: dict[str, Value], stays: bool
) -> None:
    matcher = populated(TEXT, START)
    before = ways(matcher)
    matcher.update("s", changes)
    assert (ways(matcher) == before) == stays
    check(matcher, TEXT, START | changes)
    matcher.update("s", START)
    check(matcher, TEXT, START)


def test_a_range_behind_a_star_is_proved_only_as_long_as_it_contains_the_span() -> None:
    """A span begins where a range begins at which was cut; what begins there too is proved."""
    text, proved = "x = :x and y >= :low", 0
    for low in range(0, 120, 10):
        start: dict[str, Value] = {"x": 0, "low": low}
        matcher = populated(text, start)
        before = ways(matcher)
        entry = matcher._index.tree.records.only_of(matcher._table.number("s"))
        end = arrays_of(matcher).entry[la.entry_at(entry, la.E_END)]
        proved += len(before) == 1 and before[0][la.P_FROM] == end
        matcher.update("s", {"low": low + 0.5})
        check(matcher, text, {"x": 0, "low": low + 0.5})
    assert proved


def test_pieces_of_a_range_stay_while_each_reaches_its_side() -> None:
    several: dict[str, Value] = {"x": 0, "low": 31, "high": 74, "z": 5}
    matcher = populated(TEXT, several)
    before = ways(matcher)
    assert len(before) > 1
    matcher.update("s", {"low": 31.5, "high": 73.5})
    assert ways(matcher) == before
    check(matcher, TEXT, several | {"low": 31.5, "high": 73.5})
    matcher.update("s", {"low": 70})
    assert len(ways(matcher)) < len(before)
    check(matcher, TEXT, several | {"low": 70, "high": 73.5})


@pytest.mark.parametrize("changes", [{"x": 1}, {"low": 52}, {"z": 9}])
def test_copies_of_a_factored_level_are_placed_anew(changes: dict[str, Value]) -> None:
    matcher = populated(TEXT, START, factored=2)
    matcher.update("s", changes)
    check(matcher, TEXT, START | changes)


MOVING = "x = :x and y between :low + t and :high + t and z < :z"


@pytest.mark.parametrize(
    ("changes", "stays"),
    [({"z": 9}, True), ({"low": 51.5, "high": 53}, True), ({"low": 111, "high": 112}, False)],
)
def test_constants_of_functions_within_the_branches_of_their_envelope(
    changes: dict[str, Value], stays: bool
) -> None:
    matcher = populated(MOVING, START)
    before = ways(matcher)
    matcher.update("s", changes)
    assert (ways(matcher) == before) == stays
    check(matcher, MOVING, START | changes)


def test_a_new_window_leaves_an_entry_where_it_is_if_its_branches_are_the_same() -> None:
    matcher = populated(MOVING.replace("+ t", "+ t / 1000"), START)
    before = ways(matcher)
    assert "s" in matching_at(matcher, 20)
    assert matcher._index._window is not None
    assert matcher._index._window.begin > 0
    assert ways(matcher) == before
    assert "s" not in matching_at(matcher, 90_000)
    assert ways(matcher) != before
    check_tree(matcher._index.tree)


def matching_at(matcher: TreeMatcher, seconds: int) -> list[str]:
    return matcher.match(Event.of({"x": 0, "y": 52, "z": 1}), Moment(seconds * SECOND_US))


def test_statistics_follow_the_bounds() -> None:
    matcher = populated(TEXT, START)
    channel = matcher._channels.numbers[("y", 6)]
    tests, extent = matcher._index.tree.records.tests, arrays_of(matcher).extent
    values, ranges = tests.on(channel).tolist()
    matcher.update("s", {"low": 2000, "high": 2000})
    after = matcher._index.tree.records.tests.on(channel).tolist()
    assert after == [values + 1, ranges - 1]
    assert extent[2 * channel + 1] == 2000
    assert matching(matcher, x=0, y=2000, z=1) == ["s"]
