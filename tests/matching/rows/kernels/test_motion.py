"""Motions: what is written is read again, and for which time functions are evaluated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.kernels.motion import (
    EVERY,
    LINEAR,
    M_PIN,
    M_SINCE,
    MOTION_WORDS,
    R_CONSTANTS,
    R_HEAD,
    R_PROGRAM,
    SHIFTED,
    MovingConstraint,
    channel_of,
    comparison_of,
    head,
    is_same_shift,
    judged_at,
    length_of,
    write_motions,
)
from tidegate.matching.rows.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    C_NOT_EQUAL,
)

comparisons = st.sampled_from(
    [C_EQUAL, C_NOT_EQUAL, C_LESS, C_LESS_EQUAL, C_GREATER, C_GREATER_EQUAL]
)
places = st.integers(0, 2**31 - 1)


@given(st.integers(0, 2**32 - 1), comparisons, st.integers(0, 20_000))
def test_a_head_gives_back_what_was_put_in(channel: int, comparison: int, constants: int) -> None:
    word = np.int64(head(channel, comparison, constants))
    assert channel_of(word) == channel
    assert comparison_of(word) == comparison
    assert length_of(word) == R_CONSTANTS + constants


records = st.builds(
    MovingConstraint,
    st.integers(0, 2**32 - 1),
    comparisons,
    st.just(LINEAR) | places | places.map(lambda place: place | SHIFTED),
    st.lists(st.floats().map(lambda x: np.array([x, -x, 2.0])), max_size=4),
)


@given(st.lists(records, min_size=1, max_size=3))
def test_records_are_read_one_after_the_other(moving: list[MovingConstraint]) -> None:
    since, pin = np.array([5, -(2**63), 2**60]), np.array([EVERY, EVERY + 7, 3])
    motions = write_motions(moving, since, pin)
    for row, (motion, words) in enumerate(zip(motions, motions.view(np.int64), strict=True)):
        assert (words[M_SINCE], words[M_PIN]) == (since[row], pin[row])
        place = MOTION_WORDS
        for each in moving:
            word = words[place + R_HEAD]
            assert (channel_of(word), comparison_of(word)) == (each.channel, each.comparison)
            assert words[place + R_PROGRAM] == each.program
            constants = motion[place + R_CONSTANTS : place + length_of(word)]
            expected = [column[row] for column in each.constants]
            assert constants.tobytes() == np.array(expected).tobytes()
            place += length_of(word)
        assert place == len(motion)


def test_entries_without_moving_bounds_have_no_words() -> None:
    assert write_motions([], np.zeros(3, np.int64), np.zeros(3, np.int64)).shape == (3, 0)


@pytest.mark.parametrize(
    ("time_us", "pin", "expected"),
    [
        (17, EVERY, 17),
        (-3, EVERY, -3),
        # whole intervals of 5 µs since 2
        (17, EVERY + 5, 17),
        (16, EVERY + 5, 12),
        (2, EVERY + 5, 2),
        (1, EVERY + 5, -3),
        # pinned
        (17, 9, 9),
        (8, 9, 8),
    ],
)
def test_the_time_for_which_functions_are_evaluated(time_us: int, pin: int, expected: int) -> None:
    assert judged_at(np.int64(time_us), np.int64(2), np.int64(pin)) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((7, [1.0, 2.0, 3.0]), (7, [9.0, 2.0, 3.0]), True),
        ((7, [1.0, 2.0, 3.0]), (7, [1.0, 2.5, 3.0]), False),
        ((7, [1.0, 2.0, 3.0]), (8, [1.0, 2.0, 3.0]), False),
        ((7, [1.0]), (7, [4.0]), True),
        ((7, [1.0, math.nan]), (7, [4.0, math.nan]), True),
    ],
)
def test_functions_that_differ_in_what_is_added(
    one: tuple[int, list[float]], other: tuple[int, list[float]], expected: bool
) -> None:
    moving = [
        MovingConstraint(0, C_LESS, place | SHIFTED, [np.array([x]) for x in constants])
        for place, constants in (one, other)
    ]
    words = write_motions(moving, np.zeros(1, np.int64), np.full(1, EVERY))[0].view(np.int64)
    second = MOTION_WORDS + R_CONSTANTS + len(one[1])
    assert is_same_shift(words, MOTION_WORDS, second) == expected
