"""Generated filters and events, aimed at the edges: bounds, kinds, absent values.

Few names and few values, so that constraints overlap; the values of an event are drawn from those
next to the constants of the filters under test. Hypothesis validates every new strategy object,
which takes longer than drawing from it; so the functions that build strategies are cached. No
strategy filters: each one builds only what fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product

from hypothesis import strategies as st

from tidegate.language.algebra.intervals import END, next_prefix, next_value, previous_value
from tidegate.language.algebra.like import escape
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Variable,
)
from tidegate.language.filters import Filter
from tidegate.language.syntax import (
    STRING_OPERATORS,
    Node,
    Operator,
    Predicate,
    Truth,
    all_of,
    any_of,
    expression_leaves,
)
from tidegate.language.values import Kind, Value, kind_of

NAMES = ["a", "b", "c.d"]
PARAMETERS = ["p", "q"]
VARIABLES = ["load", "mode"]

EDGE_NUMBERS: list[int | float] = [
    0, 1, 2, -1, 3, 10, 0.5, 1.5, -0.0, 1.0,
    2**53, 2**53 + 1, float(2**53), -(2**53) - 1, 2**63 - 1, -(2**63),
    5e-324, 1.7976931348623157e308, math.inf, -math.inf,
]  # fmt: skip
EDGE_STRINGS = ["", "a", "b", "ab", "ba", "aba", "abab", "a%", "_", "\\", "é", "\U0010ffff", "\0"]
EDGE_TIMES = [
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC),
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
]

numbers = st.sampled_from(EDGE_NUMBERS) | st.integers(-5, 5) | st.floats(allow_nan=False)
strings = st.sampled_from(EDGE_STRINGS) | st.text("ab", max_size=4)
times = st.sampled_from(EDGE_TIMES) | st.datetimes(
    datetime(2026, 1, 1),  # noqa: DTZ001 - the zone is drawn
    datetime(2026, 1, 3),  # noqa: DTZ001
    timezones=st.just(UTC),
)
values: st.SearchStrategy[Value] = st.one_of(numbers, strings, times, st.booleans())
globs = st.lists(
    st.sampled_from(["%", "_", "a", "b", "ab", escape("%"), escape("\\")]), max_size=5
).map("".join)

_COMPARISONS = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_EQUAL,
    Operator.GREATER,
    Operator.GREATER_EQUAL,
]
_PREFIXES_AND_SUFFIXES = [
    Operator.STARTS_WITH,
    Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.NOT_ENDS_WITH,
]
_SUBSTRINGS = [Operator.CONTAINS, Operator.NOT_CONTAINS]
_LIKES = [Operator.LIKE, Operator.NOT_LIKE]


@cache
def constants(kind: st.SearchStrategy[Value] = values) -> st.SearchStrategy[Expression]:
    return kind.map(Constant)


@cache
def expressions(*, open: bool = True) -> st.SearchStrategy[Expression]:
    """Numeric expressions; with ``open``, of parameters, variables and time too."""
    leaves: list[st.SearchStrategy[Expression]] = [numbers.map(Constant)]
    if open:
        leaves += [
            st.sampled_from(PARAMETERS).map(ParameterRef),
            st.sampled_from(VARIABLES).map(Variable),
            st.just(Elapsed()),
            st.just(Now()),
        ]

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
            inner.map(_negated),
            st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), st.tuples(inner)),
            st.builds(Call, st.sampled_from(sorted(CHOICES)), st.tuples(inner, inner)),
        )

    return st.recursive(st.one_of(leaves), extend, max_leaves=4)


def _negated(expression: Expression) -> Expression:
    """`-expression` as the parser reads it: `-infinity` is a constant."""
    if expression == Constant(math.inf):
        return Constant(-math.inf)
    return Negated(expression)


@cache
def functions_of_time() -> st.SearchStrategy[Expression]:
    """Numeric expressions of constants and `t`."""
    leaves = st.just(Elapsed()) | st.integers(-5, 5).map(Constant) | numbers.map(Constant)

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
            st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), st.tuples(inner)),
            st.builds(Call, st.sampled_from(sorted(CHOICES)), st.tuples(inner, inner)),
        )

    return st.recursive(leaves, extend, max_leaves=5)


@cache
def predicates(
    operand: st.SearchStrategy[Expression] | None = None,
    *,
    patterns: bool = True,
    without: frozenset[Operator] = frozenset(),
) -> st.SearchStrategy[Predicate]:
    """Predicates; without ``patterns``, only those for which covering is complete."""
    value = constants() if operand is None else operand
    text = st.tuples(strings.map(Constant))
    one, two = st.tuples(value), st.tuples(value, value)
    listed = st.lists(value, min_size=1, max_size=4).map(tuple)
    families: list[tuple[list[Operator], st.SearchStrategy[tuple[Expression, ...]]]] = [
        (_COMPARISONS, one),
        ([Operator.BETWEEN, Operator.NOT_BETWEEN], two),
        ([Operator.IN, Operator.NOT_IN], listed),
        (_PREFIXES_AND_SUFFIXES + (_SUBSTRINGS if patterns else []), text),
        ([Operator.PRESENT], st.just(())),
        (_LIKES if patterns else [], st.tuples(globs.map(Constant))),
    ]
    allowed = [([each for each in some if each not in without], of) for some, of in families]
    return st.one_of(
        [
            st.builds(Predicate, st.sampled_from(NAMES), st.sampled_from(operators), operands)
            for operators, operands in allowed
            if operators
        ]
    )


@cache
def typed_predicates(
    *, patterns: bool = True, without: frozenset[Operator] = frozenset()
) -> st.SearchStrategy[Predicate]:
    """Predicates that agree on the kind of each attribute, so that more of them overlap."""

    def of_kind(name: str, kind: st.SearchStrategy[Value]) -> st.SearchStrategy[Predicate]:
        other_kinds = frozenset() if kind is strings else STRING_OPERATORS
        fitting = predicates(constants(kind), patterns=patterns, without=without | other_kinds)
        return fitting.map(lambda each: Predicate(name, each.operator, each.operands))

    a, b, c = NAMES
    few_numbers = st.sampled_from(EDGE_NUMBERS) | st.integers(-2, 5)
    return of_kind(b, strings) | of_kind(a, few_numbers) | of_kind(c, st.sampled_from(EDGE_TIMES))


@cache
def nodes(leaf: st.SearchStrategy[Predicate] | None = None) -> st.SearchStrategy[Node]:
    """Trees as the parser builds them."""
    leaves: st.SearchStrategy[Node] = predicates() if leaf is None else leaf
    return st.recursive(
        leaves | st.booleans().map(Truth),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(all_of)
            | st.lists(inner, min_size=1, max_size=3).map(any_of)
        ),
        max_leaves=6,
    )


@cache
def conjunctions(leaf: st.SearchStrategy[Predicate] | None = None) -> st.SearchStrategy[Filter]:
    """Filters that are a conjunction of constants."""
    leaves = predicates() if leaf is None else leaf
    return st.lists(leaves, max_size=4).map(all_of).map(Filter)


filters = nodes().map(Filter)


def neighbours(value: Value) -> list[Value]:
    """A value and the values next to it."""
    near: list[Value] = [value]
    after, before = next_value(value), previous_value(value)
    if after is not END:
        near.append(after)
    if before is not None:
        near.append(before)
    if isinstance(value, str):
        near += [value + "a", "b" + value, value[1:], value[:-1], value * 2]
    if isinstance(value, datetime) and value.year == 2026:
        near += [value + timedelta(seconds=1)]
    return near


def strings_around(texts: Iterable[str]) -> list[str]:
    """Strings that start and end with some texts, or next to them, with others in between.

    Equality, order, prefix and suffix with these texts, and their complements, treat every other
    string like one of these.
    """
    ends = {"", *texts}
    starts = {near for end in ends for near in (end, next_value(end), next_prefix(end))} - {END}
    middles = ["", "\0", "\0\0", "~", "\0~", "\0\0~"]
    return [a + b + c for a in starts for b in middles for c in ends]


def aimed_values(*nodes: Node) -> list[Value]:
    """The constants of some filters, the values next to them, and one value of each kind."""
    aimed: list[Value] = [True, False, 7, 0.25, "x", EDGE_TIMES[0]]
    for node in nodes:
        for leaf in expression_leaves(node):
            if isinstance(leaf, Constant):
                aimed += neighbours(leaf.value)
    return aimed


def telling_values(*nodes: Node) -> list[Value]:
    """Values that decide about constraints without patterns.

    If two sets of values made of such constraints differ at all, they differ in one of these.
    """
    leaves = [leaf for node in nodes for leaf in expression_leaves(node)]
    constants = [leaf.value for leaf in leaves if isinstance(leaf, Constant)]
    firsts: list[Value] = [False, -math.inf, datetime.min.replace(tzinfo=UTC)]
    texts = [each for each in constants if isinstance(each, str)]
    return [*firsts, *aimed_values(*nodes), *strings_around(texts)]


def events_aimed_at(*nodes: Node) -> st.SearchStrategy[dict[str, Value]]:
    """Events with values at the bounds of some filters; some attributes are absent."""
    value = st.sampled_from(aimed_values(*nodes))
    return st.fixed_dictionaries({}, optional=dict.fromkeys([*NAMES, "other"], value))


def typed_events_aimed_at(*nodes: Node) -> st.SearchStrategy[dict[str, Value]]:
    """As ``events_aimed_at``, for filters of ``typed_predicates``."""
    a, b, c = NAMES
    aimed = aimed_values(*nodes)
    short = ["".join(chars) for size in range(5) for chars in product("ab", repeat=size)]
    kinds: dict[str, list[Value]] = {
        a: [each for each in aimed if kind_of(each) is Kind.NUMBER],
        b: [*(each for each in aimed if kind_of(each) is Kind.STRING), *short],
        c: [each for each in aimed if kind_of(each) is Kind.TIME],
    }
    return st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(values) for name, values in kinds.items()}
    )
