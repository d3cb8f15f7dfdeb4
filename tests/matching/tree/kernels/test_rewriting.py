"""Plans carried out in the tree: without garbage, and with arrays that grow on the way."""

from __future__ import annotations

import math
from inspect import signature

import numpy as np
import pytest

from support.search_trees import arrays_of, matching
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS
from tidegate.matching.rows.kernels.rewrite_plan import DONE, NOT_IN_PLACE, OTHER_KINDS
from tidegate.matching.rows.update_plans import plan_update
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.kernels.layout import NODE_WORDS, TreeArrays
from tidegate.matching.tree.kernels.rewriting import rewrite_entry
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import PLAIN, TreeTuning

COUNT = 450
TUNINGS = [PLAIN, TreeTuning(leaf_paths_max=2), TreeTuning(leaf_paths_max=1, factored=1)]


def equal_ones(tuning: TreeTuning) -> TreeMatcher:
    """Subscriptions that are all alike, so that their tree is small."""
    matcher = TreeMatcher(tuning)
    values: dict[str, Value] = {"a": 0, "b": "none"}
    matcher.add(
        Subscription(f"s{i}", parse("a = :a and b = :b and c >= 0"), values) for i in range(COUNT)
    )
    matcher.match(Event({}), Moment())
    return matcher


def updates() -> dict[str, dict[str, Value | None]]:
    return {f"s{i}": {"a": i // 4, "b": f"b{i}"} for i in range(COUNT)}


@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("at_once", [True, False])
def test_arrays_grow_in_the_middle_of_updates(tuning: TreeTuning, at_once: bool) -> None:
    matcher = equal_ones(tuning)
    for i in range(COUNT):
        matcher.set_links(f"s{i}", 1 << i % 5)
    before = len(arrays_of(matcher).node) // NODE_WORDS
    constraints = matcher._index.tree.records.bounds
    if at_once:
        matcher.update_many(updates())
    else:
        for id, each in updates().items():
            matcher.update(id, each)
    assert len(arrays_of(matcher).node) // NODE_WORDS > before
    assert matcher._index.tree.records.bounds == constraints
    check_tree(matcher._index.tree)
    for i in range(0, COUNT, 37):
        assert matching(matcher, a=i // 4, b=f"b{i}", c=1) == [f"s{i}"]
    assert matching(matcher, a=0, b="none", c=1) == []


def test_a_tree_whose_bounds_become_equal_again_is_small_again() -> None:
    matcher = equal_ones(TreeTuning(leaf_paths_max=2))
    before = matcher._index.tree.nodes
    matcher.update_many(updates())
    assert matcher._index.tree.nodes > COUNT
    matcher.update_many({id: {"a": 0, "b": "none"} for id in updates()})
    assert matcher._index.tree.nodes <= before + 3
    check_tree(matcher._index.tree)
    assert len(matching(matcher, a=0, b="none", c=1)) == COUNT


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("x < :a and y = 1", 7, DONE),
        ("x < :a and y = 1", 7.5, DONE),
        ("x < :a and y = 1", "word", OTHER_KINDS),
        ("x < :a and y = 1", 2**53, NOT_IN_PLACE),
        ("x < :a and y = 1", math.inf, NOT_IN_PLACE),
        ("x < 1 / :a and y = 1", 0, NOT_IN_PLACE),
        ("x < :a and y = :unset", 7, NOT_IN_PLACE),  # it matches nothing
    ],
)
def test_outcomes(text: str, value: Value, expected: int) -> None:
    matcher = TreeMatcher()
    matcher.add([Subscription("s", parse(text), {"a": 1})])
    matcher.match(Event({}), Moment())
    table, number = matcher._table, matcher._table.number("s")
    shape, row = table.columns.shape.item(number), table.columns.row.item(number)
    kinds = table.rows.kinds[row : row + table.width(shape)].tolist()
    slots = table.slots(np.array([number], np.int32), [{"a": value}])[0]
    plan = plan_update(table.shapes[shape], kinds, slots, matcher._channels).alone
    table.update(number, {"a": value})
    outcome = rewrite_entry(
        *arrays_of(matcher),
        matcher._index.tree.records.only_of(number),
        plan,
        table.rows.kinds,
        table.rows.cells,
        row,
        np.zeros(1, np.int32),
        np.zeros(0, np.int64),
        np.zeros((2, 1)),
        np.empty(SCRATCH_FLOATS),
    )
    assert outcome == expected
    check_tree(matcher._index.tree)


def test_the_kernel_of_one_update_takes_the_arrays_of_a_tree_in_their_order() -> None:
    names = list(signature(rewrite_entry).parameters)
    assert tuple(names[: len(TreeArrays._fields)]) == TreeArrays._fields


def test_an_entry_that_is_empty_stays_out_when_something_else_changes() -> None:
    matcher = TreeMatcher(TreeTuning(leaf_paths_max=1))
    filter = parse("x between :a and :b and y = :c")
    matcher.add(Subscription(str(i), filter, {"a": i, "b": i + 2, "c": 1}) for i in range(9))
    matcher.match(Event({}), Moment())
    matcher.update("4", {"a": 9, "b": 3})
    matcher.update("4", {"c": 2})
    check_tree(matcher._index.tree)
    assert matching(matcher, x=5, y=2) == []
    copy = matcher._index.build(matcher._index.copy(), [0, 1])
    check_tree(copy)
    assert copy.paths <= matcher._index.tree.paths + 2
    matcher.update("4", {"b": 9.5})
    assert matching(matcher, x=9.25, y=2) == ["4"]
    check_tree(matcher._index.tree)


def test_an_annotation_that_an_update_had_missed_is_found_out() -> None:
    """The check of the invariants can fail: with annotations as they were before the update."""
    matcher = TreeMatcher(TreeTuning(leaf_paths_max=2))
    filter = parse("x = :a and y = 1")
    matcher.add(Subscription(str(i), filter, {"a": i}) for i in range(20))
    for i in range(20):
        matcher.set_links(str(i), 1 << i)
    before = arrays_of(matcher).sure.copy(), arrays_of(matcher).may.copy()
    matcher.update("3", {"a": 17})
    check_tree(matcher._index.tree)
    arrays = arrays_of(matcher)
    event = Event.of({"x": 17, "y": 1})
    assert matcher.match_links(event, Moment(), 0b1000).links == 0b1000
    arrays.sure[:], arrays.may[:] = before
    assert matcher.match_links(event, Moment(), 0b1000).links == 0
    with pytest.raises(AssertionError):
        check_tree(matcher._index.tree)
