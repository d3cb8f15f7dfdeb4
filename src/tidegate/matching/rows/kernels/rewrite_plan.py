"""The format of rewrite plans: what to write into an entry when cells of its row change.

A plan is made once for a shape, the kinds of a row's cells and the slots that change
(update_plans.py), and then carried out for any row of that shape by a kernel. It is an array of
32-bit integers, because that is what a kernel can be handed without cost. Here is the only
declaration of its layout; the two ends use the constants and `encode_plan`.

    plan        width                       number of cells of a row
                kind × width                the kind each cell must have for the plan to fit; FLOAT
                                            stands for any number
                changes                     number of channels that get new bounds
                BOUND CHANGE × changes
                words                       number of words of the motion that get new values
                WORD CHANGE × words

    bound change, one for each channel; the new bounds satisfy all of its comparisons; `!=` is
                                alone, and its bounds are the outside of others
                BC_CHANNEL                  the channel
                BC_WHOLE                    1 if its values are integers: `x < 5` is then `x <= 4`
                BC_COMPARISONS              number of comparisons
                COMPARISON × comparisons

    comparison of the channel with a value computed from cells; those behind the row's, up to the
    width, are numbers of patterns, which whoever carries out the plan puts there
                CO_OPERATOR                 C_LESS and so on (programs.py)
                CO_CELLS                    number of cells that are constants of the program
                slot × cells                which cells of the row
                length                      of the program, in words
                code × length               the program; it uses neither `t` nor variables

    word change
                WC_WORD                     which word, counted from the begin of the motion
                WC_SLOT                     the cell whose value it gets
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.matching.arrays import I32

PLAN_WIDTH, PLAN_KINDS = range(2)
"""Where a plan has its width, and where the kinds begin."""

BC_CHANNEL, BC_WHOLE, BC_COMPARISONS, BOUND_CHANGE_WORDS = range(4)
"""What a bound change begins with, and how many words that is."""

CO_OPERATOR, CO_CELLS, COMPARISON_WORDS = range(3)
"""What a comparison begins with, and how many words that is."""

WC_WORD, WC_SLOT, WORD_CHANGE_WORDS = range(3)
"""The words of a word change, and how many there are."""

DONE, OTHER_KINDS, NOT_IN_PLACE, MOVED = range(4)
"""Outcomes of a plan: carried out; made for cells of other kinds; not possible in place; carried
out, but the motion has new constants, so that envelopes are still to be written."""

NO_PLAN: I32 = np.zeros(0, np.int32)
"""Stands for a change that cannot be written in place, or that has no plan yet."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison with a value that is computed from cells."""

    operator: int
    slots: Sequence[int]
    code: Sequence[int]


@dataclass(frozen=True, slots=True)
class BoundChange:
    """New bounds of a channel."""

    channel: int
    is_whole: bool
    comparisons: Sequence[Comparison]


@dataclass(frozen=True, slots=True)
class WordChange:
    """A new value of a word of the motion."""

    word: int
    slot: int


def encode_plan(
    kinds: Sequence[int], bounds: Sequence[BoundChange], words: Sequence[WordChange]
) -> I32:
    """A plan for rows with cells of some kinds."""
    # in the order of the table above; the kernel walks along it once, from the begin to the end
    plan = [len(kinds), *kinds, len(bounds)]
    for bound in bounds:
        plan += _bound_change(bound)
    plan.append(len(words))
    for word in words:
        plan += (word.word, word.slot)
    return np.array(plan, np.int32)


def _bound_change(change: BoundChange) -> Iterator[int]:
    yield from (change.channel, int(change.is_whole), len(change.comparisons))
    for each in change.comparisons:
        yield from (each.operator, len(each.slots), *each.slots, len(each.code), *each.code)
