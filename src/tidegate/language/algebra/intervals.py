"""Sets of values of one ordered kind, as disjoint intervals.

Theory of operation. Every kind is a discrete set: each value but the last has a next one, which is
the next float or 64-bit integer, the next microsecond, the same string with a NUL appended. So
`x <= 10` is `x < next_value(10)`, and every interval can be written half open, as `[low, high)`.
That saves the four cases of open and closed ends in each operation, and makes the form unique:
`x > 1` and `x >= 1.0000000000000002` are the same interval, touching intervals can be joined, and
two sets are equal exactly when their tuples of spans are. `high` is END where there is no bound.

Rule. The spans of a set are ascending, not empty, and do not touch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import Any

from tidegate.language.algebra.work import spend
from tidegate.language.syntax import Operator
from tidegate.language.values import INT_MAX, INT_MIN, Kind, Value, kind_of


@total_ordering
class _End:
    """The type of END, which is greater than every value of every kind."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __gt__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "END"


END = _End()

# A value, or END. `Any`, because no type says that two values of a union are of the same kind and
# so can be compared.
Endpoint = Any
Span = tuple[Endpoint, Endpoint]

_FIRST: dict[Kind, Value] = {
    Kind.BOOLEAN: False,
    Kind.NUMBER: -math.inf,
    Kind.STRING: "",
    Kind.TIME: datetime.min.replace(tzinfo=UTC),
}
_LAST_TIME = datetime.max.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MEMBERS_MAX = 16
"""A span of no more values is listed one by one, as `in (...)` or `not in (...)`."""
_DENSE = 2**52
"""Below this, there is a float between any two integers; above 2**53 not every integer is one."""


def next_value(value: Value) -> Endpoint:
    """The smallest value of the same kind that is greater, or END.

    >>> next_value(1), next_value(2**53), next_value("a"), next_value(True)
    (1.0000000000000002, 9007199254740993, 'a\\x00', END)
    """
    if (type(value) is float or type(value) is int) and -_DENSE < value < _DENSE:
        return math.nextafter(value, math.inf)  # the usual case; the next number is a float
    if isinstance(value, bool):
        return END if value else True
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, datetime):
        return END if value == _LAST_TIME else value + _MICROSECOND
    if value == math.inf:
        return END
    return _number_after(value, INT_MIN, INT_MAX)


def _number_after(value: float, int_min: int, int_max: int) -> float:
    """The smallest number greater than ``value``: a float, or an integer from int_min to int_max.

    Floats and 64-bit integers are one kind. Above 2**53 floats are sparse, and the next number
    after 2**53 is an integer that no float equals. ``float(value)`` may round an integer up; then
    that float is itself greater and the first candidate.
    """
    as_float = float(value)
    following = as_float if as_float > value else math.nextafter(as_float, math.inf)
    if math.isinf(value):
        return following
    whole = max(int_min, math.floor(value) + 1)
    return whole if whole < following and whole <= int_max else following


def previous_value(value: Value) -> Value | None:
    """The greatest value of the same kind that is smaller; None if there is no such value.

    Strings mostly have none: between 'a' and 'b' are 'aa', 'aaa', and so on without end.
    """
    if isinstance(value, bool):
        return False if value else None
    if isinstance(value, str):
        return value[:-1] if value.endswith("\0") else None
    if isinstance(value, datetime):
        return None if value == _FIRST[Kind.TIME] else value - _MICROSECOND
    if value == -math.inf:
        return None
    return -_number_after(-value, -INT_MAX, -INT_MIN)  # mirrored, with the mirrored integers


def next_prefix(prefix: str) -> Endpoint:
    """The smallest string greater than all that start with ``prefix``, or END.

    >>> next_prefix("ab"), next_prefix("")
    ('ac', END)
    """
    # The last character plus one; after the last code point, that of the character before it. The
    # surrogates, 0xD800 to 0xDFFF, are not characters and are skipped.
    while prefix:
        code = ord(prefix[-1]) + 1
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if code == 0xD800 else code)
        prefix = prefix[:-1]
    return END


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set of values of one kind: disjoint spans, ascending, no two of them touching.

    >>> low, high = Intervals.of(Operator.LESS, 5), Intervals.of(Operator.GREATER, 7)
    >>> low.union(high).contains(6), low.union(high).contains(8)
    (False, True)
    """

    kind: Kind
    spans: tuple[Span, ...] = ()

    @classmethod
    def full(cls, kind: Kind) -> Intervals:
        """Every value of a kind."""
        return cls(kind, ((_FIRST[kind], END),))

    @classmethod
    def of(cls, operator: Operator, value: Value) -> Intervals:
        """The values that satisfy one of `= != < <= > >=`."""
        kind = kind_of(value)
        first = _FIRST[kind]
        after = next_value(value)
        spans: list[Span]
        match operator:
            case Operator.EQUAL:
                return cls(kind, ((value, after),))
            case Operator.LESS:
                spans = [(first, value)]
            case Operator.LESS_EQUAL:
                spans = [(first, after)]
            case Operator.GREATER:
                spans = [(after, END)]
            case Operator.GREATER_EQUAL:
                return cls(kind, ((value, END),))
            case Operator.NOT_EQUAL:
                spans = [(first, value), (after, END)]
            case _:
                raise ValueError(f"{operator.value!r} does not compare with a value")
        return cls(kind, tuple([span for span in spans if span[0] < span[1]]))

    @classmethod
    def points(cls, kind: Kind, values: Iterable[Value]) -> Intervals:
        """The set of some values, all of one kind."""
        spans = [(value, next_value(value)) for value in values]
        return cls(kind, tuple(_joined(sorted(spans, key=_low))))

    @classmethod
    def starting_with(cls, prefix: str) -> Intervals:
        """The strings that start with ``prefix``."""
        return cls(Kind.STRING, ((prefix, next_prefix(prefix)),))

    @property
    def is_full(self) -> bool:
        """Whether every value of the kind is in the set."""
        return self.spans == ((_FIRST[self.kind], END),)

    def contains(self, value: Value) -> bool:
        """Whether a value of this kind is in the set."""
        index = bisect_right(self.spans, value, key=_low) - 1
        return index >= 0 and value < self.spans[index][1]

    def union(self, *others: Intervals) -> Intervals:
        """The values in any of the sets."""
        spans = [span for each in (self, *others) for span in each.spans]
        return Intervals(self.kind, tuple(_joined(sorted(spans, key=_low))))

    def intersect(self, *others: Intervals) -> Intervals:
        """The values in all of the sets."""
        if len(others) == 1:
            other = others[0]
            if not self.spans or not other.spans:
                return self if not self.spans else other
            return Intervals(self.kind, tuple(_common(self.spans, other.spans)))
        # Of many sets at once, by De Morgan: one sort instead of one pass for each set.
        if not all(each.spans for each in (self, *others)):
            return Intervals(self.kind)
        missing = [each.complement() for each in (self, *others)]
        return missing[0].union(*missing[1:]).complement()

    def complement(self) -> Intervals:
        """The values of the kind that are not in the set."""
        gaps: list[Span] = []
        low: Endpoint = _FIRST[self.kind]
        for span in self.spans:
            if low < span[0]:
                gaps.append((low, span[0]))
            low = span[1]
        if low < END:
            gaps.append((low, END))
        return Intervals(self.kind, tuple(gaps))

    def within(self, other: Intervals) -> bool:
        """Whether every value of this set is in the other."""
        if not self.spans:
            return True
        # Most sets have one span, and covering compares a great many of them. `is END` comes first
        # because END compares through the Python methods of total_ordering, which are slow.
        if len(self.spans) == 1 == len(other.spans):
            (low, high), (other_low, other_high) = self.spans[0], other.spans[0]
            return bool(other_low <= low) and (
                other_high is END or (high is not END and bool(high <= other_high))
            )
        spend(1 + len(self.spans) + len(other.spans))
        return self.intersect(other) == self

    def meets(self, other: Intervals) -> bool:
        """Whether some value is in both sets."""
        if not self.spans or not other.spans:
            return False
        spend(1 + len(self.spans) + len(other.spans))
        return next(_common(self.spans, other.spans), None) is not None


def is_point(span: Span) -> bool:
    """Whether a span holds a single value."""
    return bool(next_value(span[0]) == span[1])


def members(span: Span) -> list[Value] | None:
    """The values of a span that has at most ``_MEMBERS_MAX``; None for a longer one.

    >>> members(("a", "a\\0\\0")), members(("a", "b"))
    (['a', 'a\\x00'], None)
    """
    value, high = span
    # Only strings that differ in the NULs at their end have finitely many others between them.
    if isinstance(value, str) and (high is END or high.strip("\0") != value.strip("\0")):
        return None
    values: list[Value] = []
    while value != high:
        if len(values) == _MEMBERS_MAX:
            return None
        values.append(value)
        value = next_value(value)
    return values


def _low(span: Span) -> Endpoint:
    return span[0]


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in ascending order of their lows, with those that overlap or touch joined."""
    current: Span | None = None
    for span in spans:
        if current is None:
            current = span
        elif span[0] <= current[1]:
            current = (current[0], max(current[1], span[1]))
        else:
            yield current
            current = span
    if current is not None:
        yield current


def _common(left: tuple[Span, ...], right: tuple[Span, ...]) -> Iterator[Span]:
    """The intersection of two lists of spans, in one pass over both."""
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if low < high:
            yield (low, high)
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
