"""Conditions: a conjunction as a chain of steps, each a test of one attribute.

A *step* is one or more predicates of a conjunction on one attribute; with the values of the
parameters it is a *condition*, which an alpha node tests. All bounds on an attribute are one step:
about half of all events are above a typical low bound, so each bound alone would let most events
pass, and the two together few.

Steps are sorted by what they test and not by the values that they test with. So a subscription
keeps its chain when a parameter changes, and equal filters have equal chains, whose joins they
share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from tidegate.language.algebra.intervals import END, Endpoint, Intervals, next_prefix, next_value
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
"""A value as a dictionary key; a boolean is wrapped, because `1 == True` in Python."""


def value_key(value: Value) -> ValueKey:
    """The dictionary key of a value.

    >>> value_key(1) == value_key(1.0), value_key(1) == value_key(True)
    (True, False)
    """
    return (value,) if type(value) is bool else value


@dataclass(frozen=True, slots=True)
class Points:
    """`=` and `in`: the attribute has one of some values."""

    attribute: str
    points: frozenset[ValueKey]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """`<`, `<=`, `>`, `>=` and `starts with`: `low <= value < high`, of one kind.

    ``high`` is None if there is no upper bound.
    """

    attribute: str
    kind: Kind
    low: Endpoint
    high: Endpoint | None


@dataclass(frozen=True, slots=True)
class PatternCondition:
    """`like`, `ends with` and `contains`, with a text that is a valid pattern."""

    attribute: str
    operator: Operator
    text: str


@dataclass(frozen=True, slots=True)
class OtherPredicate:
    """Any other predicate, with the parameters' values; evaluated at each event as it is written.

    ``origin_us`` is the time from which its `t` counts; None if it has no `t`, so that such
    predicates are equal whenever their subscriptions began.
    """

    predicate: Predicate
    origin_us: int | None = None

    @property
    def attribute(self) -> str:
        return self.predicate.attribute


@dataclass(frozen=True, slots=True)
class NeverCondition:
    """A condition that no event meets: a parameter has no value, or one of a wrong kind."""

    attribute: str


Condition = Points | ValueRange | PatternCondition | OtherPredicate | NeverCondition


class StepClass(IntEnum):
    """The classes of steps, in the order of the chain.

    First come conditions that few events meet and that are found by a lookup, because an event is
    not followed beyond a condition that it does not meet; last come those that must be evaluated.
    """

    POINTS = 0
    PATTERN = 1
    RANGE = 2
    """Bounds on both sides."""
    BOUND = 3
    """A bound on one side."""
    UNSELECTIVE = 4
    """Conditions that most events meet: `!=`, `is not null`, complements of patterns."""
    EVOLVING = 5
    """Functions of `t`, `now()` or variables of the broker."""


_FIRST = {kind: Intervals.full(kind).spans[0][0] for kind in Kind}
"""The smallest value of each kind."""
_LOWER = frozenset({Operator.GREATER, Operator.GREATER_EQUAL, Operator.STARTS_WITH})
_UPPER = frozenset({Operator.LESS, Operator.LESS_EQUAL, Operator.STARTS_WITH})
_STEP_CLASSES = {
    Operator.EQUAL: StepClass.POINTS,
    Operator.IN: StepClass.POINTS,
    Operator.LIKE: StepClass.PATTERN,
    Operator.ENDS_WITH: StepClass.PATTERN,
    Operator.CONTAINS: StepClass.PATTERN,
} | dict.fromkeys(_LOWER | _UPPER, StepClass.BOUND)


@dataclass(frozen=True, slots=True)
class ChainStep:
    """The predicates of a conjunction that are tested together; several only if they are bounds."""

    step_class: StepClass
    attribute: str
    predicates: tuple[Predicate, ...]
    parameters: frozenset[str] = frozenset()

    def condition(self, parameters: Mapping[str, Value], origin_us: int | None) -> Condition:
        """The condition with these values of the parameters; `t` counts from ``origin_us``."""
        if self.step_class is StepClass.EVOLVING:
            return _evolving_condition(self.predicates[0], parameters, origin_us)
        environment = Environment(parameters)
        if self.step_class in (StepClass.RANGE, StepClass.BOUND):
            return _range_condition(self.attribute, self.predicates, environment)
        (predicate,) = self.predicates
        values = [evaluate(operand, environment) for operand in predicate.operands]
        if self.step_class is StepClass.POINTS:
            # A value of `in` that is undefined is left out; the others can still be met.
            points = frozenset(value_key(value) for value in values if value is not None)
            return Points(self.attribute, points) if points else NeverCondition(self.attribute)
        if self.step_class is StepClass.PATTERN:
            return _pattern_condition(self.attribute, predicate.operator, values[0])
        return _unselective_condition(predicate, values)


def steps_of(conjunction: Iterable[Predicate]) -> list[ChainStep]:
    """The steps of a conjunction without `between`.

    Steps of the same class and attribute are in the order of their texts, without repetition, so
    that equal conjunctions have equal steps.

    >>> from tidegate.language.filters import parse
    >>> for step in steps_of(parse("x >= 1 and s != 'a' and x < :p").node.parts):
    ...     print(step.step_class.name, *step.predicates, sorted(step.parameters))
    RANGE x >= 1 x < :p ['p']
    UNSELECTIVE s != 'a' []
    """
    groups: dict[tuple[StepClass, str], list[Predicate]] = {}
    names: dict[Predicate, frozenset[str]] = {}
    for predicate in conjunction:
        step_class, parameters = _class_and_parameters(predicate)
        groups.setdefault((step_class, predicate.attribute), []).append(predicate)
        if parameters:
            names[predicate] = parameters
    steps: list[ChainStep] = []
    for (step_class, attribute), group in groups.items():
        if step_class is StepClass.BOUND:
            operators = {predicate.operator for predicate in group}
            both = not operators.isdisjoint(_LOWER) and not operators.isdisjoint(_UPPER)
            parameters = frozenset[str]().union(*(names[p] for p in group if p in names))
            bound_class = StepClass.RANGE if both else StepClass.BOUND
            steps.append(ChainStep(bound_class, attribute, tuple(group), parameters))
        else:
            if len(group) > 1:
                group = sorted(dict.fromkeys(group), key=str)
            steps += [
                ChainStep(step_class, attribute, (p,), names.get(p, frozenset())) for p in group
            ]
    return steps


def _class_and_parameters(predicate: Predicate) -> tuple[StepClass, frozenset[str]]:
    """The class of a predicate's step, and the names of its parameters."""
    found: list[Expression] = []
    for operand in predicate.operands:
        if type(operand) is not Constant:  # most are
            found += leaves(operand)
    if any(isinstance(leaf, (Elapsed, Now, Variable)) for leaf in found):
        step_class = StepClass.EVOLVING
    else:
        step_class = _STEP_CLASSES.get(predicate.operator, StepClass.UNSELECTIVE)
    return step_class, frozenset(leaf.name for leaf in found if isinstance(leaf, ParameterRef))


def _range_condition(
    attribute: str, predicates: tuple[Predicate, ...], environment: Environment
) -> ValueRange | NeverCondition:
    """The condition that all of some bounds hold: the intersection of their spans."""
    kind: Kind | None = None
    low: Endpoint = None
    high: Endpoint = END
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
            return NeverCondition(attribute)  # no value is of two kinds
    if kind is None or low >= high:
        return NeverCondition(attribute)
    return ValueRange(attribute, kind, low, None if high is END else high)


def _span(operator: Operator, value: Value) -> tuple[Endpoint, Endpoint] | None:
    """The values that satisfy a bound, as `[low, high)`; None if no value does.

    Every value but the last of its kind has a next one, so `<=` and `>` need no flags.
    """
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


def _pattern_condition(
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


def _unselective_condition(
    predicate: Predicate, values: list[Value | None]
) -> OtherPredicate | NeverCondition:
    # An undefined value satisfies nothing, and a complement of a pattern needs a string.
    constants = tuple(Constant(value) for value in values if value is not None)
    needs_string = predicate.operator in STRING_OPERATORS
    if len(constants) < len(values) or (needs_string and not isinstance(values[0], str)):
        return NeverCondition(predicate.attribute)
    return OtherPredicate(Predicate(predicate.attribute, predicate.operator, constants))


def _evolving_condition(
    predicate: Predicate, parameters: Mapping[str, Value], origin_us: int | None
) -> OtherPredicate | NeverCondition:
    def bind(leaf: Expression) -> Expression:
        if isinstance(leaf, ParameterRef) and leaf.name in parameters:
            return Constant(parameters[leaf.name])
        return leaf

    operands = tuple(rebuild(operand, bind) for operand in predicate.operands)
    leaf_types = {type(leaf) for operand in operands for leaf in leaves(operand)}
    # `in` is satisfied by any of its values, so one without a value does no harm there.
    if ParameterRef in leaf_types and predicate.operator is not Operator.IN:
        return NeverCondition(predicate.attribute)
    bound = Predicate(predicate.attribute, predicate.operator, operands)
    return OtherPredicate(bound, origin_us if Elapsed in leaf_types else None)


class AttributeRanks:
    """The order in which chains test attributes, as far as the classes of steps leave it open.

    An attribute gets its rank when a filter first names it; of those that are first named together,
    the one that most filters name comes first, because its conditions are shared most. It keeps the
    rank as long as any filter names it: equal filters must have equal chains whenever they come.
    """

    def __init__(self) -> None:
        self._ranks: dict[str, int] = {}
        self._filter_counts: dict[str, int] = {}
        self._last_rank = 0

    def add(self, attributes: Iterable[tuple[str, ...]]) -> None:
        """Count the attributes of new filters, given for each filter."""
        new: dict[str, int] = {}
        for names in attributes:
            for name in names:
                new[name] = new.get(name, 0) + 1
        # The sort is stable: names in equally many filters stay in the order of the filters' texts.
        for name in sorted(new, key=lambda name: -new[name]):
            if name not in self._ranks:
                self._last_rank += 1
                self._ranks[name] = self._last_rank
            self._filter_counts[name] = self._filter_counts.get(name, 0) + new[name]

    def remove(self, attributes: tuple[str, ...]) -> None:
        """Discount the attributes of a removed filter."""
        for name in attributes:
            self._filter_counts[name] -= 1
            if not self._filter_counts[name]:
                del self._filter_counts[name], self._ranks[name]

    def in_order(self, steps: list[ChainStep]) -> list[ChainStep]:
        """The steps of a conjunction in the order of its chain.

        In a class, constants come before parameters: they are shared more often, and what is
        further up in a chain is shared by more of them.
        """
        ranks = self._ranks
        return sorted(steps, key=lambda s: (s.step_class, bool(s.parameters), ranks[s.attribute]))
