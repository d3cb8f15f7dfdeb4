"""Annotations that follow changes, compared with those combined anew; figures are elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from support.search_trees import arrays_of, tree_of
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.matching.subscription import Moment
from tidegate.matching.tree.kernels.layout import ROOT
from tidegate.matching.tree.kernels.trits import annotate_all
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import PLAIN, TreeTuning

FILTERS = {f"s{i}": f"a = {i % 3} and b between {i} and {i + 4} and c = {i % 2}" for i in range(20)}


def annotated(tuning: TreeTuning) -> TreeMatcher:
    matcher = tree_of(FILTERS, tuning)
    for place, id in enumerate(FILTERS):
        matcher.set_links(id, 1 << place)
    return matcher


@pytest.mark.parametrize("tuning", [PLAIN, TreeTuning(leaf_paths_max=2, factored=1)])
def test_annotations_follow_changes(tuning: TreeTuning) -> None:
    matcher = annotated(tuning)
    for id in ("s3", "s9", "s12"):
        matcher.remove(id)
        check_tree(matcher._index.tree)
    matcher.set_links("s4", 0)
    check_tree(matcher._index.tree)
    arrays = arrays_of(matcher)
    gone = sum(1 << place for place in (3, 4, 9, 12))
    assert int(arrays.may[ROOT]) == (2**20 - 1) & ~gone
    before = arrays.sure.tolist(), arrays.may.tolist()
    annotate_all(arrays)
    assert (arrays.sure.tolist(), arrays.may.tolist()) == before


def test_a_sabotaged_annotation_is_found_out() -> None:
    """The check of the invariants can fail, and a lost bit loses a link."""
    matcher = annotated(TreeTuning(leaf_paths_max=2))
    event = Event.of({"a": 0, "b": 5, "c": 1})
    expected = matcher.match_links(event, Moment(), 2**20 - 1).links
    assert expected
    arrays_of(matcher).may[ROOT] &= ~np.uint64(expected)
    assert matcher.match_links(event, Moment(), expected).links == 0
    with pytest.raises(AssertionError):
        check_tree(matcher._index.tree)


@pytest.mark.parametrize("tuning", [PLAIN, TreeTuning(leaf_paths_max=2, factored=1)])
def test_links_that_change_one_after_the_other(tuning: TreeTuning) -> None:
    matcher = annotated(tuning)
    for step in range(40):
        matcher.set_links(f"s{step * 7 % 20}", step * 2654435761 % 2**20 >> 3 * (step % 5))
        check_tree(matcher._index.tree)
