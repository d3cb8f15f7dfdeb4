"""The parser of value expressions, the right side of a predicate.

value    = term { ("+" | "-") term }
term     = factor { ("*" | "/" | "%") factor }
factor   = "-" factor | "(" value ")" | literal | ":"name | "@"name | "t" | "now" "(" ")"
         | function "(" value { "," value } ")"
literal  = NUMBER | STRING | "timestamp" STRING | "true" | "false" | "infinity"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from reprlib import repr as shortened

from tidegate.errors import BadValueError, FilterError
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    PRECEDENCE,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Variable,
)
from tidegate.language.parsing.cursor import Cursor, guess
from tidegate.language.parsing.tokens import Token, TokenKind, unquote
from tidegate.language.syntax import RESERVED
from tidegate.language.values import INT_MAX, INT_MIN, parse_timestamp, to_value

_FUNCTION_NAMES = sorted([*FUNCTIONS, *CHOICES, "now"])
_NO_VALUES = RESERVED - {"true", "false"}
_INT_DIGITS_MAX = 19
"""The digits of 2**63. int() of many more takes quadratic time, and of thousands it raises."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant and the token it was read from, for the templates of bulk parsing."""

    constant: Constant
    token: Token
    negated: bool = False
    """Whether a minus before the token is part of the constant."""
    timestamp: bool = False
    """Whether the token is the string of a `timestamp '...'`."""


class ValueParser:
    """Parses value expressions; ``literals`` lists their constants in the order of the text."""

    def __init__(self, cursor: Cursor) -> None:
        self.literals: list[Literal] = []
        self._cursor = cursor

    def operand(self, operator: str) -> Expression:
        """Parse the value right of an operator, which error messages name."""
        self._cursor.enter()
        value = self._value(operator)
        self._cursor.leave()
        return value

    def _value(self, operator: str, level: int = 1) -> Expression:
        """Parse operations that bind as tightly as ``level`` or tighter (precedence climbing).

        Operators of one level associate to the left, so each one makes the tree one level deeper:
        `1 + 1 + 1 + ...` counts against the depth limit as nested parentheses do.
        """
        cursor, first, entered = self._cursor, self._cursor.token, 0
        left = self._factor(operator)
        while (tightness := PRECEDENCE.get(cursor.token.word, 0)) >= level:
            cursor.enter()
            entered += 1
            symbol = cursor.advance().word
            self._check_arithmetic(left, first, symbol)
            first = cursor.token
            right = self._value(operator, tightness + 1)
            self._check_arithmetic(right, first, symbol)
            left = Arithmetic(symbol, left, right)
        cursor.leave(entered)
        return left

    def _check_arithmetic(self, operand: Expression, token: Token, symbol: str) -> None:
        """Refuse constants of a wrong kind; the kinds of parameters are not known to the parser."""
        if not isinstance(operand, Constant):
            return
        if isinstance(operand.value, (bool, str)):
            raise self._cursor.error("arithmetic needs numbers (or a timestamp and seconds)", token)
        if symbol not in "+-" and not isinstance(operand.value, (int, float)):
            raise self._cursor.error("a timestamp can only be added to or subtracted from", token)

    def _factor(self, operator: str) -> Expression:
        token = self._cursor.token
        if self._cursor.accept("-"):
            return self._negative(operator)
        if self._cursor.accept("("):
            inner = self.operand(operator)
            self._cursor.expect(")", "the parenthesis is not closed")
            return inner
        match token.kind:
            case TokenKind.NUMBER:
                return self._number(negated=False)
            case TokenKind.STRING:
                self._cursor.advance()
                return self._literal(Constant(self.unquoted(token)), token)
            case TokenKind.PARAMETER:
                return ParameterRef(self._cursor.advance().text[1:])
            case TokenKind.VARIABLE:
                return Variable(self._cursor.advance().text[1:])
            case TokenKind.NAME if token.word not in _NO_VALUES:
                return self._named(operator)
        raise self._missing_value(operator, token)

    def _missing_value(self, operator: str, token: Token) -> FilterError:
        if token.kind is TokenKind.QUOTED_NAME:
            reason = f"the right side of {operator!r} must be a value, not an attribute"
        elif token.word == "null":
            reason = "null is not a value; `is not null` tests whether the attribute is present"
        else:
            last = shortened(self._cursor.previous.text)
            reason = f"a value must follow {last}" + self._cursor.but_found()
        return self._cursor.error(reason, token)

    def _negative(self, operator: str) -> Expression:
        # A minus before a number is part of the literal: so -9223372036854775808 is an integer,
        # whose digits alone do not fit in 64 bits, and integers stay exact.
        if self._cursor.token.kind is TokenKind.NUMBER:
            return self._number(negated=True)
        if self._cursor.token.word == "infinity":
            self._cursor.advance()
            return Constant(float("-inf"))
        token = self._cursor.token
        self._cursor.enter()
        operand = self._factor(operator)
        self._cursor.leave()
        self._check_arithmetic(operand, token, "*")
        return Negated(operand)

    def _number(self, *, negated: bool) -> Expression:
        token = self._cursor.advance()
        constant = Constant(self._read_number(token, negated))
        return self._literal(constant, token, negated)

    def _read_number(self, token: Token, negated: bool) -> int | float:
        if token.text.isdecimal():
            digits = token.text.lstrip("0")
            whole = int(digits[:_INT_DIGITS_MAX] or "0")
            whole = -whole if negated else whole
            if len(digits) > _INT_DIGITS_MAX or not INT_MIN <= whole <= INT_MAX:
                raise self._cursor.error(
                    "an integer must fit in 64 bits; write it with .0 for a float", token
                )
            return whole
        number = float(token.text)
        if number == float("inf"):
            raise self._cursor.error("the number is too large for a float; write `infinity`", token)
        return -number if negated else number

    def _literal(
        self, constant: Constant, token: Token, negated: bool = False, timestamp: bool = False
    ) -> Constant:
        self.literals.append(Literal(constant, token, negated, timestamp))
        return constant

    def _named(self, operator: str) -> Expression:
        token = self._cursor.advance()
        if token.word in ("true", "false"):
            return Constant(token.word == "true")
        if token.word == "infinity":
            return Constant(float("inf"))
        if token.word == "t" and self._cursor.token.word != "(":
            return Elapsed()
        if token.word == "timestamp":
            return self._timestamp()
        if self._cursor.token.word == "(":
            return self._function(token, operator)
        if token.word == "now":
            raise self._cursor.error("the time is written now(), with parentheses", token)
        raise self._cursor.error(
            f"the right side of {operator!r} must be a value; {token.text!r} would be an "
            f"attribute. Write :{_as_name(token)} for a parameter or '{token.text}' for a string",
            token,
        )

    def _timestamp(self) -> Expression:
        token = self._cursor.take(
            TokenKind.STRING, "a string after `timestamp`, as in timestamp '2026-01-02T03:04:05Z'"
        )
        try:
            time = parse_timestamp(unquote(token.text))
        except BadValueError as error:
            raise self._cursor.error(str(error), token) from None
        return self._literal(Constant(time), token, timestamp=True)

    def _function(self, name: Token, operator: str) -> Expression:
        if name.word not in _FUNCTION_NAMES:
            raise self._cursor.error(
                f"there is no function {name.text!r}; there are {', '.join(_FUNCTION_NAMES)}"
                + guess(name, _FUNCTION_NAMES),
                name,
            )
        self._cursor.advance()
        arguments: list[Expression] = []
        if self._cursor.token.word != ")":
            arguments.append(self._argument(operator))
            while self._cursor.accept(","):
                arguments.append(self._argument(operator))
        self._cursor.expect(
            ")", f"the arguments of {name.text} are separated by commas and closed by )"
        )
        wanted, is_right = _arity(name.word)
        if not is_right(len(arguments)):
            raise self._cursor.error(f"{name.word} takes {wanted}, not {len(arguments)}", name)
        return Call(name.word, tuple(arguments)) if arguments else Now()

    def _argument(self, operator: str) -> Expression:
        token = self._cursor.token
        argument = self.operand(operator)
        self._check_arithmetic(argument, token, "*")
        return argument

    def unquoted(self, token: Token) -> str:
        """The text between the quotes or backticks of a token, checked to be valid Unicode."""
        try:
            return str(to_value(unquote(token.text)))
        except BadValueError as error:
            raise self._cursor.error(str(error), token) from None


def _arity(function: str) -> tuple[str, Callable[[int], bool]]:
    """How many arguments a function takes: in words, and as a test."""
    if function == "now":
        return "no arguments", lambda count: count == 0
    if function in CHOICES:
        return "two arguments or more", lambda count: count >= 2
    return "one argument", lambda count: count == 1


def _as_name(token: Token) -> str:
    return token.text.replace(".", "_")
