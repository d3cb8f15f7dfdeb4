"""Value expressions over a stretch of time: what they can become, and which of two stays smaller.

Rules. (1) A range holds every value that the expression takes, as floats compute it, for every `t`
of the stretch. (2) `stays_at_most` says yes only if the first expression is never greater than the
second, as floats compute both.

Theory of operation. Addition, subtraction, multiplication, division, square root and rounding are
correctly rounded, and rounding keeps order: if a <= b then float(a) <= float(b). So plain interval
arithmetic is sound without widening, and `3 + 2 * t <= 4 + 2 * t` follows part by part. `exp`,
`ln`, `sin` and `cos` come from the C library, which promises no such thing; their results are
widened.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    as_float,
    combine_floats,
)
from tidegate.language.semantics import compares
from tidegate.language.syntax import Operator

_LIBRARY_ERROR_ULPS = 4
_HALVINGS_MAX = 6


@dataclass(frozen=True, slots=True)
class Stretch:
    """The values of `t` from ``start`` to ``end``, both included, in seconds."""

    start: float
    end: float

    def halves(self) -> tuple[Stretch, Stretch]:
        """The stretch in two parts that share their border."""
        middle = self.start + (self.end - self.start) / 2
        return Stretch(self.start, middle), Stretch(middle, self.end)

    def shifted(self, seconds: float) -> Stretch:
        """The same stretch on a clock that is so many seconds ahead."""
        return Stretch(self.start + seconds, self.end + seconds)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``; ``partial`` if the expression may also be undefined.

    The range of a bare integer is that integer, exactly; arithmetic makes floats of it first.
    """

    low: float
    high: float
    partial: bool = False


ANY_NUMBER = Range(-math.inf, math.inf, partial=True)


def range_of(expression: Expression, stretch: Stretch) -> Range | None:
    """What a numeric expression can become; None if it surely is no number.

    >>> range_of(Arithmetic("+", Constant(-3), Elapsed()), Stretch(0, 10))
    Range(low=-3.0, high=7.0, partial=False)
    """
    match expression:
        case Constant(value):
            if isinstance(value, (bool, str, datetime)):
                return None
            return Range(value, value)
        case Elapsed():
            return Range(stretch.start, stretch.end)
        case Negated(operand):
            inner = range_of(operand, stretch)
            if inner is None:
                return None
            return Range(-float(inner.high), -float(inner.low), inner.partial)
        case Arithmetic(operator, left, right):
            a, b = range_of(left, stretch), range_of(right, stretch)
            return None if a is None or b is None else _combine(operator, _floats(a), _floats(b))
        case Call(function, arguments):
            parts = [range_of(each, stretch) for each in arguments]
            known = [_floats(part) for part in parts if part is not None]
            return _call(function, known) if len(known) == len(parts) else None
        case _:
            return ANY_NUMBER


def _floats(exact: Range) -> Range:
    return Range(float(exact.low), float(exact.high), exact.partial)


def _combine(operator: str, a: Range, b: Range) -> Range:
    partial = a.partial or b.partial
    if operator in "/%" and b.low <= 0.0 <= b.high:
        return ANY_NUMBER
    if operator == "%":
        return _remainder(a, b)
    corners = [combine_floats(operator, x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(math.isnan(corner) for corner in corners):
        return ANY_NUMBER
    return Range(min(corners), max(corners), partial)


def _remainder(a: Range, b: Range) -> Range:
    """`%` takes the sign of its left side and is smaller than its right side, in size."""
    partial = a.partial or b.partial or math.isinf(a.low) or math.isinf(a.high)
    smallest = min(abs(b.low), abs(b.high))
    if -smallest < a.low and a.high < smallest:
        return Range(a.low, a.high, partial)
    size = min(max(abs(b.low), abs(b.high)), max(abs(a.low), abs(a.high)))
    return Range(-size if a.low < 0 else 0.0, size if a.high > 0 else 0.0, partial)


def _call(function: str, parts: list[Range]) -> Range:
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
    if x.high < 0:
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
    """Sine or cosine: 1 at ``peak`` and every full turn from it, -1 half a turn later."""
    if math.isinf(x.low) or math.isinf(x.high):
        return Range(-1.0, 1.0, partial=True)
    wave = math.sin if function == "sin" else math.cos
    ends = (wave(x.low), wave(x.high))
    high = 1.0 if _reaches(x, peak) else max(ends)
    low = -1.0 if _reaches(x, peak + math.pi) else min(ends)
    return _widened(low, high, -1.0, 1.0, partial)


def _reaches(x: Range, point: float) -> bool:
    """Whether ``point``, or a whole number of turns from it, lies in the range or just beside."""
    turn = 2 * math.pi
    slack = 1e-9 * (1 + max(abs(x.low), abs(x.high)))
    nearest = point + turn * math.ceil((x.low - slack - point) / turn)
    return nearest <= x.high + slack


def _widened(low: float, high: float, least: float, most: float, partial: bool) -> Range:
    """A range with room for the library's rounding errors, within the function's own bounds."""
    for _ in range(_LIBRARY_ERROR_ULPS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Range(max(low, least), min(high, most), partial)


def stays_at_most(a: Expression, b: Expression, stretch: Stretch, lead: float = 0.0) -> bool:
    """Whether ``a`` is surely never greater than ``b`` while `t` runs over the stretch.

    ``b`` has a clock of its own, ``lead`` seconds ahead. Both must be defined throughout.

    >>> slow = Arithmetic("+", Constant(3), Elapsed())
    >>> fast = Arithmetic("+", Constant(3), Arithmetic("*", Constant(2), Elapsed()))
    >>> stays_at_most(slow, fast, Stretch(0, 60)), stays_at_most(fast, slow, Stretch(0, 60))
    (True, False)
    """
    defined = range_of(a, stretch), range_of(b, stretch.shifted(lead))
    if any(each is None or each.partial for each in defined):
        return False
    return _at_most(a, b, stretch, lead, _HALVINGS_MAX)


def _at_most(a: Expression, b: Expression, stretch: Stretch, lead: float, halvings: int) -> bool:
    if _part_by_part(a, b, stretch, lead):
        return True
    first, second = range_of(a, stretch), range_of(b, stretch.shifted(lead))
    if first is None or second is None:
        return False
    if first.high <= second.low:
        return True
    if first.low > second.high or not halvings or stretch.start >= stretch.end:
        return False
    return all(_at_most(a, b, half, lead, halvings - 1) for half in stretch.halves())


def _part_by_part(a: Expression, b: Expression, stretch: Stretch, lead: float) -> bool:
    """Whether ``a <= b`` follows from how their parts compare, by the monotony of rounding."""

    def at_most(x: Expression, y: Expression, backwards: bool = False) -> bool:
        if backwards:
            return _at_most(y, x, stretch.shifted(lead), -lead, 0)
        return _at_most(x, y, stretch, lead, 0)

    if a == b and lead == 0.0:
        return True
    match a, b:
        case Elapsed(), Elapsed():
            return lead >= 0
        case Constant(x), Constant(y):
            return compares(x, Operator.LESS_EQUAL, y)
        case Negated(x), Negated(y):
            return at_most(x, y, backwards=True)
        case Arithmetic("+", x1, x2), Arithmetic("+", y1, y2):
            return (at_most(x1, y1) and at_most(x2, y2)) or (at_most(x1, y2) and at_most(x2, y1))
        case Arithmetic("-", x1, x2), Arithmetic("-", y1, y2):
            return at_most(x1, y1) and at_most(x2, y2, backwards=True)
        case Arithmetic("/", x, p), Arithmetic("/", y, q) if p == q and isinstance(p, Constant):
            return at_most(x, y, backwards=bool((as_float(p.value) or 0.0) < 0))
        case Call(f, xs), Call(g, ys) if f == g and f in ("min", "max", "floor", "ceil", "sqrt"):
            return len(xs) == len(ys) and all(map(at_most, xs, ys))
        case (Arithmetic("*"), _) | (_, Arithmetic("*")):
            return _products(a, b, stretch, at_most)
        case _:
            return False


def _products(
    a: Expression,
    b: Expression,
    stretch: Stretch,
    at_most: Callable[[Expression, Expression], bool],
) -> bool:
    """Products of factors that are not negative compare factor by factor; `x` is `1 * x`."""
    (x1, x2), (y1, y2) = _factors(a), _factors(b)
    ranges = [range_of(x1, stretch), range_of(x2, stretch)]
    if any(each is None or each.low < 0 for each in ranges):
        return False
    return (at_most(x1, y1) and at_most(x2, y2)) or (at_most(x1, y2) and at_most(x2, y1))


def _factors(expression: Expression) -> tuple[Expression, Expression]:
    match expression:
        case Arithmetic("*", left, right):
            return left, right
        case _:
            return Constant(1), expression
