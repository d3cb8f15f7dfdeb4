"""From tokens to the tree of a filter or a pattern: a recursive descent parser.

    pattern     = filter { "then" filter } [ "within" NUMBER unit ]
    filter      = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation    = "not" negation | "(" filter ")" | "true" | "false" | predicate
    predicate   = attribute comparison value
                | attribute ["not"] ( "between" value "and" value | "in" "(" value { "," value } ")"
                                    | "like" value | "starts" "with" value | "ends" "with" value
                                    | "contains" value )
                | attribute "is" "not" "null"

Values are read by value_parser.py. `not` leaves no trace in the tree: each predicate below it is
replaced by its complement. The size of the tree is checked here, before anything multiplies out its
disjunctions. docs/filters.md has the same grammar in EBNF; a test parses texts generated from it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidegate.errors import FilterError
from tidegate.language.algebra.like import Glob, GlobError
from tidegate.language.durations import UNITS
from tidegate.language.expressions import Constant, Expression, ParameterRef, Variable, children
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.cursor import Cursor, guess
from tidegate.language.parsing.tokens import Token, TokenKind
from tidegate.language.parsing.value_parser import Literal, ValueParser
from tidegate.language.syntax import (
    COMPLEMENT,
    RESERVED,
    And,
    Node,
    Operator,
    Or,
    Predicate,
    Truth,
    all_of,
    any_of,
    format_attribute,
)

_COMPARISONS = {
    "=": Operator.EQUAL,
    "!=": Operator.NOT_EQUAL,
    "<>": Operator.NOT_EQUAL,
    "<": Operator.LESS,
    "<=": Operator.LESS_EQUAL,
    ">": Operator.GREATER,
    ">=": Operator.GREATER_EQUAL,
}
_STRING_OPERATORS = {
    "like": Operator.LIKE,
    "starts": Operator.STARTS_WITH,
    "ends": Operator.ENDS_WITH,
    "contains": Operator.CONTAINS,
}
_WITHIN_S_MAX = 1e12  # 30,000 years; timestamps span 10,000


def parse_filter(text: str, limits: Limits = DEFAULT_LIMITS) -> Node:
    """Parse the text of a filter; raises FilterError."""
    return Parser(text, limits).filter()


Span = tuple[int, int]
"""The offsets at which a part of the text starts and ends."""


class PlacedPredicate(NamedTuple):
    """A predicate as it was written, before any `not`, and the places of its parts."""

    predicate: Predicate
    attribute: Span
    operands: tuple[Span, ...]


class Parser:
    """Parses one text, as a filter or as a pattern."""

    def __init__(self, text: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._cursor = Cursor(text, limits)
        self._start = self._cursor.token
        self._values = ValueParser(self._cursor)
        self._operand_spans: list[Span] = []
        """The places of the operands of the predicate that is being read."""
        self.placed: list[PlacedPredicate] = []
        """The predicates that were read, in the order of the text."""

    @property
    def literals(self) -> list[Literal]:
        """The literals that were read, in the order of the text."""
        return self._values.literals

    # -- whole texts --------------------------------------------------------------------------

    def filter(self) -> Node:
        """Parse the whole text as a filter."""
        node = self._whole_filter()
        if self._cursor.token.word in ("then", "within"):
            raise self._cursor.error("`then` and `within` make a pattern; use parse_pattern for it")
        self._cursor.expect_end()
        return node

    def pattern(self) -> tuple[tuple[Node, ...], float | None]:
        """Parse the whole text as a pattern; returns its steps and the seconds of `within`."""
        start = self._cursor.token.start
        steps = [self._whole_filter()]
        size = size_of(steps[0])
        while self._cursor.accept("then"):
            steps.append(self._whole_filter())
            # The steps of a pattern share the limits of a filter, as they share a text.
            size = Size(*map(sum, zip(size, size_of(steps[-1]), strict=True)))
            self._check_size(size, start)
            if len(steps) > self._cursor.limits.pattern_steps_max:
                raise self._cursor.limit(
                    f"a pattern has at most {self._cursor.limits.pattern_steps_max} steps"
                )
        within_s = self._within() if self._cursor.accept("within") else None
        if self._cursor.token.word == "then":
            raise self._cursor.error("`within` comes at the end, after the last step")
        self._cursor.expect_end()
        return tuple(steps), within_s

    def _whole_filter(self) -> Node:
        start = self._cursor.token.start
        # Only for an empty text; after a `then` the end is an ordinary error.
        if self._cursor.token.kind is TokenKind.END and self._cursor.token is self._start:
            raise self._cursor.error("the filter is empty; write `true` to match every event")
        node = self._disjunction()
        self._check_size(size_of(node), start)
        return node

    def _within(self) -> float:
        number = self._cursor.take(TokenKind.NUMBER, "a number of seconds, as in `within 30 s`")
        unit = self._cursor.token
        if unit.word not in UNITS:
            units = ", ".join(UNITS)
            raise self._cursor.error(
                f"expected a unit of time here, one of {units}" + self._cursor.but_found()
            )
        self._cursor.advance()
        seconds = float(number.text) * UNITS[unit.word].total_seconds()
        if seconds > _WITHIN_S_MAX:
            raise self._cursor.error(
                "longer than the range of timestamps; leave `within` out", number
            )
        return seconds

    def _check_size(self, size: Size, start: int) -> None:
        reason = over_limit(size, self._cursor.limits)
        if reason is not None:
            raise self._cursor.limit(reason, start)

    # -- filters ------------------------------------------------------------------------------

    def _disjunction(self, negated: bool = False) -> Node:
        """A disjunction; with ``negated``, the complement of the one in the text, by De Morgan."""
        parts = [self._conjunction(negated)]
        while self._cursor.accept("or"):
            parts.append(self._conjunction(negated))
        return all_of(parts) if negated else any_of(parts)

    def _conjunction(self, negated: bool) -> Node:
        parts = [self._negation(negated)]
        while self._cursor.accept("and"):
            parts.append(self._negation(negated))
        return any_of(parts) if negated else all_of(parts)

    def _negation(self, negated: bool) -> Node:
        cursor = self._cursor
        if cursor.token.word in ("true", "false"):
            return Truth((cursor.advance().word == "true") is not negated)
        if cursor.token.word not in ("not", "("):
            predicate = self._predicate()
            return _complement(predicate) if negated else predicate
        cursor.enter()
        if cursor.advance().word == "not":
            node = self._negation(not negated)
        else:
            node = self._disjunction(negated)
            cursor.expect(")", "the parenthesis is not closed")
        cursor.leave()
        return node

    def _predicate(self) -> Predicate:
        token = self._cursor.token
        self._operand_spans = []
        predicate = self._constraint(self._attribute())
        spans = tuple(self._operand_spans)
        self.placed.append(PlacedPredicate(predicate, (token.start, token.end), spans))
        return predicate

    def _constraint(self, name: str) -> Predicate:
        comparison = _COMPARISONS.get(self._cursor.token.word)
        if comparison is not None:
            symbol = self._cursor.advance().text
            return Predicate(name, comparison, (self._operand(symbol),))
        if self._cursor.accept("is"):
            return self._presence(name)
        negated = self._cursor.accept("not")
        operator, operands = self._word_operator(name)
        return Predicate(name, COMPLEMENT[operator] if negated else operator, operands)

    def _operand(self, operator: str) -> Expression:
        start = self._cursor.token.start
        operand = self._values.operand(operator)
        self._operand_spans.append((start, self._cursor.previous.end))
        return operand

    def _attribute(self) -> str:
        token = self._cursor.token
        if token.kind is TokenKind.QUOTED_NAME:
            return self._values.unquoted(self._cursor.advance())
        if token.kind is not TokenKind.NAME:
            raise self._cursor.error(
                "expected an attribute here, left of an operator" + self._cursor.but_found(), token
            )
        if token.word in RESERVED:
            raise self._cursor.error(
                f"{token.text!r} is a word of the language; "
                f"an attribute of that name is written `{token.text}` in backticks"
                if token.word not in ("and", "or", "then", "within")
                else f"expected a constraint before {token.text!r}"
            )
        return self._cursor.advance().text

    def _presence(self, name: str) -> Predicate:
        if self._cursor.accept("not"):
            self._cursor.expect("null", "`is not` is followed by `null`")
            return Predicate(name, Operator.PRESENT)
        if self._cursor.token.word in ("true", "false"):
            word = self._cursor.token.word
            raise self._cursor.error(f"write `{format_attribute(name)} = {word}` for a boolean")
        raise self._cursor.error(
            "a filter can test only for presence, with `is not null`: "
            "an absent attribute satisfies no constraint"
        )

    def _word_operator(self, name: str) -> tuple[Operator, tuple[Expression, ...]]:
        """`between`, `in` and the string operators, with their operands; `not` was read before."""
        token = self._cursor.token
        if self._cursor.accept("between"):
            low = self._operand("between")
            self._cursor.expect("and", "`between` needs two values: between 1 and 2")
            return Operator.BETWEEN, (low, self._operand("between"))
        if self._cursor.accept("in"):
            return Operator.IN, self._list_of_values()
        operator = _STRING_OPERATORS.get(token.word)
        if operator is None:
            raise self._missing_operator(name, token)
        self._cursor.advance()
        if operator.value.endswith("with"):
            self._cursor.expect("with", f"write `{operator.value}`")
        return operator, (self._string_operand(operator),)

    def _missing_operator(self, name: str, token: Token) -> FilterError:
        if token.kind is TokenKind.END or token.word in ("and", "or", ")"):
            attribute = format_attribute(name)
            reason = (
                f"an operator must follow the attribute {attribute}; "
                f"for a boolean write {attribute} = true, for presence {attribute} is not null"
            )
        elif token.word in _COMPARISONS:
            right = f"not {format_attribute(name)} {token.text} ..."
            reason = f"`not` goes before the attribute: {right}"
        elif token.word == "(":
            reason = f"left of an operator is an attribute, not a function such as {name!r}"
        elif token.word in tuple("+-*/%"):
            reason = (
                "left of an operator is an attribute alone; arithmetic goes to the right, "
                "and a name with other characters is written in backticks"
            )
        else:
            reason = (
                "expected an operator here, one of = != < <= > >=, between, in, like, "
                "starts with, ends with, contains, is not null"
            )
            reason += guess(token, ["between", "in", "like", "starts", "ends", "contains"])
        return self._cursor.error(reason, token)

    def _list_of_values(self) -> tuple[Expression, ...]:
        self._cursor.expect("(", "the values of `in` are written in parentheses: in (1, 2)")
        if self._cursor.token.word == ")":
            raise self._cursor.error("`in` needs at least one value")
        operands = [self._operand("in")]
        while self._cursor.accept(","):
            operands.append(self._operand("in"))
        self._cursor.expect(")", "the values of `in` are separated by commas and closed by )")
        return tuple(operands)

    def _string_operand(self, operator: Operator) -> Expression:
        token = self._cursor.token
        operand = self._operand(operator.value)
        if isinstance(operand, (ParameterRef, Variable)):
            return operand
        if not isinstance(operand, Constant) or not isinstance(operand.value, str):
            raise self._cursor.error(f"`{operator.value}` compares with a string, in quotes", token)
        if operator is Operator.LIKE:
            try:
                Glob.parse(operand.value)
            except GlobError as error:
                raise self._cursor.error(str(error), token) from None
        return operand


def _complement(predicate: Predicate) -> Node:
    """The complement of a predicate: what `not` makes of it; the attribute must still be present.

    `not x is not null` can hold for no event, because an absent attribute satisfies nothing.
    """
    if predicate.operator is Operator.PRESENT:
        return Truth(False)
    return Predicate(predicate.attribute, COMPLEMENT[predicate.operator], predicate.operands)


class Size(NamedTuple):
    """The number of disjuncts, and their cost: the predicates, values and operations in all."""

    disjuncts: int
    cost: int


def size_of(node: Node) -> Size:
    """The size of a filter as a disjunction of conjunctions, computed without multiplying it out.

    Sums and products of the sizes of the parts; Python's integers cannot overflow, so a hostile
    text of a few hundred `or`s costs no more than its length.
    """
    match node:
        case Predicate(_, operator, operands):
            count = 2 if operator is Operator.NOT_BETWEEN else 1
            return Size(count, count + sum(_operations(operand) for operand in operands))
        case Truth(value):
            return Size(int(value), 1)
        case Or(parts):
            counts, costs = zip(*map(size_of, parts), strict=True)
            return Size(sum(counts), sum(costs))
        case And(parts):
            counts, costs = zip(*map(size_of, parts), strict=True)
            total = math.prod(counts)
            if not total:
                return Size(0, sum(costs))
            # Each disjunct of one part is repeated for every combination of those of the others.
            each = zip(counts, costs, strict=True)
            return Size(total, sum(cost * (total // count) for count, cost in each))


def over_limit(size: Size, limits: Limits) -> str | None:
    """Which limit a size exceeds, as the text of an error; None if it exceeds none."""
    if size.disjuncts > limits.disjuncts_max:
        return (
            "as a disjunction of conjunctions the filter has more than "
            f"{limits.disjuncts_max} disjuncts"
        )
    if size.cost > limits.cost_max:
        return (
            f"the filter costs {size.cost} predicates, values and operations; "
            f"at most {limits.cost_max} are taken"
        )
    return None


def _operations(expression: Expression) -> int:
    return 1 + sum(_operations(part) for part in children(expression))
