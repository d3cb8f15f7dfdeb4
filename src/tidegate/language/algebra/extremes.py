"""How far a function of time goes during a stretch, found tightly where that is cheap.

Rule. As in ranges.py: a range holds every value that the expression takes, as floats compute it,
for every `t` of the stretch.

Theory of operation. Interval arithmetic takes each `t` in an expression for another one: of
`t - t / 2` over ten seconds it knows only that it lies between -5 and 10. So a *slope* is computed
along, an interval that has the derivative in it all through the stretch, and an *error*, by how
much floats can be off. Then the function stays within cones that open from its values at both ends,
by the mean value theorem (and by Lebourg's, where `min`, `max` and `abs` have corners). For what is
monotone or linear the cones meet at the ends, and the range is exact up to rounding. Where they
leave room, the stretch is halved, first where the function might go furthest, some times.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count

from tidegate.language.algebra.ranges import (
    ElapsedRange,
    Range,
    call_range,
    combine_ranges,
    range_of,
)
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
)

PIECES_MAX = 128
TOLERANCE = 1e-9
"""So close to a value that the function has, relative to its size, a bound need not be."""
_ROUNDING = 2.0**-52
"""More than one operation is off, relative to its result."""
_LIBRARY = 16 * _ROUNDING
"""More than `exp`, `ln`, `sin` and `cos` of the C library are off."""
_TINY = 1e-300


def tight_range_of(expression: Expression, stretch: ElapsedRange) -> Range | None:
    """What a numeric expression can become, as ``range_of`` says it, but not much too wide.

    >>> slow = Arithmetic("-", Elapsed(), Arithmetic("/", Elapsed(), Constant(2)))
    >>> found = tight_range_of(slow, Stretch(1, 10))
    >>> round(found.low, 9), round(found.high, 9)
    (0.5, 5.0)
    """
    plain = range_of(expression, stretch)
    if plain is None or plain.partial or not _are_finite(plain.low, plain.high, stretch.end):
        return plain
    if plain.low == plain.high:
        return plain
    whole = _form(expression, stretch)
    if whole is None:
        return _by_parts(expression, stretch) or plain
    high = _greatest(expression, stretch, whole)
    low = -_greatest(Negated(expression), stretch, _negated(whole))
    return Range(max(low, plain.low), min(high, plain.high))


def _by_parts(expression: Expression, stretch: ElapsedRange) -> Range | None:
    """The range that follows from those of the parts: of what is not smooth as a whole."""
    match expression:
        case Arithmetic(operator, left, right):
            a, b = tight_range_of(left, stretch), tight_range_of(right, stretch)
            return None if a is None or b is None else combine_ranges(operator, a, b)
        case Call(function, arguments):
            parts = [tight_range_of(each, stretch) for each in arguments]
            known = [each for each in parts if each is not None]
            return call_range(function, known) if len(known) == len(parts) else None
        case _:
            return None


def _greatest(expression: Expression, stretch: ElapsedRange, whole: _Form) -> float:
    """A bound on what an expression becomes at the most."""
    serial = count()
    known = max(whole.first, whole.last)
    pieces = [(-whole.range.high, next(serial), stretch)]
    for _ in range(PIECES_MAX):
        bound, _, piece = pieces[0]
        if -bound - known <= TOLERANCE * (1 + abs(bound)) or piece.start >= piece.end:
            break
        heapq.heappop(pieces)
        for half in piece.halves():
            form = _form(expression, half)
            high = -bound if form is None else min(-bound, form.range.high)
            known = known if form is None else max(known, form.first, form.last)
            heapq.heappush(pieces, (-high, next(serial), half))
    return -pieces[0][0]


@dataclass(frozen=True, slots=True)
class _Form:
    """An expression over a stretch: its range, the range of its derivative, how far off its values
    as floats compute them can be, and these values at both ends."""

    range: Range
    slope: tuple[float, float]
    error: float
    first: float
    last: float

    @property
    def real(self) -> tuple[float, float]:
        """Where the values lie that are not rounded."""
        return _outward(self.range.low - self.error, self.range.high + self.error)

    @property
    def size(self) -> float:
        """How large values are at the most."""
        return max(abs(self.range.low), abs(self.range.high))


def _form(expression: Expression, stretch: ElapsedRange) -> _Form | None:
    """The form of an expression; None where nothing is known of its slope."""
    made: _Form | None = None
    match expression:
        case Constant(value):
            number = as_float(value)
            if number is not None:
                error = abs(number) * _ROUNDING if isinstance(value, int) else 0.0
                made = _Form(Range(number, number), (0.0, 0.0), error, number, number)
        case Elapsed():
            ends = stretch.start, stretch.end
            made = _Form(Range(*ends), (1.0, 1.0), 0.0, *ends)
        case Negated(operand):
            inner = _form(operand, stretch)
            made = None if inner is None else _negated(inner)
        case Arithmetic(operator, left, right):
            a, b = _form(left, stretch), _form(right, stretch)
            if a is not None and b is not None:
                made = _narrowed(_combined(operator, a, b), stretch)
        case Call(function, arguments):
            forms = [_form(each, stretch) for each in arguments]
            known = [each for each in forms if each is not None]
            if len(known) == len(forms):
                made = _narrowed(_called(function, known), stretch)
    return made if made is not None and _is_finite(made) else None


def _negated(form: _Form) -> _Form:
    (low, high), values = form.slope, form.range
    return _Form(
        Range(-values.high, -values.low), (-high, -low), form.error, -form.first, -form.last
    )


def _combined(operator: str, a: _Form, b: _Form) -> _Form | None:
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
            slope = _sum(_product(a.slope, b.real), _product(a.real, b.slope))
            error = a.error * b.size + b.error * a.size + a.error * b.error
        case _:
            least = min(abs(each) for each in b.real)
            if b.real[0] <= 0.0 <= b.real[1] or not least > 0.0:
                return None
            one_over = _outward(1 / b.real[1], 1 / b.real[0])
            quotient = _product(a.real, one_over)
            slope = _product(_sum(a.slope, _minus(_product(quotient, b.slope))), one_over)
            error = (a.error + max(map(abs, quotient)) * b.error) / least
    first = combine_floats(operator, a.first, b.first)
    last = combine_floats(operator, a.last, b.last)
    return _Form(values, slope, _grown(error + size * _ROUNDING), first, last)


def _called(function: str, forms: list[_Form]) -> _Form | None:
    values = call_range(function, [each.range for each in forms])
    if values.partial:
        return None
    if function in CHOICES:
        return _chosen(function, forms, values)
    x = forms[0]
    found = _slope_and_error(function, x, values)
    if found is None:
        return None
    slope, error = found
    first, last = FUNCTIONS[function](x.first), FUNCTIONS[function](x.last)
    return _Form(values, slope, _grown(error), first, last)


def _slope_and_error(
    function: str, x: _Form, values: Range
) -> tuple[tuple[float, float], float] | None:
    """The slope of a function of one argument, and by how much its values can be off."""
    low, high = x.real
    size = max(abs(values.low), abs(values.high))
    match function:
        case "abs":
            if low >= 0.0:
                return x.slope, x.error
            if high <= 0.0:
                return _minus(x.slope), x.error
            steepest = max(map(abs, x.slope))
            return (-steepest, steepest), x.error
        case "floor" | "ceil":
            return ((0.0, 0.0), 0.0) if values.low == values.high else None
        case "sqrt" if low > 0.0:
            steep = _outward(0.5 / math.sqrt(high), 0.5 / math.sqrt(low))
            return _product(x.slope, steep), x.error * steep[1] + size * _ROUNDING
        case "exp" if x.error < 1.0:
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


def _chosen(function: str, forms: list[_Form], values: Range) -> _Form:
    """`min` or `max`: the slope is that of any argument that can be the one."""
    if function == "min":
        least = min(each.real[1] for each in forms)
        slopes = [each.slope for each in forms if each.real[0] <= least]
    else:
        most = max(each.real[0] for each in forms)
        slopes = [each.slope for each in forms if each.real[1] >= most]
    slope = min(low for low, _ in slopes), max(high for _, high in slopes)
    choose = CHOICES[function]
    first, last = choose([each.first for each in forms]), choose([each.last for each in forms])
    return _Form(values, slope, max(each.error for each in forms), first, last)


def _narrowed(form: _Form | None, stretch: ElapsedRange) -> _Form | None:
    """A form whose range is within the cones that its slope allows."""
    if form is None:
        return None
    low, high = form.slope
    long = math.nextafter(stretch.end - stretch.start, math.inf)
    down, up = min(0.0, low * long), max(0.0, high * long)
    room = 2 * form.error
    room += 4 * _ROUNDING * (abs(form.first) + abs(form.last) + up - down) + _TINY
    least = max(form.first + down, form.last - up) - room
    most = min(form.first + up, form.last - down) + room
    values = form.range
    if not (_are_finite(least, most) and least <= values.high and most >= values.low):
        return form
    narrow = Range(max(least, values.low), min(most, values.high))
    return _Form(narrow, form.slope, form.error, form.first, form.last)


# -- intervals that are rounded outward -------------------------------------------------------


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
    """An error with the roundings of its own computation."""
    return error * (1 + 16 * _ROUNDING) + _TINY


def _are_finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def _is_finite(form: _Form) -> bool:
    values = form.range.low, form.range.high, form.error, form.first, form.last
    return _are_finite(*values, *form.slope)
