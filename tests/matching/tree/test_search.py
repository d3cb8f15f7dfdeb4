"""Searches that find more than there is room for at first."""

from __future__ import annotations

from support.search_trees import matching, tree_of
from tidegate.language.events import Event
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.subscription import Moment
from tidegate.matching.tree.search import FIRST_PAIRS
from tidegate.matching.tree.tuning import TreeTuning

COUNT = FIRST_PAIRS + 10


def test_more_matches_than_the_buffers_have_room_for() -> None:
    matcher = tree_of({f"s{i}": f"x < {i}" for i in range(COUNT)}, TreeTuning())
    assert len(matching(matcher, x=-1)) == COUNT
    assert len(matching(matcher, x=COUNT - 3)) == 2


def test_more_collected_entries_than_the_buffers_have_room_for() -> None:
    matcher = tree_of({f"s{i}": f"x < {i}" for i in range(COUNT)}, TreeTuning())
    for i in range(COUNT):
        matcher.set_links(f"s{i}", COLLECTED | 0b100)
    found = matcher.match_links(Event.of({"x": -1}), Moment(), COLLECTED | 0b110)
    assert len(found.collected) == COUNT
    assert found.links == COLLECTED | 0b100
