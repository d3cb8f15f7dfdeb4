"""The normal form of a filter: a disjunction of conjunctions, one value set for each attribute.

Rules. (1) The normal form matches the same events as the filter. (2) No conjunction is empty, and
none covers another. (3) Conjunctions whose union is one conjunction, so far as that is seen, are
joined. (4) With no work left (work.py), (1) and that none is surely empty still hold; what was not
compared until then stays side by side.

Theory of operation. A conjunction maps each attribute to the set of values that it may have:
`x > 1 and x <= 5` is one entry. *Open* predicates, whose operands are not constants (parameters,
`t`, variables), cannot be part of a set; they are kept beside the sets as they are. `or` inside
`and` is multiplied out. That can be exponential, so the parser bounds the number of disjuncts
(`Limits.disjuncts_max`); and disjunctions on a single attribute are joined to one value set before
they multiply, so that `a in (1, 2) and b in (3, 4)` in any spelling is one conjunction and not
four.

``disjuncts`` is the same without the algebra: predicates as they are written, for shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice, pairwise, product

from tidegate.language.algebra.intervals import (
    END,
    Endpoint,
    Intervals,
    Span,
    is_point,
    members,
    next_prefix,
    next_value,
    previous_value,
)
from tidegate.language.algebra.like import Glob
from tidegate.language.algebra.string_sets import StringSet
from tidegate.language.algebra.value_sets import ANYTHING, NOTHING, ValueSet, union
from tidegate.language.algebra.work import OutOfWorkError, spend
from tidegate.language.expressions import Constant, Environment, Expression, evaluate, leaves
from tidegate.language.syntax import (
    COMPLEMENT,
    And,
    Node,
    Operator,
    Or,
    Predicate,
    Truth,
    all_of,
    any_of,
)
from tidegate.language.values import Kind, Value

_GROUND = Environment()


def is_ground(expression: Expression) -> bool:
    """Whether an expression is made of constants alone, so that its value is known."""
    if type(expression) is Constant:
        return True
    return all(isinstance(leaf, Constant) for leaf in leaves(expression))


@dataclass(frozen=True)
class Conjunction:
    """The predicates of a conjunction, combined for each attribute.

    ``sets`` has the values that satisfy all predicates with constants, by attribute; ``open`` has
    the predicates whose operands are not known yet.
    """

    sets: Mapping[str, ValueSet]
    open: tuple[Predicate, ...] = ()

    @classmethod
    def of(cls, predicates: Iterable[Predicate]) -> Conjunction:
        """Combine predicates: for each attribute, the intersection of their value sets."""
        ground: dict[str, list[Predicate]] = {}
        open_predicates: list[Predicate] = []
        for predicate in predicates:
            if all(is_ground(operand) for operand in predicate.operands):
                ground.setdefault(predicate.attribute, []).append(predicate)
            else:
                open_predicates.append(predicate)
        sets = {name: _all_values(constraints) for name, constraints in ground.items()}
        return cls(sets, tuple(dict.fromkeys(open_predicates)))

    @cached_property
    def is_empty(self) -> bool:
        """Whether surely no event matches."""
        return any(values.is_empty for values in self.sets.values())

    def covers(self, other: Conjunction) -> bool:
        """Whether every event that matches ``other`` surely matches this one.

        Each attribute that this conjunction constrains must be constrained by ``other``, and at
        least as tightly: an event without the attribute would match only ``other``. An open
        predicate is covered only by an equal one.
        """
        spend(1 + len(self.sets) + len(self.open))
        if other.is_empty:
            return True
        if self.open and not self._open_set <= other._open_set:
            return False
        for name, values in self.sets.items():
            narrow = other.sets.get(name)
            if narrow is None or not narrow.within(values):
                return False
        return True

    def meets(self, other: Conjunction) -> bool:
        """Whether some event may match both."""
        spend(1 + len(self.sets))
        common = [name for name in self.sets if name in other.sets]
        return (
            not self.is_empty
            and not other.is_empty
            and all(self.sets[name].meets(other.sets[name]) for name in common)
        )

    @cached_property
    def size(self) -> int:
        """The number of its intervals, patterns and open predicates."""
        return sum(values.size for values in self.sets.values()) + len(self.open)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What equal conjunctions have in common, and others rarely."""
        return frozenset(self.sets.items()), self._open_set

    @cached_property
    def _open_set(self) -> frozenset[Predicate]:
        return frozenset(self.open)

    def intersect(self, other: Conjunction) -> Conjunction:
        """The conjunction of both."""
        sets = dict(self.sets)
        for name, values in other.sets.items():
            sets[name] = sets[name].intersect(values) if name in sets else values
        return Conjunction(sets, tuple(dict.fromkeys([*self.open, *other.open])))

    def join(self, other: Conjunction) -> Conjunction | None:
        """The conjunction that matches exactly what either matches; None if none is found.

        There is one if one of them covers the other, or if they differ in a single attribute:
        `a = 1 and b = 2` and `a = 1 and b = 3` are `a = 1 and b in (2, 3)`.
        """
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        if self._open_set != other._open_set or self.sets.keys() != other.sets.keys():
            return None
        # A lazy search: the second difference settles it, and value sets are slow to compare.
        different = (name for name in self.sets if not self.sets[name].equals(other.sets[name]))
        one_differs = len(self.sets) == 1 or len(list(islice(different, 2))) == 1
        return self.hull(other) if one_differs else None

    def hull(self, *others: Conjunction) -> Conjunction:
        """The smallest conjunction of value sets that covers this one and the others."""
        sets = {
            name: union([values, *(each.sets[name] for each in others)])
            for name, values in self.sets.items()
            if all(name in each.sets for each in others)
        }
        common = set(self.open).intersection(*(each.open for each in others))
        return Conjunction(sets, tuple(each for each in self.open if each in common))

    def to_node(self) -> Node:
        """The conjunction as the tree of a filter."""
        ground = [set_to_node(name, values) for name, values in sorted(self.sets.items())]
        return all_of([*ground, *self.open])


Comparison = tuple[Operator, Value]
"""An operator and the constant that an attribute is compared with."""


def _all_values(constraints: list[Predicate]) -> ValueSet:
    """The values that satisfy all of some predicates with constants, on one attribute."""
    comparisons = [
        (each.operator, each.operands[0].value)
        for each in constraints
        if len(each.operands) == 1 and isinstance(each.operands[0], Constant)
    ]
    if len(comparisons) == len(constraints):
        return values_of(comparisons)
    values = [ground_values(each) for each in constraints]
    return values[0].intersect(*values[1:])


def values_of(comparisons: Sequence[Comparison]) -> ValueSet:
    """The values that satisfy all of some comparisons."""
    between = numbers_between(comparisons)
    if between is not None:
        empty = between[0] >= between[1]
        return NOTHING if empty else ValueSet(numbers=Intervals(Kind.NUMBER, (between,)))
    values = [ValueSet.of(operator, [value]) for operator, value in comparisons]
    return values[0].intersect(*values[1:])


def numbers_between(comparisons: Sequence[Comparison]) -> Span | None:
    """As ``values_of``, for bounds on a number, which most constraints are; None for others.

    A shortcut past value sets, for millions of subscriptions. The span may be empty: then its low
    end is not below its high end.
    """
    low: float = -math.inf
    high: Endpoint = END
    for operator, value in comparisons:
        if type(value) is not float and type(value) is not int:
            return None
        match operator:
            case Operator.LESS:
                above: Endpoint = value
            case Operator.LESS_EQUAL:
                above = next_value(value)
            case Operator.GREATER_EQUAL:
                low, above = max(low, value), END
            case Operator.GREATER:
                following = next_value(value)
                if following is END:  # `> infinity`: the span would begin at END
                    return None
                low, above = max(low, following), END
            case Operator.EQUAL:
                low, above = max(low, value), next_value(value)
            case _:
                return None
        if high is END or (above is not END and above < high):
            high = above
    return low, high


def ground_values(predicate: Predicate) -> ValueSet:
    """The values that satisfy a predicate with constants."""
    operands = [evaluate(operand, _GROUND) for operand in predicate.operands]
    return ValueSet.of(predicate.operator, operands)


@dataclass(frozen=True)
class NormalForm:
    """A disjunction of conjunctions, none of which is found to cover another."""

    conjunctions: tuple[Conjunction, ...]

    @cached_property
    def keys(self) -> frozenset[object]:
        """The keys of its conjunctions."""
        return frozenset(each.key for each in self.conjunctions)

    @classmethod
    def of(cls, node: Node) -> NormalForm:
        """The normal form of a filter's tree."""
        match node:
            case Truth(value):
                return cls((Conjunction({}),) if value else ())
            case Or(parts):
                forms = [cls.of(part) for part in parts]
                return cls.joining(each for form in forms for each in form.conjunctions)
            case And(parts):
                plain = [desugared(part) if isinstance(part, Predicate) else part for part in parts]
                return cls._of_all(plain)
            case Predicate():
                return cls._of_all([desugared(node)])

    @classmethod
    def _of_all(cls, parts: list[Node]) -> NormalForm:
        """The normal form of a conjunction of parts.

        All plain predicates become one conjunction first. Then the disjunctions are multiplied with
        it one after the other; each product is joined at once, which keeps it small.
        """
        flat = [
            each for part in parts for each in (part.parts if isinstance(part, And) else [part])
        ]
        single = Conjunction.of(part for part in flat if isinstance(part, Predicate))
        rest = [cls.of(part) for part in flat if not isinstance(part, Predicate)]
        return reduce(cls.intersect, rest, cls.joining([single]))

    @classmethod
    def joining(
        cls, conjunctions: Iterable[Conjunction], joined: Iterable[Conjunction] = ()
    ) -> NormalForm:
        """The union of conjunctions, joined where possible; those in ``joined`` are so already."""
        kept = list(joined)
        for conjunction in conjunctions:
            if not conjunction.is_empty:
                _join_into(kept, conjunction)
        return cls(tuple(kept))

    def intersect(self, other: NormalForm) -> NormalForm:
        """The normal form of what both match: the product of their conjunctions."""
        return NormalForm.joining(
            a.intersect(b) for a in self.conjunctions for b in other.conjunctions
        )

    def to_node(self) -> Node:
        """The normal form as the tree of a filter."""
        return any_of(conjunction.to_node() for conjunction in self.conjunctions)


def _join_into(joined: list[Conjunction], current: Conjunction) -> None:
    """Add a conjunction to others, joined where possible, as far as the budget of work goes.

    It is tried with each of them. A join that changed it may be joined with one that was passed
    already, so the search starts over. Every join leaves one conjunction less, so there are at most
    as many restarts.
    """
    index = 0
    try:
        while index < len(joined):
            both = current.join(joined[index])
            if both is None:
                index += 1
                continue
            del joined[index]
            if both != current:
                current, index = both, 0
    except OutOfWorkError:
        pass
    joined.append(current)


def disjuncts(node: Node) -> list[tuple[Predicate, ...]]:
    """The filter as a list of conjunctions, in the order of the text.

    `between` becomes its two comparisons, and an `in` of one value an equality, so that filters
    that differ only in these spellings have the same predicates. Nothing else is simplified.
    """
    match node:
        case Truth(value):
            return [()] if value else []
        case Or(parts):
            return [each for part in parts for each in disjuncts(part)]
        case And(parts):
            return [
                tuple(predicate for conjunction in choice for predicate in conjunction)
                for choice in product(*(disjuncts(part) for part in parts))
            ]
        case Predicate():
            plain = desugared(node)
            return [(plain,)] if isinstance(plain, Predicate) else disjuncts(plain)


def desugared(predicate: Predicate) -> Node:
    """A predicate in terms of simpler ones: `between` as two comparisons, `in (a)` as `= a`."""
    name, operands = predicate.attribute, predicate.operands

    def compare(operator: Operator, operand: Expression) -> Predicate:
        return Predicate(name, operator, (operand,))

    match predicate.operator:
        case Operator.BETWEEN:
            low = compare(Operator.GREATER_EQUAL, operands[0])
            return all_of([low, compare(Operator.LESS_EQUAL, operands[1])])
        case Operator.NOT_BETWEEN:
            low = compare(Operator.LESS, operands[0])
            return any_of([low, compare(Operator.GREATER, operands[1])])
        case Operator.IN if len(operands) == 1:
            return compare(Operator.EQUAL, operands[0])
        case Operator.NOT_IN if len(operands) == 1:
            return compare(Operator.NOT_EQUAL, operands[0])
        case _:
            return predicate


def set_to_node(name: str, values: ValueSet) -> Node:
    """A value set written as constraints on an attribute."""
    if values == ANYTHING:
        return Predicate(name, Operator.PRESENT)
    ordered = [values.booleans, values.numbers, values.times]
    parts = [_intervals_to_node(name, each) for each in ordered if each.spans]
    parts += [_strings_to_node(name, each) for each in values.strings]
    return any_of(parts)


def _intervals_to_node(name: str, intervals: Intervals) -> Node:
    """Constraints for intervals: first single values, then ranges, each without a few values.

    A list of spans has many spellings; this is a short one: `x in (1, 2) or x > 5 and x != 7`.
    """
    listed: list[Value] = []
    parts: list[Node] = []
    for run in _runs(intervals.spans):
        if all(is_point(span) for span in run):
            listed += [span[0] for span in run]
        else:
            parts.append(_run_to_node(name, run, intervals.kind))
    if listed:
        parts.insert(0, _listed(name, listed, Operator.EQUAL, Operator.IN))
    return any_of(parts)


def _runs(spans: Iterable[Span]) -> list[list[Span]]:
    """Spans in runs: between two neighbours of one run, no more than a few values are missing."""
    runs: list[list[Span]] = []
    for span in spans:
        if runs and members((runs[-1][-1][1], span[0])) is not None:
            runs[-1].append(span)
        else:
            runs.append([span])
    return runs


def _run_to_node(name: str, run: list[Span], kind: Kind) -> Node:
    missing = [value for a, b in pairwise(run) for value in members((a[1], b[0])) or ()]
    whole = (run[0][0], run[-1][1])
    if not missing:
        return _span_to_node(name, whole, kind)
    gaps = _listed(name, missing, Operator.NOT_EQUAL, Operator.NOT_IN)
    return (
        gaps
        if Intervals(kind, (whole,)).is_full
        else all_of([_span_to_node(name, whole, kind), gaps])
    )


def _listed(name: str, values: list[Value], one: Operator, many: Operator) -> Node:
    operands = tuple(Constant(_tidy_number(value)) for value in values)
    return Predicate(name, one if len(operands) == 1 else many, operands)


def _span_to_node(name: str, span: Span, kind: Kind) -> Node:
    low, high = span
    # The span of a prefix is exactly [prefix, next_prefix).
    if kind is Kind.STRING and low and high == next_prefix(low):
        return Predicate(name, Operator.STARTS_WITH, (Constant(low),))
    first, _ = Intervals.full(kind).spans[0]
    bounds: list[Node] = []
    if high is not END:
        before = previous_value(high)
        bounds.append(_bound(name, Operator.LESS, high, Operator.LESS_EQUAL, before))
    if low != first or not bounds:
        before = previous_value(low)
        bounds.insert(0, _bound(name, Operator.GREATER_EQUAL, low, Operator.GREATER, before))
    return all_of(bounds)


def _bound(
    name: str, operator: Operator, value: Value, other: Operator, neighbour: Value | None
) -> Predicate:
    """A bound at ``value``, or with ``other`` at the value before it if that text is shorter.

    `x <= 9` is stored as `x < 9.000000000000002` (see intervals.py), and printed as it was written.
    """
    own = Constant(_tidy_number(value))
    if neighbour is not None:
        beside = Constant(_tidy_number(neighbour))
        if len(repr(beside.value)) < len(repr(own.value)):
            return Predicate(name, other, (beside,))
    return Predicate(name, operator, (own,))


def _tidy_number(value: Value) -> Value:
    """A whole float as the integer that equals it; every other value unchanged.

    `next_value` makes floats of integers, and `x in (1, 2)` should print as that.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _strings_to_node(name: str, strings: StringSet) -> Node:
    parts: list[Node] = []
    required = sorted(strings.required, key=str)
    implied = any(strings.spans == Intervals.starting_with(glob.prefix) for glob in required)
    if not (strings.spans.is_full or implied) or strings.is_plain:
        parts.append(_intervals_to_node(name, strings.spans))
    parts += [_glob_to_node(name, glob) for glob in required]
    parts += [_glob_to_node(name, glob, negated=True) for glob in sorted(strings.excluded, key=str)]
    return all_of(parts)


def _glob_to_node(name: str, glob: Glob, negated: bool = False) -> Predicate:
    middle = glob.literals
    if glob == Glob.around(after=glob.suffix):
        operator, text = Operator.ENDS_WITH, glob.suffix
    elif glob == Glob.around(middle=middle):
        operator, text = Operator.CONTAINS, middle
    else:
        operator, text = Operator.LIKE, str(glob)
    if negated:
        operator = COMPLEMENT[operator]
    return Predicate(name, operator, (Constant(text),))
