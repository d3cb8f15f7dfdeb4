"""Widened filters, for parameters of which only a band is sent.

Rule. The widened filter matches every event that the filter matches with some value in each band,
as floats compute both, as long as all else in the expressions is finite.

Theory of operation. In place of a parameter with a band the bounds of the band are sent, as
parameters of their own: `x < :p + 3` becomes `x < :p_high + 3` and, if the band moves,
`x < :p_high + :p_rate * t + 3`. Symbolic interval arithmetic derives a lower and an upper bound of
the right side of a predicate, as expressions, and the predicate takes the one that matches more.
Rounding is monotonic, so no margin has to be added for it (as in `language/algebra/ranges.py`).
Where there is no such bound (`%`, division by the parameter, `exp`, `ln`, `sin` and `cos`, which
the C library does not round monotonically) the filter is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidegate.errors import UnresolvedError
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    ParameterRef,
    as_float,
    format_expression,
    leaves,
)
from tidegate.language.syntax import (
    STRING_OPERATORS,
    Node,
    Operator,
    Predicate,
    all_of,
    any_of,
    map_predicates,
)

# A product of two banded factors has four corners, so the bounds of nested products grow
# exponentially.
_LEAVES_MAX = 256
_ADVICE = "Use it with + - * /, min, max, abs, floor, ceil or sqrt, or as a plain Parameter"


@dataclass(frozen=True, slots=True)
class BandNames:
    """The parameter names under which a band is sent; ``rate`` is None if it never moves."""

    low: str
    high: str
    rate: str | None = None

    @classmethod
    def named(cls, name: str, taken: Collection[str], *, has_rate: bool) -> BandNames:
        """Names for the band of a parameter, different from those in ``taken``.

        >>> BandNames.named("x", ["x", "x_low"], has_rate=False)
        BandNames(low='x_low_', high='x_high', rate=None)
        """

        def free(wanted: str) -> str:
            while wanted in taken:
                wanted += "_"
            return wanted

        rate = free(f"{name}_rate") if has_rate else None
        return cls(free(f"{name}_low"), free(f"{name}_high"), rate)

    @property
    def names(self) -> tuple[str, ...]:
        """The two or three names."""
        return (self.low, self.high) if self.rate is None else (self.low, self.high, self.rate)

    def bounds(self) -> Bounds:
        """The bounds of the band as expressions in these parameters and `t`."""
        low, high = ParameterRef(self.low), ParameterRef(self.high)
        if self.rate is None:
            return low, high
        moved = Arithmetic("*", ParameterRef(self.rate), Elapsed())
        return Arithmetic("+", low, moved), Arithmetic("+", high, moved)


Bounds = tuple[Expression, Expression]
"""A lower and an upper bound of an expression; the same object twice if it involves no band."""


def widen(node: Node, bands: Mapping[str, BandNames]) -> Node:
    """A filter that matches whatever ``node`` matches with any values in the bands.

    Raises UnresolvedError if there is none.

    >>> from tidegate.language.filters import parse
    >>> names = BandNames("low", "high")
    >>> print(widen(parse("x between :p - 3 and 3 + 2 * :p").node, {"p": names}))
    x between :low - 3 and 3 + 2 * :high
    """
    banded = {name: names.bounds() for name, names in bands.items()}
    return map_predicates(node, lambda predicate: _widened(predicate, banded))


def _widened(predicate: Predicate, banded: Mapping[str, Bounds]) -> Node:
    if not any(_is_banded(operand, banded) for operand in predicate.operands):
        return predicate
    name, operator = predicate.attribute, predicate.operator
    if operator in STRING_OPERATORS:
        raise UnresolvedError(
            f"`{predicate}` needs a string, and a band is of numbers; make it a plain Parameter"
        )
    if operator in (Operator.IN, Operator.NOT_IN):
        return _widened_list(predicate, banded)
    try:
        bounds = [_bounds(operand, banded) for operand in predicate.operands]
    except UnresolvedError as error:
        raise UnresolvedError(f"in `{predicate}`, {error}. {_ADVICE}") from None
    low, high = bounds[0][0], bounds[-1][1]
    match operator:
        case Operator.LESS | Operator.LESS_EQUAL:
            return Predicate(name, operator, (high,))
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return Predicate(name, operator, (low,))
        case Operator.EQUAL | Operator.BETWEEN:
            return Predicate(name, Operator.BETWEEN, (low, high))
        case Operator.NOT_BETWEEN:  # the narrowest interval to be outside of
            return Predicate(name, operator, (bounds[0][1], bounds[1][0]))
        case _:  # !=: every value differs from some value in the band
            return Predicate(name, Operator.PRESENT)


def _widened_list(predicate: Predicate, banded: Mapping[str, Bounds]) -> Node:
    """`in` and `not in`: each banded operand becomes a comparison of its own."""
    name, is_in = predicate.attribute, predicate.operator is Operator.IN
    single = Operator.EQUAL if is_in else Operator.NOT_EQUAL
    plain = tuple(each for each in predicate.operands if not _is_banded(each, banded))
    parts: list[Node] = [
        _widened(Predicate(name, single, (operand,)), banded)
        for operand in predicate.operands
        if _is_banded(operand, banded)
    ]
    if plain:
        parts.append(Predicate(name, predicate.operator, plain))
    # Several banded operands of `not in` all become the same `is not null`.
    return any_of(parts) if is_in else all_of(dict.fromkeys(parts))


def _is_banded(expression: Expression, banded: Mapping[str, Bounds]) -> bool:
    return any(
        isinstance(leaf, ParameterRef) and leaf.name in banded for leaf in leaves(expression)
    )


def _bounds(expression: Expression, banded: Mapping[str, Bounds]) -> Bounds:
    """The bounds of an expression; raises UnresolvedError if it has none, or if they are long."""
    if not _is_banded(expression, banded):
        return expression, expression
    match expression:
        case ParameterRef(name):
            return banded[name]
        case Negated(operand):
            low, high = _bounds(operand, banded)
            return Negated(high), Negated(low)
        case Arithmetic(operator, left, right):
            bounds = _arithmetic_bounds(operator, _bounds(left, banded), _bounds(right, banded))
        case Call(function, arguments):
            bounds = _call_bounds(function, [_bounds(each, banded) for each in arguments])
        case _:
            raise TypeError(f"{expression} has no parameter")
    if bounds is None:
        text = format_expression(expression)
        raise UnresolvedError(f"the range of `{text}` over a band of values is not known")
    if sum(1 for bound in bounds for _ in leaves(bound)) > _LEAVES_MAX:
        text = format_expression(expression)
        raise UnresolvedError(f"the bounds of `{text}` have more than {_LEAVES_MAX} operands")
    return bounds


def _arithmetic_bounds(operator: str, a: Bounds, b: Bounds) -> Bounds | None:
    (a_low, a_high), (b_low, b_high) = a, b
    match operator:
        case "+":
            return Arithmetic("+", a_low, b_low), Arithmetic("+", a_high, b_high)
        case "-":
            return Arithmetic("-", a_low, b_high), Arithmetic("-", a_high, b_low)
        case "*":
            return _scaled("*", a, b)
        case "/" if b_low is b_high:  # a band as divisor could contain 0
            return _scaled("/", a, b)
    return None


def _scaled(operator: str, a: Bounds, b: Bounds) -> Bounds:
    """The bounds of a product or quotient: its extremes are at the corners of the two bands.

    With a constant factor, its sign decides which corner is the lower bound; else `min` and `max`
    of the corners do when the filter is evaluated.
    """
    corners = [Arithmetic(operator, x, y) for x in dict.fromkeys(a) for y in dict.fromkeys(b)]
    for low, high in (a, b):
        factor = as_float(low.value) if low is high and isinstance(low, Constant) else None
        if factor is not None:
            return (corners[0], corners[1]) if factor >= 0 else (corners[1], corners[0])
    return Call("min", tuple(corners)), Call("max", tuple(corners))


def _call_bounds(function: str, arguments: list[Bounds]) -> Bounds | None:
    lows, highs = tuple(low for low, _ in arguments), tuple(high for _, high in arguments)
    zero = Constant(0)
    match function:
        case "min" | "max" | "floor" | "ceil":  # monotonic in each argument
            return Call(function, lows), Call(function, highs)
        case "abs":
            # If the band contains 0 the least is 0; else it is the bound that is nearer to 0.
            low, high = lows[0], highs[0]
            greatest = Call("max", (Call("abs", (low,)), Call("abs", (high,))))
            return Call("max", (low, Negated(high), zero)), greatest
        case "sqrt":
            # sqrt of a negative number is undefined and matches nothing, but the part of the band
            # that is not negative may match.
            return Call("sqrt", (Call("max", (lows[0], zero)),)), Call("sqrt", highs)
    return None
