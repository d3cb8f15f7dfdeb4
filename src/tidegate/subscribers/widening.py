"""Filters for values that are known up to a band: what matches with any value of the band.

Rule. The widened filter matches whatever the filter matches with some value of each band, as floats
compute both, as long as what else stands in the expressions is finite.

Theory of operation. In place of a parameter that has a band, its bounds are sent, as parameters of
other names: `x < :p + 3` becomes `x < :p_high + 3`, and where the band moves, `x < :p_high +
:p_rate * t + 3`. Interval arithmetic on expressions gives the least and the greatest that the right
side of a predicate can be, and the predicate takes the one that lets more through. Rounding keeps
order, so nothing has to be added for it (compare `language/ranges.py`). Where that is not possible
(`%`, a division by the parameter, functions that the C library computes) the filter is refused.
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

_LEAVES_MAX = 256
_RIGHT = "Use it with + - * /, min, max, abs, floor, ceil or sqrt, or as a plain Parameter"


@dataclass(frozen=True, slots=True)
class BandNames:
    """The names under which the band of a parameter is sent; no rate if it never moves."""

    low: str
    high: str
    rate: str | None = None

    @classmethod
    def named(cls, name: str, taken: Collection[str], *, moves: bool) -> BandNames:
        """Names for the band of a parameter, other than those that are taken.

        >>> Bounds.named("x", ["x", "x_low"], moves=False)
        Bounds(low='x_low_', high='x_high', rate=None)
        """

        def free(wanted: str) -> str:
            while wanted in taken:
                wanted += "_"
            return wanted

        rate = free(f"{name}_rate") if moves else None
        return cls(free(f"{name}_low"), free(f"{name}_high"), rate)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (self.low, self.high) if self.rate is None else (self.low, self.high, self.rate)

    def expressions(self) -> ExpressionPair:
        """The bounds as functions of time."""
        low, high = ParameterRef(self.low), ParameterRef(self.high)
        if self.rate is None:
            return low, high
        moved = Arithmetic("*", ParameterRef(self.rate), Elapsed())
        return Arithmetic("+", low, moved), Arithmetic("+", high, moved)


ExpressionPair = tuple[Expression, Expression]
"""The least and the greatest that an expression can be."""


def widen(node: Node, bands: Mapping[str, BandNames]) -> Node:
    """The filter that matches with any values of the bands; UnresolvedError if there is none.

    >>> from tidegate.language.filters import parse
    >>> print(widen(parse("x between :p - 3 and 3 + 2 * :p").node, {"p": Bounds("low", "high")}))
    x between :low - 3 and 3 + 2 * :high
    """
    known = {name: bounds.expressions() for name, bounds in bands.items()}
    return map_predicates(node, lambda predicate: _widened(predicate, known))


def _widened(predicate: Predicate, known: Mapping[str, ExpressionPair]) -> Node:
    if not any(_is_known(operand, known) for operand in predicate.operands):
        return predicate
    name, operator = predicate.attribute, predicate.operator
    if operator in STRING_OPERATORS:
        raise UnresolvedError(f"`{predicate}` needs a string; make it a plain Parameter")
    if operator in (Operator.IN, Operator.NOT_IN):
        return _widened_list(predicate, known)
    try:
        pairs = [_pair(operand, known) for operand in predicate.operands]
    except UnresolvedError as error:
        raise UnresolvedError(f"in `{predicate}`, {error}. {_RIGHT}") from None
    low, high = pairs[0][0], pairs[-1][1]
    match operator:
        case Operator.LESS | Operator.LESS_EQUAL:
            return Predicate(name, operator, (high,))
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return Predicate(name, operator, (low,))
        case Operator.EQUAL | Operator.BETWEEN:
            return Predicate(name, Operator.BETWEEN, (low, high))
        case Operator.NOT_BETWEEN:
            return Predicate(name, operator, (pairs[0][1], pairs[1][0]))
        case _:  # it can be any value but one that is not known
            return Predicate(name, Operator.PRESENT)


def _widened_list(predicate: Predicate, known: Mapping[str, ExpressionPair]) -> Node:
    """`in` and `not in`: what is not known is compared by itself."""
    name, among = predicate.attribute, predicate.operator is Operator.IN
    single = Operator.EQUAL if among else Operator.NOT_EQUAL
    plain = tuple(each for each in predicate.operands if not _is_known(each, known))
    parts: list[Node] = [
        _widened(Predicate(name, single, (operand,)), known)
        for operand in predicate.operands
        if _is_known(operand, known)
    ]
    if plain:
        parts.append(Predicate(name, predicate.operator, plain))
    return any_of(parts) if among else all_of(dict.fromkeys(parts))


def _is_known(expression: Expression, known: Mapping[str, ExpressionPair]) -> bool:
    return any(isinstance(leaf, ParameterRef) and leaf.name in known for leaf in leaves(expression))


def _pair(expression: Expression, known: Mapping[str, ExpressionPair]) -> ExpressionPair:
    """The least and the greatest of an expression; their sizes are bounded."""
    if not _is_known(expression, known):
        return expression, expression
    match expression:
        case ParameterRef(name):
            return known[name]
        case Negated(operand):
            low, high = _pair(operand, known)
            return Negated(high), Negated(low)
        case Arithmetic(operator, left, right):
            pair = _combined(operator, _pair(left, known), _pair(right, known))
        case Call(function, arguments):
            pair = _called(function, [_pair(each, known) for each in arguments])
        case _:
            raise TypeError(f"{expression} is not known by a name")
    if pair is None:
        raise UnresolvedError(f"there is no telling how far `{format_expression(expression)}` goes")
    if sum(1 for end in pair for _ in leaves(end)) > _LEAVES_MAX:
        raise UnresolvedError(f"`{format_expression(expression)}` has too many parts")
    return pair


def _combined(operator: str, a: ExpressionPair, b: ExpressionPair) -> ExpressionPair | None:
    (a_low, a_high), (b_low, b_high) = a, b
    match operator:
        case "+":
            return Arithmetic("+", a_low, b_low), Arithmetic("+", a_high, b_high)
        case "-":
            return Arithmetic("-", a_low, b_high), Arithmetic("-", a_high, b_low)
        case "*":
            return _scaled("*", a, b)
        case "/" if b_low is b_high:
            return _scaled("/", a, b)
    return None


def _scaled(operator: str, a: ExpressionPair, b: ExpressionPair) -> ExpressionPair:
    """A product or quotient, at the corners; the sign of a constant says which is the least."""
    corners = [Arithmetic(operator, x, y) for x in dict.fromkeys(a) for y in dict.fromkeys(b)]
    for low, high in (a, b):
        factor = as_float(low.value) if low is high and isinstance(low, Constant) else None
        if factor is not None:
            return (corners[0], corners[1]) if factor >= 0 else (corners[1], corners[0])
    return Call("min", tuple(corners)), Call("max", tuple(corners))


def _called(function: str, parts: list[ExpressionPair]) -> ExpressionPair | None:
    lows, highs = tuple(low for low, _ in parts), tuple(high for _, high in parts)
    zero = Constant(0)
    match function:
        case "min" | "max" | "floor" | "ceil":
            return Call(function, lows), Call(function, highs)
        case "abs":
            low, high = lows[0], highs[0]
            most = Call("max", (Call("abs", (low,)), Call("abs", (high,))))
            return Call("max", (low, Negated(high), zero)), most
        case "sqrt":  # of what is negative there is none, but there is of the rest of the band
            return Call("sqrt", (Call("max", (lows[0], zero)),)), Call("sqrt", highs)
    return None
