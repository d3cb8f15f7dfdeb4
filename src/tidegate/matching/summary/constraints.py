"""What an entry asks of an attribute, as intervals of floats and row patterns.

The value set of an attribute (`language/algebra/value_sets.py`) already has all its constraints
intersected. Each of its intervals becomes a `RangeTerm`, rounded outward; each string set the
narrowest patterns that are sound. ``exact`` says where the term holds what the constraint holds and
nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.language.algebra.intervals import END, Intervals, previous_value
from tidegate.language.algebra.value_sets import ValueSet
from tidegate.matching.summary.channels import DOMAINS, is_exact, rounded_down, rounded_up
from tidegate.matching.summary.row_patterns import patterns_of
from tidegate.matching.summary.tables import ChannelKind, RowPattern


class RangeTerm(NamedTuple):
    """The values of a kind from ``low`` to ``high``, both included."""

    kind: ChannelKind
    low: float
    high: float
    exact: bool


class PatternTerm(NamedTuple):
    """The strings that satisfy a row pattern."""

    pattern: RowPattern
    exact: bool


Constraint = tuple[RangeTerm | PatternTerm, ...]
"""The terms of one attribute, any of which satisfies it; each value is of one kind."""


def constraint_of(values: ValueSet) -> Constraint:
    """The terms of a value set.

    >>> from tidegate.language.filters import parse
    >>> (conjunction,) = parse("x > 1 and x <= 5").normal_form.conjunctions
    >>> constraint_of(conjunction.sets["x"])
    (RangeTerm(kind=<ChannelKind.NUMBER: 0>, low=1.0000000000000002, high=5.0, exact=True),)
    """
    found: dict[RowPattern, bool] = {}
    for strings in values.strings:
        for pattern, exact in patterns_of(strings):
            found[pattern] = found.get(pattern, True) and exact
    return (
        *_ranges(ChannelKind.NUMBER, values.numbers),
        *_ranges(ChannelKind.TIMESTAMP, values.times),
        *_ranges(ChannelKind.BOOLEAN, values.booleans),
        *[PatternTerm(pattern, exact) for pattern, exact in found.items()],
    )


def _ranges(kind: ChannelKind, intervals: Intervals) -> list[RangeTerm]:
    """The terms of disjoint intervals; those that meet after rounding are joined."""
    terms: list[RangeTerm] = []
    for first, end in intervals.spans:
        last = None if end is END else previous_value(end)
        low = rounded_down(first)
        high = DOMAINS[kind][1] if last is None else rounded_up(last)
        exact = _is_end(kind, low) and _is_end(kind, high)
        if terms and low <= terms[-1].high:
            terms[-1] = terms[-1]._replace(high=high, exact=False)
        else:
            terms.append(RangeTerm(kind, low, high, exact))
    return terms


def _is_end(kind: ChannelKind, bound: float) -> bool:
    """Whether a bound is no other value rounded: small enough, or an end of its kind."""
    return is_exact(bound) or bound in DOMAINS[kind]
