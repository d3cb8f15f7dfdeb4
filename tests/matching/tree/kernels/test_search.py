"""The search: results that do not fit, steps, and the ways of events without a value."""

from __future__ import annotations

from support.search_trees import matching, tree_of
from tidegate.language.events import Event
from tidegate.matching.batches import EventBatch
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.subscription import Moment
from tidegate.matching.tree.tuning import TreeTuning


def test_more_pairs_than_fit_at_first() -> None:
    matcher = tree_of({str(i): f"x >= {i}" for i in range(300)}, TreeTuning())
    found = matcher.match_batch(EventBatch.of_events([Event.of({"x": 299})] * 40))
    assert len(found.events) == 40 * 300
    for id in map(str, range(300)):
        matcher.set_links(id, COLLECTED)
    links = matcher.match_links(Event.of({"x": 299}), Moment(), COLLECTED)
    assert len(links.collected) == 300


def test_an_absent_value_takes_the_star_branch_only() -> None:
    filters = {"v": "x = 1", "r": "x > 0", "s": "y = 1"} | {
        f"o{i}": f"x = {i + 2}" for i in range(9)
    }
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=1))
    assert matching(matcher, y=1) == ["s"]
    assert matching(matcher, x="1", y=1) == ["s"]
    assert matching(matcher, x=1) == ["r", "v"]


def test_a_link_that_nobody_has_is_not_searched_for() -> None:
    matcher = tree_of({str(i): f"x = {i}" for i in range(30)}, TreeTuning())
    for i in range(30):
        matcher.set_links(str(i), 0b10)
    assert matcher.match_links(Event.of({"x": 3}), Moment(), 0b100).steps == 1
    assert matcher.match_links(Event.of({"x": 3}), Moment(), 1 << 200).links == 0
    assert matcher.match_links(Event.of({"x": 3}), Moment(), 0b10).links == 0b10
