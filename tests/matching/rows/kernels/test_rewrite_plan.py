"""Plans are encoded as the table in rewrite_plan.py says."""

from __future__ import annotations

from tidegate.matching.rows.kernels.cell_kinds import FLOAT, TIME
from tidegate.matching.rows.kernels.programs import (
    C_GREATER,
    C_LESS,
    P_ADD,
    P_CONSTANT,
    P_END,
)
from tidegate.matching.rows.kernels.rewrite_plan import (
    BC_CHANNEL,
    BC_COMPARISONS,
    BC_WHOLE,
    BOUND_CHANGE_WORDS,
    CO_CELLS,
    CO_OPERATOR,
    COMPARISON_WORDS,
    PLAN_KINDS,
    PLAN_WIDTH,
    WC_SLOT,
    WC_WORD,
    WORD_CHANGE_WORDS,
    BoundChange,
    Comparison,
    WordChange,
    encode_plan,
)


def test_a_plan_is_read_by_the_offsets_of_its_layout() -> None:
    first = Comparison(C_LESS, [2, 0], [P_CONSTANT, P_CONSTANT, P_ADD, P_END])
    second = Comparison(C_GREATER, [1], [P_CONSTANT, P_END])
    plan = encode_plan(
        [FLOAT, TIME, FLOAT],
        [BoundChange(7, True, [first, second])],
        [WordChange(4, 2), WordChange(9, 0)],
    ).tolist()
    assert plan[PLAN_WIDTH] == 3
    assert plan[PLAN_KINDS : PLAN_KINDS + 3] == [FLOAT, TIME, FLOAT]
    place = PLAN_KINDS + 3
    assert plan[place] == 1
    place += 1
    assert plan[place + BC_CHANNEL] == 7
    assert plan[place + BC_WHOLE] == 1
    assert plan[place + BC_COMPARISONS] == 2
    place += BOUND_CHANGE_WORDS
    for each in (first, second):
        assert plan[place + CO_OPERATOR] == each.operator
        cells = plan[place + CO_CELLS]
        place += COMPARISON_WORDS
        assert plan[place : place + cells] == each.slots
        place += cells
        length = plan[place]
        assert plan[place + 1 : place + 1 + length] == each.code
        place += 1 + length
    assert plan[place] == 2
    place += 1
    words = [plan[place + WORD_CHANGE_WORDS * index :] for index in range(2)]
    assert [(each[WC_WORD], each[WC_SLOT]) for each in words] == [(4, 2), (9, 0)]
    assert len(words[-1]) == WORD_CHANGE_WORDS


def test_a_plan_may_change_nothing() -> None:
    assert encode_plan([], [], []).tolist() == [0, 0, 0]
