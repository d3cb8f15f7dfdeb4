"""Value sets: the values, of any kind, that satisfy a conjunction of constraints on one attribute.

Rule. `is_empty` and `within` say yes, and `meets` says no, only if they are sure.

Numbers, timestamps and booleans are intervals and exact. Strings are a union of string sets, exact
but for patterns (see string_sets.py): a string set is found within a union of several only if each
of its spans is within one of them. Where the budget of work is used up (work.py), string sets are
left side by side instead of joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from tidegate.language.algebra.intervals import Intervals
from tidegate.language.algebra.like import GlobError
from tidegate.language.algebra.string_sets import StringSet
from tidegate.language.algebra.work import OutOfWorkError, spend
from tidegate.language.syntax import STRING_OPERATORS, Operator
from tidegate.language.values import Kind, Value, kind_of

_NO_BOOLEANS = Intervals(Kind.BOOLEAN)
_NO_NUMBERS = Intervals(Kind.NUMBER)
_NO_TIMES = Intervals(Kind.TIME)
_JOINED_MAX = 16
"""Up to this many string sets with patterns are compared pair by pair, to join them."""


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The values that an attribute may have.

    >>> cheap = ValueSet.of(Operator.LESS, [10])
    >>> cheap.contains(9.5), cheap.contains("9.5")
    (True, False)
    """

    booleans: Intervals = _NO_BOOLEANS
    numbers: Intervals = _NO_NUMBERS
    times: Intervals = _NO_TIMES
    strings: tuple[StringSet, ...] = ()

    @classmethod
    def of(cls, operator: Operator, operands: Sequence[Value | None]) -> ValueSet:
        """The values that satisfy `operator operands`; None is an undefined operand."""
        match operator:
            case Operator.PRESENT:
                return ANYTHING
            case Operator.IN:
                return cls._any_of(operands)
            case Operator.NOT_IN:
                return cls._none_of(operands)
            case Operator.BETWEEN:
                low, high = operands
                above = cls._one(Operator.GREATER_EQUAL, low)
                return above.intersect(cls._one(Operator.LESS_EQUAL, high))
            case Operator.NOT_BETWEEN:
                low, high = operands
                return cls._one(Operator.LESS, low).union(cls._one(Operator.GREATER, high))
            case _:
                return cls._one(operator, operands[0])

    @classmethod
    def _one(cls, operator: Operator, operand: Value | None) -> ValueSet:
        if operand is None:
            return NOTHING
        if isinstance(operand, str):
            try:
                strings = StringSet.of(operator, operand)
            except GlobError:
                return NOTHING
            return cls(strings=() if strings.is_empty else (strings,))
        if operator in STRING_OPERATORS:
            return NOTHING
        # Only the kind of the operand: `x != 1` holds for no string.
        values = Intervals.of(operator, operand)
        match kind_of(operand):
            case Kind.BOOLEAN:
                return cls(booleans=values)
            case Kind.NUMBER:
                return cls(numbers=values)
            case _:
                return cls(times=values)

    @classmethod
    def _any_of(cls, operands: Sequence[Value | None]) -> ValueSet:
        """The values of `in`, which may be of several kinds."""
        by_kind: dict[Kind, list[Value]] = {kind: [] for kind in Kind}
        for operand in operands:
            if operand is not None:
                by_kind[kind_of(operand)].append(operand)
        points = {kind: Intervals.points(kind, values) for kind, values in by_kind.items()}
        strings = points[Kind.STRING]
        return cls(
            points[Kind.BOOLEAN],
            points[Kind.NUMBER],
            points[Kind.TIME],
            (StringSet(strings),) if strings.spans else (),
        )

    @classmethod
    def _none_of(cls, operands: Sequence[Value | None]) -> ValueSet:
        """The values of `not in`; a value must be of the kind of every operand, so of one kind."""
        kinds = {None if each is None else kind_of(each) for each in operands}
        if None in kinds or len(kinds) > 1:
            return NOTHING
        listed = cls.of(Operator.IN, operands)
        match kinds.pop():
            case Kind.BOOLEAN:
                return cls(booleans=listed.booleans.complement())
            case Kind.NUMBER:
                return cls(numbers=listed.numbers.complement())
            case Kind.TIME:
                return cls(times=listed.times.complement())
            case _:
                return cls(strings=(StringSet(listed.strings[0].spans.complement()),))

    @property
    def size(self) -> int:
        """The number of its intervals and patterns."""
        others = len(self.numbers.spans) + len(self.times.spans) + len(self.booleans.spans)
        return others + sum(each.size for each in self.strings)

    @property
    def is_empty(self) -> bool:
        """Whether surely no value is in the set."""
        return not (self.numbers.spans or self.strings or self.times.spans or self.booleans.spans)

    def contains(self, value: Value) -> bool:
        """Whether a value is in the set."""
        match kind_of(value):
            case Kind.BOOLEAN:
                return self.booleans.contains(value)
            case Kind.NUMBER:
                return self.numbers.contains(value)
            case Kind.TIME:
                return self.times.contains(value)
            case Kind.STRING:
                return any(each.contains(str(value)) for each in self.strings)

    def intersect(self, *others: ValueSet) -> ValueSet:
        """The values in all of the sets."""
        if not others:
            return self
        return ValueSet(
            self.booleans.intersect(*[each.booleans for each in others]),
            self.numbers.intersect(*[each.numbers for each in others]),
            self.times.intersect(*[each.times for each in others]),
            self._common_strings(others) if self.strings else (),
        )

    def _common_strings(self, others: tuple[ValueSet, ...]) -> tuple[StringSet, ...]:
        common = [
            strings[0].intersect(*strings[1:])
            for strings in product(self.strings, *(each.strings for each in others))
        ]
        return _joined([each for each in common if not each.is_empty])

    def union(self, other: ValueSet) -> ValueSet:
        """The values in either set."""
        return union([self, other])

    def meets(self, other: ValueSet) -> bool:
        """Whether some value may be in both sets."""
        return (
            any(a.meets(b) for a in self.strings for b in other.strings)
            or self.numbers.meets(other.numbers)
            or self.times.meets(other.times)
            or self.booleans.meets(other.booleans)
        )

    def within(self, other: ValueSet) -> bool:
        """Whether every value of this set is surely in the other."""
        return self is other or (
            self.numbers.within(other.numbers)
            and self.booleans.within(other.booleans)
            and self.times.within(other.times)
            and all(_within_one_of(each, other.strings) for each in self.strings)
        )

    def equals(self, other: ValueSet) -> bool:
        """Whether each set is surely within the other."""
        return self == other or (self.within(other) and other.within(self))


def _within_one_of(strings: StringSet, others: tuple[StringSet, ...]) -> bool:
    """Whether a string set lies in the union of others, each of its spans in one of them."""
    if len(others) == 1 and strings.is_plain and others[0].is_plain:
        return strings.spans.within(others[0].spans)
    # Span by span: each may be within another set, which the set as a whole would not be.
    return all(
        any(replace(strings, spans=Intervals(Kind.STRING, (span,))).within(o) for o in others)
        for span in strings.spans.spans
    )


def _joined(sets: Sequence[StringSet]) -> tuple[StringSet, ...]:
    """String sets with those joined whose union is a single set, in a fixed order.

    Very many sets with patterns are left side by side: comparing each pair would take too long,
    and they mean the same.
    """
    plain = [each.spans for each in sets if each.is_plain]
    joined = [StringSet(Intervals(Kind.STRING).union(*plain))] if plain else []
    patterns = dict.fromkeys(each for each in sets if not each.is_plain)
    side_by_side = [*joined, *patterns]
    if len(patterns) <= _JOINED_MAX:
        with suppress(OutOfWorkError):
            side_by_side = _joined_pairs(joined, patterns)
    if len(side_by_side) > 1:
        side_by_side.sort(key=StringSet.sort_key)
    return tuple(side_by_side)


def _joined_pairs(joined: list[StringSet], sets: Iterable[StringSet]) -> list[StringSet]:
    """String sets with each of ``sets`` joined where possible, pair by pair."""
    joined = joined[:]
    for each in sets:
        current = each
        for other in joined[:]:
            spend()
            both = current.union(other)
            if both is not None:
                joined.remove(other)
                current = both
        joined.append(current)
    return joined


NOTHING = ValueSet()
ANYTHING = ValueSet(
    Intervals.full(Kind.BOOLEAN),
    Intervals.full(Kind.NUMBER),
    Intervals.full(Kind.TIME),
    (StringSet(),),
)


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """The values in any of the sets."""
    all_sets = list(sets)
    return ValueSet(
        _NO_BOOLEANS.union(*(each.booleans for each in all_sets)),
        _NO_NUMBERS.union(*(each.numbers for each in all_sets)),
        _NO_TIMES.union(*(each.times for each in all_sets)),
        _joined([strings for each in all_sets for strings in each.strings]),
    )
