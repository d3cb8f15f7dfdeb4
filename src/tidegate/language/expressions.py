"""Value expressions: the right side of an operator, `-3 + t` or `:near * @load`.

Arithmetic is in 64-bit floats; a bare constant or parameter stays exact. A timestamp plus or minus
a number is the timestamp that many seconds later or earlier, and the difference of two timestamps
is a number of seconds. Where a value is undefined (division by zero, a missing parameter or
variable, a wrong kind, the square root of a negative number) the result is None, and so is
everything that is computed from it. Overflow is not an error: the result is infinity, as in IEEE
754.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidegate.language.values import Value, format_value, from_us, to_us


@dataclass(frozen=True, slots=True)
class Environment:
    """The values that expressions refer to: parameters, variables, `t` (seconds) and `now()`."""

    parameters: Mapping[str, Value] = field(default_factory=dict)
    variables: Mapping[str, Value] = field(default_factory=dict)
    t: float = 0.0
    now: datetime | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value written in the text.

    `1`, `1.0` and `true` are three different constants, although Python finds them equal: texts
    that print differently must not share a cached tree, shape or predicate.
    """

    value: Value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """`:name`, a value that the subscriber sets and changes."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`@name`, a value of the broker that judges the event: its mode, its load."""

    name: str


@dataclass(frozen=True, slots=True)
class Elapsed:
    """`t`, the seconds since the subscription began."""


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`, the time at which the event is judged."""


@dataclass(frozen=True, slots=True)
class Slot:
    """`?`, the slot of a shape that the row's n-th value fills."""

    index: int


@dataclass(frozen=True, slots=True)
class Negated:
    """`-x`, where `x` is not a number literal: `-3` is a `Constant`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left + right`, with one of `+ - * / %`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A function of numbers: `min(:a, t)`."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Constant | ParameterRef | Variable | Elapsed | Now | Slot | Negated | Arithmetic | Call


def evaluate(expression: Expression, environment: Environment) -> Value | None:
    """The value of an expression; None where it is undefined.

    >>> evaluate(Arithmetic("+", Constant(-3), Elapsed()), Environment(t=1.5))
    -1.5
    """
    match expression:
        case Constant(value):
            return value
        case ParameterRef(name):
            return environment.parameters.get(name)
        case Variable(name):
            return environment.variables.get(name)
        case Elapsed():
            return environment.t
        case Now():
            return environment.now
        case Negated(operand):
            number = as_float(evaluate(operand, environment))
            return None if number is None else -number
        case Arithmetic(operator, left, right):
            return _combine(operator, evaluate(left, environment), evaluate(right, environment))
        case Call(function, arguments):
            return _call(function, [evaluate(each, environment) for each in arguments])
        case Slot():
            raise TypeError("a shape has no value of its own; fill it with a row first")


def as_float(value: Value | None) -> float | None:
    """A number as a 64-bit float, the only type arithmetic is done in; None for other kinds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def _combine(operator: str, left: Value | None, right: Value | None) -> Value | None:
    if isinstance(left, datetime) or isinstance(right, datetime):
        return _combine_times(operator, left, right)
    a, b = as_float(left), as_float(right)
    if a is None or b is None:
        return None
    return _defined(combine_floats(operator, a, b))


def combine_floats(operator: str, a: float, b: float) -> float:
    """One arithmetic operation on 64-bit floats; NaN where it is undefined."""
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if b == 0.0:  # Python would raise ZeroDivisionError
        return math.nan
    if operator == "/":
        return a / b
    # fmod, not Python's %: the result has the sign of `a`, as in SQL, C and the compiled kernels.
    return math.nan if math.isinf(a) else math.fmod(a, b)


def _combine_times(operator: str, left: Value | None, right: Value | None) -> Value | None:
    if isinstance(left, datetime) and isinstance(right, datetime):
        return (to_us(left) - to_us(right)) / 1e6 if operator == "-" else None
    # One timestamp and something else: `time + s`, `s + time` and `time - s` are defined.
    time, other = (left, right) if isinstance(left, datetime) else (right, left)
    seconds = as_float(other)
    if seconds is None or not isinstance(time, datetime):
        return None
    if operator == "-" and time is left:
        seconds = -seconds
    elif operator != "+":
        return None
    shift_us = seconds * 1e6
    return from_us(to_us(time) + round(shift_us)) if math.isfinite(shift_us) else None


def _defined(number: float) -> float | None:
    """None for NaN, which marks an undefined result among floats."""
    return None if number != number else number


# Python raises where IEEE 754 and the compiled kernels return infinity or NaN: math.exp on
# overflow, math.floor of infinity, math.sin of infinity, math.sqrt and math.log outside of their
# domains. The functions below return what floats define.


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _whole(rounding: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(rounding(x)) if math.isfinite(x) else x


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "exp": _exp,
    "ln": lambda x: math.log(x) if x > 0 else math.nan,
    "sin": lambda x: math.sin(x) if math.isfinite(x) else math.nan,
    "cos": lambda x: math.cos(x) if math.isfinite(x) else math.nan,
}
"""Functions of one number; NaN marks an undefined result."""

CHOICES: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
"""Functions of two or more numbers."""


def _call(function: str, arguments: list[Value | None]) -> float | None:
    numbers: list[float] = []
    for argument in arguments:
        number = as_float(argument)
        if number is None:
            return None
        numbers.append(number)
    if function in CHOICES:
        return CHOICES[function](numbers)
    return _defined(FUNCTIONS[function](numbers[0]))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct operands of an expression."""
    match expression:
        case Negated(operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Call(_, arguments):
            return arguments
        case _:
            return ()


def leaves(expression: Expression) -> Iterator[Expression]:
    """The constants, parameters, variables and times in an expression, left to right."""
    parts = children(expression)
    if not parts:
        yield expression
    for part in parts:
        yield from leaves(part)


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same expression with every leaf replaced by ``change(leaf)``."""
    match expression:
        case Negated(operand):
            return Negated(rebuild(operand, change))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, rebuild(left, change), rebuild(right, change))
        case Call(function, arguments):
            return Call(function, tuple(rebuild(each, change) for each in arguments))
        case _:
            return change(expression)


PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
"""How tightly an operation binds."""


def format_expression(expression: Expression) -> str:
    """An expression as it is written in a filter, with no more parentheses than it needs.

    >>> format_expression(Arithmetic("*", Arithmetic("+", Constant(1), Elapsed()), Now()))
    '(1 + t) * now()'
    """
    match expression:
        case Constant(value):
            return format_value(value)
        case ParameterRef(name):
            return f":{name}"
        case Variable(name):
            return f"@{name}"
        case Elapsed():
            return "t"
        case Now():
            return "now()"
        case Slot():
            return "?"
        case Negated(operand):
            # `-(3)` keeps its parentheses: without them it would be read as the constant -3.
            text = format_expression(operand)
            number = isinstance(operand, Constant) and not text.startswith("-")
            return f"-({text})" if number or isinstance(operand, Arithmetic) else f"-{text}"
        case Call(function, arguments):
            return f"{function}({', '.join(format_expression(each) for each in arguments)})"
        case Arithmetic(operator, left, right):
            level = PRECEDENCE[operator]
            return f"{_operand(left, level)} {operator} {_operand(right, level + 1)}"


def _operand(expression: Expression, level: int) -> str:
    text = format_expression(expression)
    if isinstance(expression, Arithmetic) and PRECEDENCE[expression.operator] < level:
        return f"({text})"
    return text
