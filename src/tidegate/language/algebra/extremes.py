"""The least and the greatest value of a function of time over an elapsed range, found tightly.

Rule. As in ranges.py: a range contains every value that the expression takes, as floats compute it,
for every `t` of the elapsed range. So every bound is rounded outward.

Theory of operation. Interval arithmetic treats each `t` in an expression as an independent
variable: of `t - t / 2` over ten seconds it knows only that it lies between -5 and 10 (the
dependency problem). So two more things are computed along: a *slope*, an interval that contains the
derivative everywhere in the elapsed range, and an *error*, a bound on how far the float results are
from the real ones. By the mean value theorem the real function stays within the cones that open
with these slopes from its values at both ends (by Lebourg's theorem also where `min`, `max` and
`abs` have corners). For a monotone or linear function the cones meet at the ends, and the range is
exact up to rounding. Where they leave room, the elapsed range is bisected, always the part with the
greatest upper bound first (branch and bound), until the bound is close to a value that the function
has, or for some number of times, or the budget of work (work.py) is used up. The least value is
minus the greatest value of the negated function.

`%`, `floor` and `ceil` jump, so they have no slope: then the range follows from those of the
operands.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count

from tidegate.language.algebra.ranges import (
    LEAF_STEPS,
    ElapsedRange,
    Range,
    call_range,
    combine_ranges,
    range_of,
)
from tidegate.language.algebra.work import OutOfWorkError, spend
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    as_float,
    combine_floats,
    leaves,
)

BISECTIONS_MAX = 128
TOLERANCE = 1e-9
"""Bisection stops once the bound is this close to a value of the function, relative to its size."""
_ENCLOSING_STEPS = 12
"""The steps of enclosing one operation, over one part of the elapsed range."""
_ROUNDING = 2.0**-52
"""The relative error of one correctly rounded operation is at most half of this."""
_LIBRARY = 16 * _ROUNDING
"""The relative error of `exp`, `ln`, `sin` and `cos` of the C library is far below this."""
_TINY = 1e-300
"""Added to errors, because near zero the error of an operation is not relative (underflow)."""


def tight_range_of(expression: Expression, elapsed: ElapsedRange) -> Range | None:
    """The range of a numeric expression, as ``range_of``, but hardly wider than it has to be.

    >>> slow = Arithmetic("-", Elapsed(), Arithmetic("/", Elapsed(), Constant(2)))
    >>> tight = tight_range_of(slow, ElapsedRange(1, 10))
    >>> round(tight.low, 9), round(tight.high, 9)
    (0.5, 5.0)
    """
    plain = range_of(expression, elapsed)
    if plain is None or plain.partial or not _are_finite(plain.low, plain.high, elapsed.end):
        return plain
    if plain.low == plain.high:
        return plain
    try:
        return _tightened(expression, elapsed, plain)
    except OutOfWorkError:
        return plain


def _tightened(expression: Expression, elapsed: ElapsedRange, plain: Range) -> Range:
    """A range that is hardly wider than it has to be; raises OutOfWorkError."""
    whole = _enclose(expression, elapsed)
    if whole is None:
        return _from_operands(expression, elapsed) or plain
    high = _upper_bound(expression, elapsed, whole)
    low = -_upper_bound(Negated(expression), elapsed, _negated(whole))
    # Both contain all values, so their intersection does; either may be the tighter one.
    return Range(max(low, plain.low), min(high, plain.high))


def _from_operands(expression: Expression, elapsed: ElapsedRange) -> Range | None:
    """The range that follows from tight ranges of the operands, for expressions without a slope."""
    spend(LEAF_STEPS * sum(1 for _ in leaves(expression)))
    match expression:
        case Arithmetic(operator, left, right):
            a, b = tight_range_of(left, elapsed), tight_range_of(right, elapsed)
            return None if a is None or b is None else combine_ranges(operator, a, b)
        case Call(function, arguments):
            parts = [tight_range_of(each, elapsed) for each in arguments]
            known = [each for each in parts if each is not None]
            return call_range(function, known) if len(known) == len(parts) else None
        case _:
            return None


def _upper_bound(expression: Expression, elapsed: ElapsedRange, whole: _Enclosure) -> float:
    """A tight upper bound on the values of an expression, by branch and bound."""
    serial = count()  # so that the heap never compares two elapsed ranges
    attained = max(whole.first, whole.last)  # the greatest value known to occur
    parts = [(-whole.range.high, next(serial), elapsed)]  # a max-heap of upper bounds
    for _ in range(BISECTIONS_MAX):
        bound, _, part = parts[0]
        if -bound - attained <= TOLERANCE * (1 + abs(bound)) or part.start >= part.end:
            break
        try:
            halves = [(half, _enclose(expression, half)) for half in part.halves()]
        except OutOfWorkError:
            break
        heapq.heappop(parts)
        for half, enclosure in halves:
            high = -bound if enclosure is None else min(-bound, enclosure.range.high)
            if enclosure is not None:
                attained = max(attained, enclosure.first, enclosure.last)
            heapq.heappush(parts, (-high, next(serial), half))
    return -parts[0][0]


@dataclass(frozen=True, slots=True)
class _Enclosure:
    """Bounds and slope of an expression over an elapsed range.

    ``range``, ``first`` and ``last`` are of the float results: all of them, and those at both ends.
    ``slope`` contains the derivative of the real function, and ``error`` bounds the distance of a
    float result from the real value.
    """

    range: Range
    slope: tuple[float, float]
    error: float
    first: float
    last: float

    @property
    def real(self) -> tuple[float, float]:
        """An interval that contains the real values, which are not rounded."""
        return _outward(self.range.low - self.error, self.range.high + self.error)

    @property
    def size(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.range.low), abs(self.range.high))


def _enclose(expression: Expression, elapsed: ElapsedRange) -> _Enclosure | None:
    """The enclosure of an expression; None if its slope has no bounds, or a bound overflows."""
    spend(_ENCLOSING_STEPS)
    made: _Enclosure | None = None
    match expression:
        case Constant(value):
            number = as_float(value)
            if number is not None:
                # An integer beyond 2**53 is rounded when arithmetic makes a float of it.
                error = abs(number) * _ROUNDING if isinstance(value, int) else 0.0
                made = _Enclosure(Range(number, number), (0.0, 0.0), error, number, number)
        case Elapsed():
            ends = elapsed.start, elapsed.end
            made = _Enclosure(Range(*ends), (1.0, 1.0), 0.0, *ends)
        case Negated(operand):
            inner = _enclose(operand, elapsed)
            made = None if inner is None else _negated(inner)
        case Arithmetic(operator, left, right):
            a, b = _enclose(left, elapsed), _enclose(right, elapsed)
            if a is not None and b is not None:
                made = _narrowed(_combined(operator, a, b), elapsed)
        case Call(function, arguments):
            enclosures = [_enclose(each, elapsed) for each in arguments]
            known = [each for each in enclosures if each is not None]
            if len(known) == len(enclosures):
                made = _narrowed(_called(function, known), elapsed)
    return made if made is not None and _is_finite(made) else None


def _negated(x: _Enclosure) -> _Enclosure:
    (low, high), values = x.slope, x.range
    return _Enclosure(Range(-values.high, -values.low), (-high, -low), x.error, -x.first, -x.last)


def _combined(operator: str, a: _Enclosure, b: _Enclosure) -> _Enclosure | None:
    """The enclosure of `a operator b`: the rules of derivatives, and how errors propagate."""
    if operator == "%":
        return None
    values = combine_ranges(operator, a.range, b.range)
    if values.partial:
        return None
    size = max(abs(values.low), abs(values.high))
    match operator:
        case "+":
            slope, error = _sum(a.slope, b.slope), a.error + b.error
        case "-":
            slope, error = _sum(a.slope, _minus(b.slope)), a.error + b.error
        case "*":
            # (a b)' = a' b + a b', with the real values of a and b
            slope = _sum(_product(a.slope, b.real), _product(a.real, b.slope))
            error = a.error * b.size + b.error * a.size + a.error * b.error
        case _:
            least = min(abs(each) for each in b.real)
            if b.real[0] <= 0.0 <= b.real[1] or not least > 0.0:
                return None
            # (a / b)' = (a' - (a / b) b') / b
            one_over = _outward(1 / b.real[1], 1 / b.real[0])
            quotient = _product(a.real, one_over)
            slope = _product(_sum(a.slope, _minus(_product(quotient, b.slope))), one_over)
            error = (a.error + max(map(abs, quotient)) * b.error) / least
    first = combine_floats(operator, a.first, b.first)
    last = combine_floats(operator, a.last, b.last)
    return _Enclosure(values, slope, _grown(error + size * _ROUNDING), first, last)


def _called(function: str, arguments: list[_Enclosure]) -> _Enclosure | None:
    values = call_range(function, [each.range for each in arguments])
    if values.partial:
        return None
    if function in CHOICES:
        return _chosen(function, arguments, values)
    x = arguments[0]
    bounds = _slope_and_error(function, x, values)
    if bounds is None:
        return None
    slope, error = bounds
    first, last = FUNCTIONS[function](x.first), FUNCTIONS[function](x.last)
    return _Enclosure(values, slope, _grown(error), first, last)


def _slope_and_error(
    function: str, x: _Enclosure, values: Range
) -> tuple[tuple[float, float], float] | None:
    """The slope of a function of one argument, by the chain rule, and its error.

    None where the slope is unbounded or the function jumps.
    """
    low, high = x.real
    size = max(abs(values.low), abs(values.high))
    match function:
        case "abs":
            if low >= 0.0:
                return x.slope, x.error
            if high <= 0.0:
                return _minus(x.slope), x.error
            steepest = max(map(abs, x.slope))  # a corner at 0: either sign of the slope
            return (-steepest, steepest), x.error
        case "floor" | "ceil":
            return ((0.0, 0.0), 0.0) if values.low == values.high else None
        case "sqrt" if low > 0.0:
            steep = _outward(0.5 / math.sqrt(high), 0.5 / math.sqrt(low))
            return _product(x.slope, steep), x.error * steep[1] + size * _ROUNDING
        case "exp" if x.error < 1.0:  # then e**error - 1 < 2 * error
            steep = _widened(values)
            return _product(x.slope, steep), 2 * x.error * size + size * _LIBRARY
        case "ln" if low > 0.0:
            steep = _outward(1 / high, 1 / low)
            return _product(x.slope, steep), x.error * steep[1] + (1 + size) * _LIBRARY
        case "sin" | "cos":
            other = call_range("cos" if function == "sin" else "sin", [Range(low, high)])
            steep = _widened(other) if function == "sin" else _minus(_widened(other))
            return _product(x.slope, steep), x.error + _LIBRARY
    return None


def _chosen(function: str, arguments: list[_Enclosure], values: Range) -> _Enclosure:
    """`min` or `max`: the slope may be that of any argument that can be the chosen one."""
    if function == "min":
        least = min(each.real[1] for each in arguments)
        slopes = [each.slope for each in arguments if each.real[0] <= least]
    else:
        most = max(each.real[0] for each in arguments)
        slopes = [each.slope for each in arguments if each.real[1] >= most]
    slope = min(low for low, _ in slopes), max(high for _, high in slopes)
    choose = CHOICES[function]
    first = choose([each.first for each in arguments])
    last = choose([each.last for each in arguments])
    return _Enclosure(values, slope, max(each.error for each in arguments), first, last)


def _narrowed(wide: _Enclosure | None, elapsed: ElapsedRange) -> _Enclosure | None:
    """An enclosure with its range cut to the cones that its slope allows from both ends."""
    if wide is None:
        return None
    low, high = wide.slope
    duration_s = math.nextafter(elapsed.end - elapsed.start, math.inf)
    down, up = min(0.0, low * duration_s), max(0.0, high * duration_s)
    # The cones hold for real values, from real values at the ends: one error to get there from
    # `first` or `last`, one to get back to float results. The rest is for this computation itself.
    room = 2 * wide.error
    room += 4 * _ROUNDING * (abs(wide.first) + abs(wide.last) + up - down) + _TINY
    least = max(wide.first + down, wide.last - up) - room
    most = min(wide.first + up, wide.last - down) + room
    values = wide.range
    if not (_are_finite(least, most) and least <= values.high and most >= values.low):
        return wide
    narrow = Range(max(least, values.low), min(most, values.high))
    return _Enclosure(narrow, wide.slope, wide.error, wide.first, wide.last)


# -- intervals that are rounded outward -------------------------------------------------------

# Slopes and real values are bounds on real numbers, not on float results, so here the monotony of
# rounding (ranges.py) is not enough: each bound moves one ulp outward after every operation.

_Interval = tuple[float, float]


def _outward(low: float, high: float) -> _Interval:
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _widened(values: Range) -> _Interval:
    room = _LIBRARY * max(abs(values.low), abs(values.high))
    return _outward(values.low - room, values.high + room)


def _sum(a: _Interval, b: _Interval) -> _Interval:
    return _outward(a[0] + b[0], a[1] + b[1])


def _minus(a: _Interval) -> _Interval:
    return -a[1], -a[0]


def _product(a: _Interval, b: _Interval) -> _Interval:
    corners = [x * y for x in a for y in b]
    return _outward(min(corners), max(corners))


def _grown(error: float) -> float:
    """An error bound, raised for the roundings of its own computation, which are below 16."""
    return error * (1 + 16 * _ROUNDING) + _TINY


def _are_finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def _is_finite(x: _Enclosure) -> bool:
    return _are_finite(x.range.low, x.range.high, x.error, x.first, x.last, *x.slope)
