"""Value expressions over an elapsed range: their ranges, and which of two stays smaller.

Rules. (1) A range contains every value that the expression takes, as floats compute it, for every
`t` of the elapsed range. (2) `stays_at_most` says yes only if the first expression is never greater
than the second, as floats compute both.

Theory of operation. The values of interest are those that floats compute, with all their rounding
errors, and not the real numbers. IEEE 754 rounds `+ - * /`, square root, floor and ceil correctly,
and correct rounding is monotone: if a <= b then float(a) <= float(b). So the float result at a
corner of the operands' intervals bounds the float results everywhere between; interval arithmetic
needs no outward rounding here. The same monotony proves `3 + 2 * t <= 4 + 2 * t` part by part,
although neither side is exact. `exp`, `ln`, `sin` and `cos` come from the C library, which promises
neither; their results are widened outward by some ulps.

A proof of order looks for such parts in all ways that `+`, `*`, `min` and `max` allow, and where it
finds none it halves the elapsed range a few times.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from tidegate.errors import BadValueError
from tidegate.language.algebra.work import spend
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    combine_floats,
    leaves,
)

_LIBRARY_ERROR_ULPS = 4  # glibc documents 1 or 2 for these functions; twice that
_HALVINGS_MAX = 6  # up to 64 parts
LEAF_STEPS = 10  # for the range of an expression, for each of its leaves
_LEAVES_MAX = 20_000  # of both expressions in all steps; trying all ways of sums is exponential


@dataclass(frozen=True, slots=True)
class ElapsedRange:
    """The values of `t` from ``start`` to ``end``, both included, in seconds.

    ``end`` may be infinite; `t` itself never is.
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and self.start <= self.end):
            raise BadValueError(
                f"an elapsed range cannot go from {self.start} to {self.end} seconds"
            )

    def halves(self) -> tuple[ElapsedRange, ElapsedRange]:
        """Two ranges that share their border; halves, if there is an end.

        Without an end, the first part doubles each time, so that a few splits reach far.
        """
        endless = math.isinf(self.end)
        middle = 2 * abs(self.start) + 1 if endless else self.start / 2 + self.end / 2
        # Rounding may put the middle outside of the range, and doubling may overflow.
        middle = min(max(self.start, middle), self.end, sys.float_info.max)
        return ElapsedRange(self.start, middle), ElapsedRange(middle, self.end)

    def shifted(self, seconds: float) -> ElapsedRange:
        """The same time on a clock that is ``seconds`` ahead."""
        return ElapsedRange(self.start + seconds, self.end + seconds)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``; ``partial`` if the expression may also be undefined.

    The range of a bare integer is that integer, exactly: it is compared exactly too. Arithmetic
    converts it to a float first, as the evaluation does.
    """

    low: float
    high: float
    partial: bool = False


ANY_NUMBER = Range(-math.inf, math.inf, partial=True)
"""Nothing is known of the value: it may be any number, of another kind, or undefined."""


def range_of(expression: Expression, elapsed: ElapsedRange) -> Range | None:
    """The range of a numeric expression; None if its value is surely not a number.

    >>> range_of(Arithmetic("+", Constant(-3), Elapsed()), ElapsedRange(0, 10))
    Range(low=-3.0, high=7.0, partial=False)
    """
    match expression:
        case Constant(value):
            if isinstance(value, (bool, str, datetime)):
                return None
            return Range(value, value)
        case Elapsed():
            return Range(elapsed.start, min(elapsed.end, sys.float_info.max))  # `t` is finite
        case Negated(operand):
            inner = range_of(operand, elapsed)
            if inner is None:
                return None
            return Range(-float(inner.high), -float(inner.low), inner.partial)
        case Arithmetic(operator, left, right):
            a, b = range_of(left, elapsed), range_of(right, elapsed)
            if a is None or b is None:
                # The difference of two timestamps is a number; nothing else with one is.
                return ANY_NUMBER if operator == "-" else None
            return combine_ranges(operator, a, b)
        case Call(function, arguments):
            parts = [range_of(each, elapsed) for each in arguments]
            known = [part for part in parts if part is not None]
            return call_range(function, known) if len(known) == len(parts) else None
        case _:
            return ANY_NUMBER


def _floats(exact: Range) -> Range:
    return Range(float(exact.low), float(exact.high), exact.partial)


def combine_ranges(operator: str, a: Range, b: Range) -> Range:
    """The range of one arithmetic operation on numbers from two ranges."""
    a, b = _floats(a), _floats(b)
    partial = a.partial or b.partial
    if operator in "/%" and b.low <= 0.0 <= b.high:
        return ANY_NUMBER
    if operator == "%":
        return _remainder(a, b)
    # Each operation is monotone in each operand, for fixed signs of the other, so the extreme
    # results are at the corners; monotone rounding keeps it so for floats.
    corners = [combine_floats(operator, x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(math.isnan(corner) for corner in corners):
        return ANY_NUMBER
    # 0 * infinity is undefined, also where neither of the two is at a corner.
    if operator == "*" and any(math.isinf(corner) for corner in corners):
        partial = partial or _zero_meets_infinity(a, b) or _zero_meets_infinity(b, a)
    return Range(min(corners), max(corners), partial)


def _zero_meets_infinity(a: Range, b: Range) -> bool:
    return a.low <= 0.0 <= a.high and (math.isinf(b.low) or math.isinf(b.high))


def _remainder(a: Range, b: Range) -> Range:
    """The range of `a % b`: it has the sign of `a`, and is smaller than both in absolute value.

    fmod is exact, so nothing is rounded. Where `a` stays below every `b`, the result is `a` itself.
    """
    partial = a.partial or b.partial or math.isinf(a.low) or math.isinf(a.high)
    smallest = min(abs(b.low), abs(b.high))
    if -smallest < a.low and a.high < smallest:
        return Range(a.low, a.high, partial)
    size = min(max(abs(b.low), abs(b.high)), max(abs(a.low), abs(a.high)))
    return Range(-size if a.low < 0 else 0.0, size if a.high > 0 else 0.0, partial)


def call_range(function: str, parts: list[Range]) -> Range:
    """The range of a function of numbers from ranges."""
    parts = [_floats(part) for part in parts]
    partial = any(part.partial for part in parts)
    if function in ("min", "max"):
        choose = min if function == "min" else max
        low, high = choose(part.low for part in parts), choose(part.high for part in parts)
        return Range(low, high, partial)
    x = parts[0]
    match function:
        case "abs":
            nearest = 0.0 if x.low <= 0.0 <= x.high else min(abs(x.low), abs(x.high))
            return Range(nearest, max(abs(x.low), abs(x.high)), partial)
        case "floor" | "ceil":
            rounded = [_whole(function, bound) for bound in (x.low, x.high)]
            return Range(rounded[0], rounded[1], partial)
        case "sqrt":
            return _root(x, partial)
        case "exp":
            return _widened(_exp(x.low), _exp(x.high), 0.0, math.inf, partial)
        case "ln":
            return _logarithm(x, partial)
        case _:
            return _wave(x, 0.0 if function == "cos" else math.pi / 2, function, partial)


def _whole(function: str, bound: float) -> float:
    if math.isinf(bound):
        return bound
    return float(math.floor(bound) if function == "floor" else math.ceil(bound))


def _root(x: Range, partial: bool) -> Range:
    if x.high < 0:  # always undefined
        return ANY_NUMBER
    return Range(math.sqrt(max(x.low, 0.0)), math.sqrt(x.high), partial or x.low < 0)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(x: Range, partial: bool) -> Range:
    if x.high <= 0:
        return ANY_NUMBER
    low = math.log(x.low) if x.low > 0 else -math.inf
    return _widened(low, math.log(x.high), -math.inf, math.inf, partial or x.low <= 0)


def _wave(x: Range, peak: float, function: str, partial: bool) -> Range:
    """Sine or cosine: 1 at ``peak`` and every full turn from it, -1 half a turn later.

    A peak that might lie in the range is taken to: then the bound is 1 or -1, which is always
    sound.
    """
    # The places of the peaks are computed with a rounded pi: their error grows with the argument,
    # and 1e-9 of it is far more. Beyond 3.2e9 the slack alone is a full turn, and the range is -1
    # to 1.
    slack = 1e-9 * (1 + max(abs(x.low), abs(x.high)))
    if not x.high - x.low + 2 * slack < 2 * math.pi:
        return Range(-1.0, 1.0, partial or math.isinf(x.low) or math.isinf(x.high))
    wave = math.sin if function == "sin" else math.cos
    ends = (wave(x.low), wave(x.high))
    high = 1.0 if _reaches(x, peak, slack) else max(ends)
    low = -1.0 if _reaches(x, peak + math.pi, slack) else min(ends)
    return _widened(low, high, -1.0, 1.0, partial)


def _reaches(x: Range, point: float, slack: float) -> bool:
    """Whether ``point``, or a point full turns from it, lies in the range widened by ``slack``."""
    turn = 2 * math.pi
    nearest = point + turn * math.ceil((x.low - slack - point) / turn)
    return nearest <= x.high + slack


def _widened(low: float, high: float, least: float, most: float, partial: bool) -> Range:
    """A range widened outward for the errors of the C library, within the function's own bounds."""
    for _ in range(_LIBRARY_ERROR_ULPS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Range(max(low, least), min(high, most), partial)


def stays_at_most(
    a: Expression, b: Expression, elapsed: ElapsedRange, *, a_lead: float = 0.0, b_lead: float = 0.0
) -> bool:
    """Whether ``a`` is surely never greater than ``b`` at any `t` of the elapsed range.

    Each has its own clock, ``a_lead`` or ``b_lead`` seconds ahead of that of the elapsed range. No
    if one of them may be undefined.

    >>> slow = Arithmetic("+", Constant(3), Elapsed())
    >>> fast = Arithmetic("+", Constant(3), Arithmetic("*", Constant(2), Elapsed()))
    >>> minute = ElapsedRange(0, 60)
    >>> stays_at_most(slow, fast, minute), stays_at_most(fast, slow, minute)
    (True, False)
    """
    left, right = _Timed(a, elapsed, a_lead), _Timed(b, elapsed, b_lead)
    spend(2 * LEAF_STEPS)
    if any(each is None or each.partial for each in (left.range(), right.range())):
        return False
    return _OrderProof(_LEAVES_MAX).at_most(left, right, _HALVINGS_MAX)


@dataclass(frozen=True, slots=True)
class _Timed:
    """An expression that is defined all through an elapsed range, with the lead of its clock."""

    expression: Expression
    elapsed: ElapsedRange
    lead: float

    def range(self) -> Range | None:
        return range_of(self.expression, self.elapsed.shifted(self.lead))

    def part(self, expression: Expression) -> _Timed:
        return _Timed(expression, self.elapsed, self.lead)

    def during(self, elapsed: ElapsedRange) -> _Timed:
        return _Timed(self.expression, elapsed, self.lead)

    def sums(self) -> Iterator[tuple[_Timed, _Timed]]:
        """Yields the expression as sums: `x - y` is `x + -y`, and everything is itself plus 0.

        Floats agree: `x - y` is rounded like `x + -y`, and adding 0 changes nothing.
        """
        match self.expression:
            case Arithmetic("+", left, right):
                yield self.part(left), self.part(right)
            case Arithmetic("-", left, right):
                yield self.part(left), self.part(Negated(right))
        yield self, self.part(Constant(0))

    def factors(self) -> tuple[_Timed, _Timed]:
        """The two factors of the expression; `x` is `x * 1`."""
        match self.expression:
            case Arithmetic("*", left, right):
                return self.part(left), self.part(right)
            case _:
                return self, self.part(Constant(1))


class _OrderProof:
    """The search of ``stays_at_most``, which gives up after ``leaves_max`` leaves."""

    def __init__(self, leaves_max: int) -> None:
        self._leaves_left = leaves_max

    def at_most(self, a: _Timed, b: _Timed, halvings: int = 0) -> bool:
        """Whether ``a <= b`` is proved, with up to ``halvings`` splits of the elapsed range."""
        looked_at = sum(1 for each in (a, b) for _ in leaves(each.expression))
        spend(looked_at * LEAF_STEPS)
        self._leaves_left -= looked_at
        if self._leaves_left < 0:
            return False
        left, right = a.range(), b.range()
        if left is None or right is None or left.low > right.high:
            return False
        if left.high <= right.low or self._follows(a, b):
            return True
        if not halvings or a.elapsed.start >= a.elapsed.end:
            return False
        return all(
            self.at_most(a.during(half), b.during(half), halvings - 1)
            for half in a.elapsed.halves()
        )

    def _follows(self, a: _Timed, b: _Timed) -> bool:
        """Whether ``a <= b`` follows from comparing their parts, by the monotony of rounding."""
        if a == b:
            return True
        if isinstance(a.expression, Constant) or isinstance(b.expression, Constant):
            # Ranges have compared them already. And a bare integer is compared exactly, without the
            # rounding that the rules below rely on.
            return False
        match a.expression, b.expression:
            case Elapsed(), Elapsed():
                return a.lead <= b.lead
            case Negated(x), Negated(y):
                return self.at_most(b.part(y), a.part(x))
            case Call("max", parts), _:
                return all(self.at_most(a.part(each), b) for each in parts)
            case _, Call("min", parts):
                return all(self.at_most(a, b.part(each)) for each in parts)
            case Call("min", parts), _:
                return any(self.at_most(a.part(each), b) for each in parts)
            case _, Call("max", parts):
                return any(self.at_most(a, b.part(each)) for each in parts)
            case Call(f, (x,)), Call(g, (y,)) if f == g and f in ("floor", "ceil", "sqrt"):
                return self.at_most(a.part(x), b.part(y))
            case Arithmetic("/", x, p), Arithmetic("/", y, q) if p == q and a.lead == b.lead:
                return self._scaled(a.part(x), b.part(y), a.part(p))
        return self._sums(a, b) or self._products(a, b)

    def _sums(self, a: _Timed, b: _Timed) -> bool:
        """Sums compare term by term, in either order."""
        return any(
            (self.at_most(x1, y1) and self.at_most(x2, y2))
            or (self.at_most(x1, y2) and self.at_most(x2, y1))
            for x1, x2 in a.sums()
            for y1, y2 in b.sums()
            if x1 != a or y1 != b
        )

    def _products(self, a: _Timed, b: _Timed) -> bool:
        """Products compare factor by factor if those of ``a`` are not negative, or share one."""
        (x1, x2), (y1, y2) = a.factors(), b.factors()
        if a == x1 and b == y1:
            return False
        crossed = [(x1, x2, y1, y2), (x1, x2, y2, y1), (x2, x1, y1, y2), (x2, x1, y2, y1)]
        if any(p == q and self._scaled(x, y, p) for p, x, q, y in crossed):
            return True
        ranges = [x1.range(), x2.range()]
        if any(each is None or each.low < 0 for each in ranges):
            return False
        return (self.at_most(x1, y1) and self.at_most(x2, y2)) or (
            self.at_most(x1, y2) and self.at_most(x2, y1)
        )

    def _scaled(self, x: _Timed, y: _Timed, scale: _Timed) -> bool:
        """Whether `x <= y` holds after both are multiplied with, or divided by, the scale.

        A negative scale turns the order around; one that may have both signs proves nothing.
        """
        by = scale.range()
        if by is None or by.low < 0 < by.high:
            return False
        return self.at_most(x, y) if by.low >= 0 else self.at_most(y, x)
