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

from tidegate.errors import BadValueError
from tidegate.language.cursor import Cursor, guess
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Now,
    Parameter,
    Variable,
)
from tidegate.language.tokens import Token, TokenKind, unquote
from tidegate.language.values import INT_MAX, INT_MIN, parse_timestamp, to_value

_FUNCTION_NAMES = sorted([*FUNCTIONS, *CHOICES, "now"])


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that was read from the text: which token, and whether a minus came before it."""

    constant: Constant
    token: Token
    negated: bool = False
    timestamp: bool = False


class ValueParser:
    """Reads value expressions; ``literals`` lists their constants in the order of the text."""

    def __init__(self, cursor: Cursor) -> None:
        self.literals: list[Literal] = []
        self._at = cursor

    def operand(self, operator: str) -> Expression:
        """The value right of an operator."""
        return self._at.nested(lambda: self._sum(operator))

    def _sum(self, operator: str) -> Expression:
        return self._chain(("+", "-"), lambda: self._product(operator))

    def _product(self, operator: str) -> Expression:
        return self._chain(("*", "/", "%"), lambda: self._factor(operator))

    def _chain(self, symbols: tuple[str, ...], part: Callable[[], Expression]) -> Expression:
        first = self._at.token
        left = part()
        entered = 0
        while self._at.token.word in symbols:
            self._at.enter()
            entered += 1
            symbol = self._at.advance().word
            self._check_arithmetic(left, first, symbol)
            first = self._at.token
            right = part()
            self._check_arithmetic(right, first, symbol)
            left = Arithmetic(symbol, left, right)
        self._at.leave(entered)
        return left

    def _check_arithmetic(self, operand: Expression, token: Token, symbol: str) -> None:
        """Refuse constants that can never take part; parameters are judged by their values."""
        if not isinstance(operand, Constant):
            return
        if isinstance(operand.value, (bool, str)):
            raise self._at.error("arithmetic needs numbers (or a timestamp and seconds)", token)
        if symbol not in "+-" and not isinstance(operand.value, (int, float)):
            raise self._at.error("a timestamp can only be added to or subtracted from", token)

    def _factor(self, operator: str) -> Expression:
        token = self._at.token
        if self._at.accept("-"):
            return self._negative(operator)
        if self._at.accept("("):
            inner = self._at.nested(lambda: self._sum(operator))
            self._at.expect(")", "the parenthesis is not closed")
            return inner
        match token.kind:
            case TokenKind.NUMBER:
                return self._number(negated=False)
            case TokenKind.STRING:
                self._at.advance()
                return self._literal(Constant(self._checked(token)), token)
            case TokenKind.PARAMETER:
                return Parameter(self._at.advance().text[1:])
            case TokenKind.VARIABLE:
                return Variable(self._at.advance().text[1:])
            case TokenKind.NAME:
                return self._named(operator)
        raise self._at.error(f"a value must follow {operator!r}" + self._at.found(), token)

    def _negative(self, operator: str) -> Expression:
        if self._at.token.kind is TokenKind.NUMBER:
            return self._number(negated=True)
        if self._at.token.word == "infinity":
            self._at.advance()
            return Constant(float("-inf"))
        token = self._at.token
        operand = self._at.nested(lambda: self._factor(operator))
        self._check_arithmetic(operand, token, "*")
        return Negated(operand)

    def _number(self, *, negated: bool) -> Expression:
        token = self._at.advance()
        constant = Constant(self._read_number(token, negated))
        return self._literal(constant, token, negated)

    def _read_number(self, token: Token, negated: bool) -> int | float:
        if token.text.isdecimal():
            whole = -int(token.text) if negated else int(token.text)
            if not INT_MIN <= whole <= INT_MAX:
                raise self._at.error(
                    "an integer must fit in 64 bits; write it with .0 for a float", token
                )
            return whole
        number = float(token.text)
        if number == float("inf"):
            raise self._at.error("the number is too large for a float; write `infinity`", token)
        return -number if negated else number

    def _literal(
        self, constant: Constant, token: Token, negated: bool = False, timestamp: bool = False
    ) -> Constant:
        self.literals.append(Literal(constant, token, negated, timestamp))
        return constant

    def _named(self, operator: str) -> Expression:
        token = self._at.advance()
        if token.word in ("true", "false"):
            return Constant(token.word == "true")
        if token.word == "infinity":
            return Constant(float("inf"))
        if token.word == "t" and self._at.token.word != "(":
            return Elapsed()
        if token.word == "timestamp" and self._at.token.kind is TokenKind.STRING:
            text = self._at.advance()
            try:
                time = parse_timestamp(unquote(text.text))
            except BadValueError as error:
                raise self._at.error(str(error), text) from None
            return self._literal(Constant(time), text, timestamp=True)
        if self._at.token.word == "(":
            return self._function(token)
        raise self._at.error(
            f"the right side of {operator!r} must be a value; {token.text!r} would be an "
            f"attribute. Write :{_as_name(token)} for a parameter or '{token.text}' for a string",
            token,
        )

    def _function(self, name: Token) -> Expression:
        if name.word not in _FUNCTION_NAMES:
            raise self._at.error(
                f"there is no function {name.text!r}; there are {', '.join(_FUNCTION_NAMES)}"
                + guess(name, _FUNCTION_NAMES),
                name,
            )
        self._at.advance()
        arguments: list[Expression] = []
        if self._at.token.word != ")":
            arguments.append(self._argument(name))
            while self._at.accept(","):
                arguments.append(self._argument(name))
        self._at.expect(
            ")", f"the arguments of {name.text} are separated by commas and closed by )"
        )
        wanted, fits = _arity(name.word)
        if not fits(len(arguments)):
            raise self._at.error(f"{name.word} takes {wanted}, not {len(arguments)}", name)
        return Call(name.word, tuple(arguments)) if arguments else Now()

    def _argument(self, function: Token) -> Expression:
        token = self._at.token
        argument = self.operand(function.word)
        self._check_arithmetic(argument, token, "*")
        return argument

    def _checked(self, token: Token) -> str:
        try:
            return str(to_value(unquote(token.text)))
        except BadValueError as error:
            raise self._at.error(str(error), token) from None


def _arity(function: str) -> tuple[str, Callable[[int], bool]]:
    if function == "now":
        return "no arguments", lambda count: count == 0
    if function in CHOICES:
        return "two arguments or more", lambda count: count >= 2
    return "one argument", lambda count: count == 1


def _as_name(token: Token) -> str:
    return token.text.replace(".", "_")
