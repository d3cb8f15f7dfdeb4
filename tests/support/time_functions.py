"""Functions of `t` and variables: generated ones, and the programs that they are compiled to."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import strategies as st

from support.strategies import VARIABLES, numbers
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Variable,
)
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import split
from tidegate.language.syntax import Node, Predicate
from tidegate.matching.arrays import F64
from tidegate.matching.rows.entries.blocks import Block
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.constraints import Compiler
from tidegate.matching.rows.kernels.program_intervals import NOTHING
from tidegate.matching.rows.store.cells import StringPool, encode

Interval = tuple[float, float]
Ranges = dict[str, Interval]
"""The range of each variable; one that is not named has no value."""

_OPERATORS = st.sampled_from("+-*/%")


@cache
def functions() -> st.SearchStrategy[Expression]:
    """Numeric expressions of constants, `t` and variables; not a bare variable, of any kind."""
    bare = st.one_of(
        st.just(Elapsed()),
        numbers.map(Constant),
        st.integers(-5, 5).map(Constant),
        st.floats(-10, 10).map(Constant),
    )
    leaves = bare | st.sampled_from(VARIABLES).map(Variable)
    return bare | _compound(st.recursive(leaves, _compound, max_leaves=5))


def _compound(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Arithmetic, _OPERATORS, inner, inner),
        st.builds(Negated, inner),
        st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), st.tuples(inner)),
        st.builds(Call, st.sampled_from(sorted(CHOICES)), several),
    )


@cache
def evolving_functions() -> st.SearchStrategy[Expression]:
    """Functions that mention `t`, lines among them."""
    t = st.just(Elapsed())
    constants = numbers.map(Constant)
    lines = st.builds(
        Arithmetic, st.just("+"), constants, st.builds(Arithmetic, st.just("*"), constants, t)
    )
    return st.one_of(
        t,
        lines,
        st.builds(Arithmetic, _OPERATORS, t, functions()),
        st.builds(Arithmetic, _OPERATORS, functions(), t),
    )


def function(text: str) -> Expression:
    """The function that a text says."""
    node = parse_filter(f"x < {text}")
    assert isinstance(node, Predicate)
    return node.operands[0]


def between(two: tuple[float, float]) -> Interval:
    """The interval between two numbers in any order."""
    return float(min(two)), float(max(two))


def inside(interval: Interval, value: float) -> float:
    """The value of an interval that is nearest to a number."""
    return min(max(float(value), interval[0]), interval[1])


ranges: st.SearchStrategy[Ranges] = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(VARIABLES, st.tuples(numbers, numbers).map(between))
)


def block_of(node: Node, channels: Channels) -> Block:
    """The entry of a conjunction without parameters."""
    shape, filled = split(node)
    pool = StringPool()
    row = [encode(leaf.value, pool) for leaf in filled if isinstance(leaf, Constant)]
    cells = np.array([[cell for _, cell in row]], np.int64)
    (block,) = Compiler(channels, pool).blocks(shape, tuple(kind for kind, _ in row), cells)
    return block


def range_rows(ranges: Ranges, channels: Channels) -> F64:
    """The least and the greatest value of each variable, as the kernels take them."""
    rows = np.repeat([[NOTHING[0]], [NOTHING[1]]], max(1, len(channels.variables)), axis=1)
    for name, number in channels.variables.items():
        rows[:, number] = ranges.get(name, NOTHING)
    return rows
