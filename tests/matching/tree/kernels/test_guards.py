"""Guards of *-branches and leaves."""

from __future__ import annotations

from support.search_trees import arrays_of, matching, tree_of, word_of
from support.tree_invariants import check_tree
from tidegate.language.filters import parse
from tidegate.matching.subscription import Subscription
from tidegate.matching.tree.kernels.layout import (
    N_GUARD,
    N_GUARD_HIGH,
    N_GUARD_LOW,
    NONE,
    ROOT,
    node_f64,
)
from tidegate.matching.tree.tuning import TreeTuning

SMALL = TreeTuning(order=("x", "y"), leaf_paths_max=2)
FILTERS = {f"x{i}": f"x = {i} and y = {10 * i}" for i in range(11)} | {"star": "y = 4 and z = 1"}


def guard(matcher: object) -> tuple[float, float]:
    node = arrays_of(matcher).node  # type: ignore[arg-type]
    return float(node[node_f64(ROOT, N_GUARD_LOW)]), float(node[node_f64(ROOT, N_GUARD_HIGH)])


def test_a_star_branch_is_guarded_by_what_all_behind_it_require() -> None:
    matcher = tree_of(FILTERS, SMALL)
    assert word_of(matcher, N_GUARD) != NONE
    assert guard(matcher) == (4.0, 4.0)
    assert matching(matcher, x=3, y=4, z=1) == ["star"]
    assert matching(matcher, x=3, y=30, z=1) == ["x3"]


def test_a_guard_is_widened_and_removed() -> None:
    matcher = tree_of(FILTERS, SMALL)
    matcher.add([Subscription("near", parse("y = 7"))])
    assert guard(matcher) == (4.0, 7.0)
    check_tree(matcher._index.tree)
    matcher.add([Subscription("far", parse("y = 99"))])
    assert word_of(matcher, N_GUARD) == NONE
    assert matching(matcher, x=3, y=99) == ["far"]
    check_tree(matcher._index.tree)


def test_what_does_not_care_about_the_guard_removes_it() -> None:
    matcher = tree_of(FILTERS | {"other": "z = 1"}, SMALL)
    assert matching(matcher, x=3, y=30, z=1) == ["other", "x3"]
    check_tree(matcher._index.tree)


def test_bounds_as_large_as_numbers_get_do_not_keep_a_guard() -> None:
    """The extent of y is infinite when it is computed as a difference."""
    stars = {f"star {i}": f"y = 4 and z = {i}" for i in range(5)}
    wide = {"wide": "x = 1 and y between -1.7e308 and 1.7e308"}
    matcher = tree_of(FILTERS | stars | wide, SMALL)
    assert guard(matcher) == (4.0, 4.0)
    matcher.add([Subscription("far", parse("y <= 1.6e308"))])
    assert word_of(matcher, N_GUARD) == NONE
    matcher = tree_of(FILTERS | stars | wide, SMALL)
    matcher.add([Subscription("other", parse("z = 7"))])
    assert word_of(matcher, N_GUARD) == NONE
    assert matching(matcher, x=3, z=7) == ["other"]
    assert matching(matcher, x=1, y=-1.6e308) == ["wide"]
    check_tree(matcher._index.tree)


def test_the_smallest_numbers_have_a_width() -> None:
    small = {f"s{i}": f"x >= {5e-324 * i!r} and y = 1" for i in range(4)}
    matcher = tree_of(small, TreeTuning(order=("y",), leaf_paths_max=1))
    assert matching(matcher, x=0.0, y=1) == ["s0"]
    assert matching(matcher, x=5e-324, y=1) == ["s0", "s1"]
    check_tree(matcher._index.tree)


def test_without_delayed_branching_there_are_no_guards() -> None:
    matcher = tree_of(FILTERS, TreeTuning(("x", "y"), leaf_paths_max=2, delays_branching=False))
    assert word_of(matcher, N_GUARD) == NONE
    assert matching(matcher, x=3, y=4, z=1) == ["star"]


def test_a_guard_saves_steps() -> None:
    steps = []
    for delays in (True, False):
        tuning = TreeTuning(("x", "y"), leaf_paths_max=2, delays_branching=delays)
        matcher = tree_of(FILTERS | {f"s{i}": f"y = {i} and z = 1" for i in range(9)}, tuning)
        assert matching(matcher, x=3, y=4, z=2) == []
        steps.append(matcher.steps)
    assert steps[0] < steps[1]
