"""Boxes of one shape: found by their single values and bounds, and written in place."""

from __future__ import annotations

import pytest

from tidegate.language.filters import parse
from tidegate.matching.poset import box_groups
from tidegate.matching.poset.box_groups import BoxEntry, BoxGroup, BoxRole, ValueNumbers, plan_of
from tidegate.matching.poset.boxes import Box
from tidegate.matching.poset.coverage import FILTERS


def box(text: str) -> Box:
    (only,) = FILTERS.boxes(parse(text))
    return only


def group_of(*texts: str) -> tuple[BoxGroup[str], dict[str, BoxEntry[str]]]:
    first = box(texts[0])
    group: BoxGroup[str] = BoxGroup((first.names, first.states), BoxRole.WHOLE, ValueNumbers())
    return group, {text: group.add(text, box(text)) for text in texts}


def wider(group: BoxGroup[str], text: str, *, nearest: bool = False) -> set[str]:
    asked = box(text)
    plan = plan_of(group, (asked.names, asked.states), wide=True)
    assert plan is not None
    return {entry.item for entry in group.select(plan, asked, True, nearest)}


@pytest.fixture(params=[0, 1000], ids=["arrays", "loops"], autouse=True)
def size_from_which_arrays_are_used(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_groups, "_LOOPED_MAX", request.param)
    monkeypatch.setattr(box_groups, "_SORTED_MIN", 1)


def test_boxes_are_found_by_their_single_values_and_bounds() -> None:
    group, _ = group_of("s = 'a' and x < 5", "s = 'a' and x < 9", "s = 'b' and x < 9")
    assert wider(group, "s = 'a' and x < 3") == {"s = 'a' and x < 5", "s = 'a' and x < 9"}
    assert wider(group, "s = 'b' and x < 9") == {"s = 'b' and x < 9"}
    assert wider(group, "s = 'c' and x < 1") == set()


def test_the_nearest_cover_no_other() -> None:
    group, _ = group_of(*(f"s = 'a' and x < {limit}" for limit in range(3, 9)))
    assert "s = 'a' and x < 4" in wider(group, "s = 'a' and x < 4", nearest=True)
    if box_groups._LOOPED_MAX == 0:
        assert wider(group, "s = 'a' and x < 4", nearest=True) == {"s = 'a' and x < 4"}


@pytest.mark.parametrize("into", ["s = 'a' and x < 2", "s = 'b' and x < 7", "s = 'new' and x < 7"])
def test_a_box_is_written_in_place(into: str) -> None:
    group, entries = group_of("s = 'a' and x < 5", "s = 'a' and x < 9", "s = 'b' and x < 9")
    group.change(entries["s = 'a' and x < 5"], box(into))
    assert "s = 'a' and x < 5" in wider(group, into)
    assert wider(group, "s = 'a' and x < 4") == {"s = 'a' and x < 9"}
    for entry in entries.values():
        group.remove(entry)
    assert group.length == 0
    assert wider(group, into) == set()


def test_shapes_that_have_nothing_in_common_have_no_plan() -> None:
    group, _ = group_of("s = 'a' and x < 5")
    narrow = box("s = 1 and x < 5")
    assert plan_of(group, (narrow.names, narrow.states), wide=True) is None
