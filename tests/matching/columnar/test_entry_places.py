"""Where the entries of subscriptions are, while parts come, grow and go."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I32
from tidegate.matching.columnar.entry_places import NO_ENTRY, EntryPlaces
from tidegate.matching.rows.kernels.flags import GONE, SHARED


def i32(*values: int) -> I32:
    return np.array(values, np.int32)


def made(count: int = 10) -> EntryPlaces:
    places = EntryPlaces(i32(), i32())
    places.reserve(count)
    return places


def test_a_subscription_without_entries() -> None:
    places = made()
    assert (places.only(3), places.all(3)) == (NO_ENTRY, [])
    assert places.alone(i32(3, 4)).tolist() == [False, False]


def test_entries_of_a_part() -> None:
    places = made()
    places.enter(2, i32(5, 7, 7, 1), i32(0, SHARED, SHARED, 0))
    assert (places.part(7), places.only(7), places.all(7)) == (2, NO_ENTRY, [1, 2])
    assert (places.part(1), places.only(1), places.all(1)) == (2, 3, [3])
    assert places.alone(i32(5, 7, 1, 0)).tolist() == [True, False, True, False]


def test_entries_that_are_gone_are_not_among_several() -> None:
    places = made()
    places.enter(1, i32(7, 7), i32(SHARED | GONE, SHARED))
    assert places.all(7) == [1]


def test_entries_that_are_appended_in_two_steps_are_all_known() -> None:
    places = made()
    places.enter(0, i32(7), i32(SHARED))
    places.enter(0, i32(7, 8), i32(SHARED, 0), begin=1)
    assert (places.all(7), places.all(8)) == ([0, 1], [2])


def test_a_part_that_is_made_anew_replaces_what_was_known() -> None:
    places = made()
    places.enter(0, i32(7, 8, 7), i32(SHARED, 0, SHARED))
    places.enter(3, i32(7, 7), i32(SHARED, SHARED))
    assert (places.part(7), places.all(7)) == (3, [0, 1])


def test_what_is_forgotten_leads_nowhere() -> None:
    places = made()
    places.enter(0, i32(7, 7, 8), i32(SHARED, SHARED, 0))
    places.forget(7)
    places.forget(8)
    assert (places.all(7), places.all(8)) == ([], [])


def test_places_part_by_part() -> None:
    places = made()
    places.enter(1, i32(4, 5), i32(0, 0))
    places.enter(2, i32(6, 7, 7), i32(0, SHARED, SHARED))
    found = [(part, entries.tolist()) for part, entries in places.by_part(i32(7, 5, 6, 9))]
    assert found == [(1, [1]), (2, [0, 1, 2])]


def test_parts_are_renumbered_and_replaced() -> None:
    places = made()
    for part, number in enumerate((1, 2, 3)):
        places.enter(part, i32(number), i32(0))
    places.renumber(2, 1)
    assert [places.part(number) for number in (1, 2, 3)] == [0, 1, 1]
    places.replace(5, i32(1, 3), np.array([8, 9]), {3: [9, 10]})
    assert (places.part(3), places.all(3), places.all(1)) == (5, [9, 10], [8])


def test_room_is_made_without_forgetting() -> None:
    places = made(2)
    places.enter(0, i32(1), i32(0))
    places.reserve(1)
    places.reserve(50)
    assert (places.all(1), places.all(49)) == ([0], [])
