"""Boxes of one shape: found by their single values and bounds, and written in place."""

from __future__ import annotations

import pytest

from tidegate.language.filters import parse
from tidegate.matching.poset.box_groups import BoxEntry, BoxGroup, BoxRole, ValueNumbers, plan_of
from tidegate.matching.poset.boxes import Box
from tidegate.matching.poset.coverage import FILTERS


def box(text: str) -> Box:
    (only,) = FILTERS.boxes(parse(text))
    return only


LOOPS_AND_ARRAYS = pytest.mark.parametrize("loop_max", [1000, 0], ids=["loops", "arrays"])


def group_of(loop_max: int, *texts: str) -> tuple[BoxGroup[str], dict[str, BoxEntry[str]]]:
    first = box(texts[0])
    group: BoxGroup[str] = BoxGroup(
        (first.names, first.forms), BoxRole.WHOLE, ValueNumbers(), loop_max=loop_max, sort_min=1
    )
    return group, {text: group.add(text, box(text)) for text in texts}


def wider(group: BoxGroup[str], text: str, *, nearest: bool = False) -> set[str]:
    given = box(text)
    plan = plan_of(group, (given.names, given.forms), wide=True)
    assert plan is not None
    return {entry.item for entry in group.select(plan, given, True, nearest)}


@LOOPS_AND_ARRAYS
def test_boxes_are_found_by_their_single_values_and_bounds(loop_max: int) -> None:
    group, _ = group_of(loop_max, "s = 'a' and x < 5", "s = 'a' and x < 9", "s = 'b' and x < 9")
    assert wider(group, "s = 'a' and x < 3") == {"s = 'a' and x < 5", "s = 'a' and x < 9"}
    assert wider(group, "s = 'b' and x < 9") == {"s = 'b' and x < 9"}
    assert wider(group, "s = 'c' and x < 1") == set()


def test_the_nearest_cover_no_other() -> None:
    texts = [f"s = 'a' and x < {limit}" for limit in range(3, 9)]
    group, _ = group_of(0, *texts)
    assert wider(group, "s = 'a' and x < 4", nearest=True) == {"s = 'a' and x < 4"}
    group, _ = group_of(1000, *texts)  # loops do not single out the nearest
    assert wider(group, "s = 'a' and x < 4", nearest=True) == set(texts[1:])


@LOOPS_AND_ARRAYS
@pytest.mark.parametrize("into", ["s = 'a' and x < 2", "s = 'b' and x < 7", "s = 'new' and x < 7"])
def test_a_box_is_written_in_place(into: str, loop_max: int) -> None:
    group, entries = group_of(
        loop_max, "s = 'a' and x < 5", "s = 'a' and x < 9", "s = 'b' and x < 9"
    )
    group.change(entries["s = 'a' and x < 5"], box(into))
    assert "s = 'a' and x < 5" in wider(group, into)
    assert wider(group, "s = 'a' and x < 4") == {"s = 'a' and x < 9"}
    for entry in entries.values():
        group.remove(entry)
    assert group.length == 0
    assert wider(group, into) == set()


def test_shapes_that_have_nothing_in_common_have_no_plan() -> None:
    group, _ = group_of(0, "s = 'a' and x < 5")
    narrow = box("s = 1 and x < 5")
    assert plan_of(group, (narrow.names, narrow.forms), wide=True) is None
