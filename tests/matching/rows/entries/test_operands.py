"""Operands as programs: which have one, what it is, and where its constants come from."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.language.expressions import Arithmetic, Elapsed, Expression, Slot, Variable
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import split
from tidegate.language.syntax import Predicate
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.operands import (
    code_of,
    is_program,
    moving_attributes,
    program_slots,
    write_program,
)
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER, STRING, TIME
from tidegate.matching.rows.kernels.motion import LINEAR, SHIFTED
from tidegate.matching.rows.kernels.programs import (
    P_ADD,
    P_CONSTANT,
    P_ELAPSED,
    P_END,
    P_MAX,
    P_MULTIPLY,
    P_NEGATE,
    P_SIN,
    P_VARIABLE,
    STACK_MAX,
    run_program,
)


def conjunction(text: str) -> tuple[Predicate, ...]:
    """A conjunction with slots in place of its constants."""
    (found,) = split(parse_filter(text))[0].disjuncts
    return found


def operand(text: str) -> Expression:
    """The right side of a comparison, with slots in place of its constants."""
    (predicate,) = conjunction(f"x < {text}")
    return predicate.operands[0]


def nested(depth: int) -> Expression:
    """An expression that has ``depth`` values at hand before it can add the first two."""
    found: Expression = Slot(0)
    for _ in range(depth - 1):
        found = Arithmetic("+", Slot(0), found)
    return found


# -- which operands have a program ------------------------------------------------------------


def test_what_an_attribute_is_compared_with_makes_it_move() -> None:
    found = conjunction("a < 3 + t and a > 1 and b > 2 and c = @load and d in (1, @load * 2)")
    assert moving_attributes(found) == {"a", "d"}


@pytest.mark.parametrize(
    ("text", "moves", "expected"),
    [
        ("3 + t", False, True),
        ("@load * 2", False, True),
        ("3", False, False),
        ("3", True, True),
        ("@load", False, False),  # it may be of any kind
        ("@load", True, False),
        ("now() + t", False, False),
    ],
)
def test_which_operands_become_programs(text: str, moves: bool, expected: bool) -> None:
    assert is_program(operand(text), [FLOAT], {}, moves=moves) is expected


def test_a_program_computes_with_numbers_only() -> None:
    moving = operand("3 + t")
    assert is_program(moving, [INTEGER], {}, moves=True)
    assert not is_program(moving, [STRING], {}, moves=True)
    assert not is_program(moving, [TIME], {}, moves=True)


def test_what_needs_too_deep_a_stack_has_no_program() -> None:
    assert is_program(nested(STACK_MAX), [FLOAT], {}, moves=True)
    assert not is_program(nested(STACK_MAX + 1), [FLOAT], {}, moves=True)
    assert code_of(nested(STACK_MAX)) is not None
    assert code_of(nested(STACK_MAX + 1)) is None


# -- what it is -------------------------------------------------------------------------------


def test_operands_stand_before_their_operation() -> None:
    channels = Channels()
    channels.variable("other")
    place = write_program(operand("max(2 * sin(t), -@load, 5)"), channels)
    assert channels.program[place:-1].tolist() == [
        P_CONSTANT, P_ELAPSED, P_SIN, P_MULTIPLY, P_VARIABLE, 1, P_NEGATE, P_MAX, P_CONSTANT,
        P_MAX, P_END,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["3 + 2 * t", "3 + t * 2", "3 + t", "t + 3"])
def test_a_line_needs_no_program(text: str) -> None:
    channels = Channels()
    assert write_program(operand(text), channels) == LINEAR
    assert channels.program.tolist() == [0]


@pytest.mark.parametrize("text", ["3 + 2 * sin(t)", "2 * sin(t) + 3"])
def test_what_is_added_is_no_part_of_the_program(text: str) -> None:
    channels = Channels()
    place = write_program(operand(text), channels)
    assert place & SHIFTED
    assert place ^ SHIFTED == write_program(operand("7 * sin(t)"), channels)


def test_what_is_added_comes_first() -> None:
    found = program_slots(operand("2 * sin(t / 5) + 3"))
    assert found == [2, 0, 1]


def test_equal_functions_share_a_program() -> None:
    channels = Channels()
    first, second, other = (
        write_program(operand(text), channels)
        for text in ("3 * sin(t)", "7 * sin(t)", "7 * cos(t)")
    )
    assert first == second != other


def test_constants_alone_have_a_program_too() -> None:
    assert code_of(Arithmetic("+", Slot(4), Slot(2))) == [P_CONSTANT, P_CONSTANT, P_ADD, P_END]
    assert code_of(Arithmetic("+", Slot(0), Elapsed())) is None
    assert code_of(Variable("load")) is None


def test_the_deepest_program_runs() -> None:
    code = code_of(nested(STACK_MAX))
    constants = np.arange(STACK_MAX, dtype=np.float64)
    program, stack = np.array(code, np.int32), np.empty(STACK_MAX)
    value = run_program(program, 0, constants, 0, 0.0, np.zeros((1, 1)), 0, stack)
    assert value == constants.sum()


# -- where its constants come from ------------------------------------------------------------


def test_a_line_takes_its_start_and_its_slope() -> None:
    a, b, t = Slot(4), Slot(2), Elapsed()
    assert program_slots(Arithmetic("+", a, Arithmetic("*", b, t))) == [4, 2]
    assert program_slots(Arithmetic("+", a, Arithmetic("*", t, b))) == [4, 2]
    assert program_slots(Arithmetic("+", a, t)) == [4, None]
    assert program_slots(Arithmetic("+", t, a)) == [4, None]


def test_constants_come_in_the_order_of_the_program() -> None:
    assert program_slots(Arithmetic("-", Arithmetic("*", Slot(3), Elapsed()), Slot(1))) == [3, 1]
