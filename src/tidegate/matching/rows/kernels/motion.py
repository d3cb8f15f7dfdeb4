"""The motion of an entry: the functions of time that its moving bounds follow.

All of it lies in one place in memory, as words of 64 bits, floats and integers mixed; readers have
a view of each kind. It begins with MOTION_WORDS words for the entry, and then has a record for each
constraint whose bound moves. Records have different lengths, so they are read one after the other:

    word         type    meaning
    M_SINCE      int     from when on `t` counts, microseconds; NO_TIME: `t` is always 0
    M_PIN        int     for which time the functions are evaluated, see below
    ------------ for each moving constraint, relative to its first word:
    R_HEAD       int     bits 0..31 channel, 32..39 comparison, 40.. number of constants
    R_PROGRAM    int     where its program begins (programs.py), | SHIFTED; or LINEAR
    R_CONSTANTS  float   the constants of the function, as many as the head says

The function of a constraint has one of three forms:

    R_PROGRAM          constants    value
    LINEAR             a, b         a + b * t, by far the most common, without running a program
    place | SHIFTED    a, c...      a + f(t), where the program computes f from c...
    place              c...         f(t)

SHIFTED exists because the two bounds of a range often differ in `a` alone (`x between :a + f(t) and
:b + f(t)`): f is then run once for both. `is_same_shift` compares the records.

Functions are evaluated for the time of the event, unless M_PIN says otherwise:

    M_PIN                  evaluated for
    EVERY                  the time of the event (Lazy)
    EVERY + interval_us    the last whole number of intervals since M_SINCE (Periodic)
    a time                 that time, but never later than that of the event (Cached)

So the mode of a subscription is one word, which pinning writes without touching anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.matching.arrays import F64, I64, Int
from tidegate.matching.rows.kernels.jit import inlined

M_SINCE, M_PIN, MOTION_WORDS = range(3)
"""The words that a motion begins with, and how many there are."""

R_HEAD, R_PROGRAM, R_CONSTANTS = range(3)
"""The words of a moving constraint's record; constants go on from R_CONSTANTS to its end."""

EVERY = 2**62
"""Greater than any time in microseconds; see the table above."""

LINEAR = -1
"""Stands in R_PROGRAM for the function `a + b * t`."""

SHIFTED = 1 << 40
"""Flag of R_PROGRAM: the first constant is added to the value of the program.

Test LINEAR first: -1 has all bits set.
"""

_CHANNEL_MASK = 0xFFFFFFFF
_COMPARISON_SHIFT, _COMPARISON_MASK = 32, 0xFF
_CONSTANTS_SHIFT = 40


@dataclass(frozen=True, slots=True)
class MovingConstraint:
    """A constraint with a moving bound, for many entries: a column for each constant."""

    channel: int
    comparison: int
    program: int
    constants: list[F64]


def write_motions(moving: Sequence[MovingConstraint], since: I64, pin: I64) -> F64:
    """The motions of many entries with the same moving constraints, a row for each entry."""
    if not moving:
        return np.zeros((len(since), 0))
    length = MOTION_WORDS + sum(R_CONSTANTS + len(each.constants) for each in moving)
    # all rows have the same records, so each word is written as a column
    motions = np.empty((len(since), length))
    words = motions.view(np.int64)
    words[:, M_SINCE], words[:, M_PIN] = since, pin
    place = MOTION_WORDS
    for each in moving:
        words[:, place + R_HEAD] = head(each.channel, each.comparison, len(each.constants))
        words[:, place + R_PROGRAM] = each.program
        place += R_CONSTANTS
        for column in each.constants:
            motions[:, place] = column
            place += 1
    return motions


def head(channel: int, comparison: int, constants: int) -> int:
    """The first word of a record."""
    return channel | comparison << _COMPARISON_SHIFT | constants << _CONSTANTS_SHIFT


@inlined
def channel_of(head: Int) -> Int:
    """The channel in a head."""
    return head & _CHANNEL_MASK


@inlined
def comparison_of(head: Int) -> Int:
    """The comparison in a head."""
    return (head >> _COMPARISON_SHIFT) & _COMPARISON_MASK


@inlined
def length_of(head: Int) -> Int:
    """The length of a record in words, its head included."""
    return R_CONSTANTS + (head >> _CONSTANTS_SHIFT)


@inlined
def judged_at(time_us: Int, since: Int, pin: Int) -> Int:
    """The time for which the functions of an entry are evaluated, for an event of ``time_us``."""
    if pin < EVERY:
        return min(time_us, pin)
    if pin == EVERY:
        return time_us
    # `%` rounds towards minus infinity, so events before ``since`` are floored as well
    return time_us - (time_us - since) % (pin - EVERY)


@inlined
def is_same_shift(words: I64, one: Int, other: Int) -> bool:
    """Whether two SHIFTED records differ in nothing but what is added.

    Constants are compared as integers, bit by bit: that is enough to be sure, and NaN equals
    itself.
    """
    same = bool(words[one + R_PROGRAM] == words[other + R_PROGRAM])
    if same:
        for word in range(R_CONSTANTS + 1, length_of(words[one])):
            same &= words[one + word] == words[other + word]
    return same
