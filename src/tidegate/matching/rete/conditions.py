"""What a conjunction asks of an event, cut into conditions on one attribute each.

A *step* is one or more predicates on one attribute; with the values of the parameters put in it is
a *condition*, which an alpha node tests. All bounds on an attribute make one step: an event that is
above one of them is rarely below the other, so the two tell much more together than each alone.

The steps of a conjunction are put in an order that depends on what they ask and not on the values
they ask with, so that a subscription keeps its order when a parameter changes. First comes what few
events satisfy and the network can look up, last what has to be evaluated at the moment of the
event. Constants come before parameters, because they are shared more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from tidegate.language.algebra.intervals import END, Intervals, next_prefix, next_value
from tidegate.language.algebra.intervals import Endpoint as Bound
from tidegate.language.algebra.like import Glob, GlobError
from tidegate.language.expressions import (
    Constant,
    Elapsed,
    Environment,
    Expression,
    Now,
    ParameterRef,
    Variable,
    evaluate,
    leaves,
    rebuild,
)
from tidegate.language.syntax import STRING_OPERATORS, Operator, Predicate
from tidegate.language.values import Kind, Value, kind_of

ValueKey = Value | tuple[bool]
"""A value as the key of a dictionary, where `1` and `true` must not be the same."""


def point(value: Value) -> ValueKey:
    """The key of a value.

    >>> point(1) == point(1.0), point(1) == point(True)
    (True, False)
    """
    return (value,) if type(value) is bool else value


@dataclass(frozen=True, slots=True)
class Points:
    """`=` and `in`: the attribute is one of some values."""

    attribute: str
    points: frozenset[ValueKey]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """`<`, `<=`, `>`, `>=` and `starts with`: a value from ``low`` on and before ``high``.

    Where ``high`` is None, nothing bounds it.
    """

    attribute: str
    kind: Kind
    low: Bound
    high: Bound | None


@dataclass(frozen=True, slots=True)
class PatternCondition:
    """`like`, `ends with` and `contains`, with a text that is a pattern."""

    attribute: str
    operator: Operator
    text: str


@dataclass(frozen=True, slots=True)
class OtherPredicate:
    """Any other predicate, without parameters that have a value; evaluated as it is written.

    ``origin`` is when its `t` is 0, and None where it has no `t`.
    """

    predicate: Predicate
    origin: int | None = None

    @property
    def attribute(self) -> str:
        return self.predicate.attribute


@dataclass(frozen=True, slots=True)
class NeverCondition:
    """What no event satisfies, because a parameter has no value or a value of a wrong kind."""

    attribute: str


Condition = Points | ValueRange | PatternCondition | OtherPredicate | NeverCondition


class StepClass(IntEnum):
    """What a step asks, in the order in which steps are taken."""

    POINTS = 0
    PATTERN = 1
    RANGE = 2
    """Bounds on both sides."""
    BOUND = 3
    """A bound on one side."""
    STILL = 4
    """What most events satisfy: `!=`, `is not null`, complements of patterns."""
    MOVING = 5
    """A function of `t`, `now()` or variables of the broker."""


_FIRST = {kind: Intervals.full(kind).spans[0][0] for kind in Kind}
_LOWER = frozenset({Operator.GREATER, Operator.GREATER_EQUAL, Operator.STARTS_WITH})
_UPPER = frozenset({Operator.LESS, Operator.LESS_EQUAL, Operator.STARTS_WITH})
_WAYS = {
    Operator.EQUAL: StepClass.POINTS,
    Operator.IN: StepClass.POINTS,
    Operator.LIKE: StepClass.PATTERN,
    Operator.ENDS_WITH: StepClass.PATTERN,
    Operator.CONTAINS: StepClass.PATTERN,
} | dict.fromkeys(_LOWER | _UPPER, StepClass.BOUND)


@dataclass(frozen=True, slots=True)
class ChainStep:
    """What a conjunction asks of an attribute at one place of its chain."""

    way: StepClass
    attribute: str
    predicates: tuple[Predicate, ...]
    parameters: frozenset[str] = frozenset()

    def condition(self, parameters: Mapping[str, Value], origin: int | None) -> Condition:
        """The condition with these values of the parameters; `t` counts from ``origin``."""
        if self.way is StepClass.MOVING:
            return _moving(self.predicates[0], parameters, origin)
        environment = Environment(parameters)
        if self.way in (StepClass.RANGE, StepClass.BOUND):
            return _band(self.attribute, self.predicates, environment)
        (predicate,) = self.predicates
        values = [evaluate(operand, environment) for operand in predicate.operands]
        if self.way is StepClass.POINTS:
            points = frozenset(point(value) for value in values if value is not None)
            return Points(self.attribute, points) if points else NeverCondition(self.attribute)
        if self.way is StepClass.PATTERN:
            return _pattern(self.attribute, predicate.operator, values[0])
        return _still(predicate, values)


def steps_of(conjunction: Iterable[Predicate]) -> list[ChainStep]:
    """The steps of a conjunction without `between`; of one way and attribute in a fixed order.

    >>> from tidegate.language.filters import parse
    >>> for step in steps_of(parse("x >= 1 and s != 'a' and x < :p").node.parts):
    ...     print(step.way.name, *step.predicates, sorted(step.parameters))
    RANGE x >= 1 x < :p ['p']
    STILL s != 'a' []
    """
    groups: dict[tuple[StepClass, str], list[Predicate]] = {}
    names: dict[Predicate, frozenset[str]] = {}
    for predicate in conjunction:
        way, parameters = _way_and_parameters(predicate)
        groups.setdefault((way, predicate.attribute), []).append(predicate)
        if parameters:
            names[predicate] = parameters
    steps: list[ChainStep] = []
    for (way, attribute), alike in groups.items():
        if way is StepClass.BOUND:
            operators = {each.operator for each in alike}
            both = not operators.isdisjoint(_LOWER) and not operators.isdisjoint(_UPPER)
            parameters = frozenset[str]().union(*(names[each] for each in alike if each in names))
            steps.append(
                ChainStep(StepClass.RANGE if both else way, attribute, tuple(alike), parameters)
            )
        else:
            if len(alike) > 1:
                alike = sorted(dict.fromkeys(alike), key=str)
            steps += [ChainStep(way, attribute, (p,), names.get(p, frozenset())) for p in alike]
    return steps


def _way_and_parameters(predicate: Predicate) -> tuple[StepClass, frozenset[str]]:
    found: list[Expression] = []
    for operand in predicate.operands:
        if type(operand) is not Constant:  # most are
            found += leaves(operand)
    if any(isinstance(leaf, (Elapsed, Now, Variable)) for leaf in found):
        way = StepClass.MOVING
    else:
        way = _WAYS.get(predicate.operator, StepClass.STILL)
    return way, frozenset(leaf.name for leaf in found if isinstance(leaf, ParameterRef))


def _band(
    attribute: str, predicates: tuple[Predicate, ...], environment: Environment
) -> ValueRange | NeverCondition:
    """The values that satisfy all of some bounds."""
    kind: Kind | None = None
    low: Bound = None
    high: Bound = END
    for predicate in predicates:
        value = evaluate(predicate.operands[0], environment)
        span = None if value is None else _span(predicate.operator, value)
        if value is None or span is None:
            return NeverCondition(attribute)
        if kind is None:
            kind, (low, high) = kind_of(value), span
        elif kind is kind_of(value):
            low, high = max(low, span[0]), min(high, span[1])
        else:
            return NeverCondition(attribute)
    if kind is None or low >= high:
        return NeverCondition(attribute)
    return ValueRange(attribute, kind, low, None if high is END else high)


def _span(operator: Operator, value: Value) -> tuple[Bound, Bound] | None:
    """The values that satisfy a bound, from one on and before another; None if none can."""
    match operator:
        case Operator.STARTS_WITH:
            return (value, next_prefix(value)) if isinstance(value, str) else None
        case Operator.GREATER_EQUAL:
            return value, END
        case Operator.LESS:
            return _FIRST[kind_of(value)], value
        case Operator.LESS_EQUAL:
            return _FIRST[kind_of(value)], next_value(value)
        case _:
            after = next_value(value)
            return None if after is END else (after, END)


def _pattern(
    attribute: str, operator: Operator, value: Value | None
) -> PatternCondition | NeverCondition:
    if not isinstance(value, str):
        return NeverCondition(attribute)
    if operator is Operator.LIKE:
        try:
            Glob.parse(value)
        except GlobError:
            return NeverCondition(attribute)
    return PatternCondition(attribute, operator, value)


def _still(predicate: Predicate, values: list[Value | None]) -> OtherPredicate | NeverCondition:
    constants = tuple(Constant(value) for value in values if value is not None)
    of_strings = predicate.operator in STRING_OPERATORS
    if len(constants) < len(values) or (of_strings and not isinstance(values[0], str)):
        return NeverCondition(predicate.attribute)
    return OtherPredicate(Predicate(predicate.attribute, predicate.operator, constants))


def _moving(
    predicate: Predicate, parameters: Mapping[str, Value], origin: int | None
) -> OtherPredicate | NeverCondition:
    def known(leaf: Expression) -> Expression:
        if isinstance(leaf, ParameterRef) and leaf.name in parameters:
            return Constant(parameters[leaf.name])
        return leaf

    operands = tuple(rebuild(operand, known) for operand in predicate.operands)
    left = {type(leaf) for operand in operands for leaf in leaves(operand)}
    if ParameterRef in left and predicate.operator is not Operator.IN:
        return NeverCondition(predicate.attribute)
    bound = Predicate(predicate.attribute, predicate.operator, operands)
    return OtherPredicate(bound, origin if Elapsed in left else None)


class AttributeRanks:
    """In which order the attributes of filters are asked for, as long as any filter names them.

    An attribute gets its rank when it is first named, and among those that are first named
    together the one that most filters name comes first. It keeps its rank, because equal filters
    must have equal chains.
    """

    def __init__(self) -> None:
        self._ranks: dict[str, int] = {}
        self._filters: dict[str, int] = {}
        self._given = 0

    def __len__(self) -> int:
        return len(self._ranks)

    def name(self, attributes: Iterable[tuple[str, ...]]) -> None:
        """Note what some new filters name."""
        new: dict[str, int] = {}
        for each in attributes:
            for name in each:
                new[name] = new.get(name, 0) + 1
        for name in sorted(new, key=lambda name: -new[name]):
            if name not in self._ranks:
                self._given += 1
                self._ranks[name] = self._given
            self._filters[name] = self._filters.get(name, 0) + new[name]

    def forget(self, attributes: tuple[str, ...]) -> None:
        """Note what a filter named that is gone."""
        for name in attributes:
            self._filters[name] -= 1
            if not self._filters[name]:
                del self._filters[name], self._ranks[name]

    def in_order(self, steps: list[ChainStep]) -> list[ChainStep]:
        """The steps of a conjunction in the order of its chain."""
        ranks = self._ranks
        return sorted(steps, key=lambda s: (s.way, bool(s.parameters), ranks[s.attribute]))
