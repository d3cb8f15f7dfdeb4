"""The bounds of one entry, as the innermost loop checks them: flags, sets, margins of envelopes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernel_entries import (
    CHANNELS,
    NO_PROGRAM,
    OF_SETS,
    SETS,
    VALUES,
    Bounds,
    Entry,
    entries_of,
    entry_lists,
)
from tidegate.matching.columnar.kernels.check import check_bounds, take_apart
from tidegate.matching.columnar.kernels.layout import flat
from tidegate.matching.columnar.kernels.part import (
    E_SUBSCRIPTION,
    ENTRY_WORDS,
    PackedPart,
    margin_at,
    pack,
)
from tidegate.matching.rows.kernels.constraints import satisfied
from tidegate.matching.rows.kernels.flags import DEAD, GONE, MOVING, UNSURE, VERIFY

SET_FIRST = np.array([0, *np.cumsum([len(each) for each in SETS])], np.int32)
SET_VALUE = np.array([float(each) for some in SETS for each in some])


def packed(*listed: Entry) -> PackedPart:
    return pack(flat(entries_of(list(listed)), NO_PROGRAM))


def checked(part: PackedPart, row: list[float], margin: float = 0.0) -> dict[int, int]:
    """What is returned for each entry, by subscription, if all constraints have a margin."""
    at, i32, _, _, f64, _, _ = part
    entries, bound, bits, margins = take_apart(at, i32, f64)
    if margin:
        margins[margin_at(0) :: 6] = margin
    events = np.array([[math.nan] * len(row), row])
    subscriptions = entries[E_SUBSCRIPTION:-ENTRY_WORDS:ENTRY_WORDS].tolist()
    return {
        number: check_bounds(
            entry, entries, bound, bits, margins, events, 1, SET_FIRST, SET_VALUE
        )
        for entry, number in enumerate(subscriptions)
    }  # fmt: skip


def is_satisfied(entry: Entry, row: list[float]) -> bool:
    """What an entry without functions means."""
    return all(
        _is_member(row[CHANNELS], bounds)
        if channel == OF_SETS
        else satisfied(row[channel], *bounds)
        for channel, asked in entry.constraints.items()
        for bounds in asked
    )


def _is_member(number: float, bounds: Bounds) -> bool:
    low, high = bounds
    if math.isnan(number):
        return False
    return low in SETS[int(number)] if low == high else low - 1 not in SETS[int(number)]


rows = st.tuples(
    st.lists(st.sampled_from([*VALUES, math.nan]), min_size=CHANNELS, max_size=CHANNELS),
    st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan]),
).map(lambda drawn: [*drawn[0], drawn[1]])


@given(entry_lists, rows)
def test_an_entry_is_found_if_the_event_satisfies_its_constraints(
    listed: list[Entry], row: list[float]
) -> None:
    found = checked(packed(*listed), row)
    assert found == {
        number: -1 if each.flags & (DEAD | GONE) or not is_satisfied(each, row) else each.flags
        for number, each in enumerate(listed)
    }


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        (0.9, -1),
        (1.0, MOVING | UNSURE),
        (1.4, MOVING | UNSURE),
        (1.5, MOVING),
        (2.5, MOVING),
        (2.6, MOVING | UNSURE),
        (3.1, -1),
    ],
)
def test_a_value_within_the_margin_of_an_envelope_is_unsure(x: float, wanted: int) -> None:
    entry = Entry({0: [(1.0, 3.0)]}, MOVING)
    assert checked(packed(entry), [x], margin=0.5) == {0: wanted}


def test_bounds_without_a_margin_are_sure() -> None:
    entry = Entry({0: [(1.0, 3.0)]}, MOVING | VERIFY)
    assert checked(packed(entry), [1.0]) == {0: MOVING | VERIFY}


def test_margins_count_for_moving_entries_only() -> None:
    assert checked(packed(Entry({0: [(1.0, 3.0)]})), [1.0], margin=0.5) == {0: 0}
