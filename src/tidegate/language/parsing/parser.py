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
replaced by its complement.
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
_WITHIN_S_MAX = 1e12


def parse_filter(text: str, limits: Limits = DEFAULT_LIMITS) -> Node:
    """Read a filter."""
    return Parser(text, limits).filter()


class Parser:
    """Reads one text, as a filter or as a pattern."""

    def __init__(self, text: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._at = Cursor(text, limits)
        self._start = self._at.token
        self._values = ValueParser(self._at)

    @property
    def literals(self) -> list[Literal]:
        """The constants that were found, in the order of the text."""
        return self._values.literals

    # -- the two things a text can be ---------------------------------------------------------

    def filter(self) -> Node:
        """Read the whole text as a filter."""
        node = self._whole_filter()
        if self._at.token.word in ("then", "within"):
            raise self._at.error("`then` and `within` make a pattern; use parse_pattern for it")
        self._at.expect_end()
        return node

    def pattern(self) -> tuple[tuple[Node, ...], float | None]:
        """Read the whole text as a pattern: its steps, and the seconds of `within`."""
        steps = [self._whole_filter()]
        while self._at.accept("then"):
            steps.append(self._whole_filter())
            if len(steps) > self._at.limits.pattern_steps_max:
                raise self._at.limit(
                    f"a pattern has at most {self._at.limits.pattern_steps_max} steps"
                )
        within_s = self._within() if self._at.accept("within") else None
        if self._at.token.word == "then":
            raise self._at.error("`within` stands at the end, behind the last step")
        self._at.expect_end()
        return tuple(steps), within_s

    def _whole_filter(self) -> Node:
        start = self._at.token.start
        if self._at.token.kind is TokenKind.END and self._at.token is self._start:
            raise self._at.error("the filter is empty; write `true` to match every event")
        node = self._disjunction()
        self._check_size(node, start)
        return node

    def _within(self) -> float:
        number = self._at.take(TokenKind.NUMBER, "a number of seconds, as in `within 30 s`")
        unit = self._at.token
        if unit.word not in UNITS:
            units = ", ".join(UNITS)
            raise self._at.error(
                f"here must stand a unit of time, one of {units}" + self._at.found()
            )
        self._at.advance()
        seconds = float(number.text) * UNITS[unit.word].total_seconds()
        if seconds > _WITHIN_S_MAX:
            raise self._at.error("longer than timestamps reach; leave `within` out", number)
        return seconds

    def _check_size(self, node: Node, start: int) -> None:
        reason = over_limit(size_of(node), self._at.limits)
        if reason is not None:
            raise self._at.limit(reason, start)

    # -- filters ------------------------------------------------------------------------------

    def _disjunction(self, negated: bool = False) -> Node:
        """With ``negated``, the complement of what the text says, here and below."""
        parts = [self._conjunction(negated)]
        while self._at.accept("or"):
            parts.append(self._conjunction(negated))
        return all_of(parts) if negated else any_of(parts)

    def _conjunction(self, negated: bool) -> Node:
        parts = [self._negation(negated)]
        while self._at.accept("and"):
            parts.append(self._negation(negated))
        return any_of(parts) if negated else all_of(parts)

    def _negation(self, negated: bool) -> Node:
        at = self._at
        if at.token.word in ("true", "false"):
            return Truth((at.advance().word == "true") is not negated)
        if at.token.word not in ("not", "("):
            predicate = self._predicate()
            return _complement(predicate) if negated else predicate
        at.enter()
        if at.advance().word == "not":
            node = self._negation(not negated)
        else:
            node = self._disjunction(negated)
            at.expect(")", "the parenthesis is not closed")
        at.leave()
        return node

    def _predicate(self) -> Predicate:
        name = self._attribute()
        comparison = _COMPARISONS.get(self._at.token.word)
        if comparison is not None:
            symbol = self._at.advance().text
            return Predicate(name, comparison, (self._values.operand(symbol),))
        if self._at.accept("is"):
            return self._presence(name)
        negated = self._at.accept("not")
        operator, operands = self._worded(name)
        return Predicate(name, COMPLEMENT[operator] if negated else operator, operands)

    def _attribute(self) -> str:
        token = self._at.token
        if token.kind is TokenKind.QUOTED_NAME:
            return self._values.unquoted(self._at.advance())
        if token.kind is not TokenKind.NAME:
            raise self._at.error(
                "an attribute must stand here, left of an operator" + self._at.found(), token
            )
        if token.word in RESERVED:
            raise self._at.error(
                f"{token.text!r} is a word of the language; "
                f"an attribute of that name is written `{token.text}` in backticks"
                if token.word not in ("and", "or", "then", "within")
                else f"a constraint must stand before {token.text!r}"
            )
        return self._at.advance().text

    def _presence(self, name: str) -> Predicate:
        if self._at.accept("not"):
            self._at.expect("null", "`is not` is followed by `null`")
            return Predicate(name, Operator.PRESENT)
        if self._at.token.word in ("true", "false"):
            word = self._at.token.word
            raise self._at.error(f"write `{format_attribute(name)} = {word}` for a boolean")
        raise self._at.error(
            "only presence can be asked for, with `is not null`: "
            "an absent attribute satisfies no constraint"
        )

    def _worded(self, name: str) -> tuple[Operator, tuple[Expression, ...]]:
        """`between`, `in` and the string operators, without their `not`."""
        token = self._at.token
        if self._at.accept("between"):
            low = self._values.operand("between")
            self._at.expect("and", "`between` needs two values: between 1 and 2")
            return Operator.BETWEEN, (low, self._values.operand("between"))
        if self._at.accept("in"):
            return Operator.IN, self._listed()
        operator = _STRING_OPERATORS.get(token.word)
        if operator is None:
            raise self._no_operator(name, token)
        self._at.advance()
        if operator.value.endswith("with"):
            self._at.expect("with", f"write `{operator.value}`")
        return operator, (self._string_operand(operator),)

    def _no_operator(self, name: str, token: Token) -> FilterError:
        if token.kind is TokenKind.END or token.word in ("and", "or", ")"):
            attribute = format_attribute(name)
            reason = (
                f"an operator must follow the attribute {attribute}; "
                f"for a boolean write {attribute} = true, for presence {attribute} is not null"
            )
        elif token.word in _COMPARISONS:
            right = f"not {format_attribute(name)} {token.text} ..."
            reason = f"`not` stands before the attribute: {right}"
        elif token.word == "(":
            reason = f"left of an operator stands an attribute, not a function such as {name!r}"
        elif token.word in tuple("+-*/%"):
            reason = (
                "left of an operator stands an attribute alone; arithmetic goes to the right, "
                "and a name with other characters stands in backticks"
            )
        else:
            reason = (
                "an operator must stand here, one of = != < <= > >=, between, in, like, "
                "starts with, ends with, contains, is not null"
            )
            reason += guess(token, ["between", "in", "like", "starts", "ends", "contains"])
        return self._at.error(reason, token)

    def _listed(self) -> tuple[Expression, ...]:
        self._at.expect("(", "the values of `in` stand in parentheses: in (1, 2)")
        if self._at.token.word == ")":
            raise self._at.error("`in` needs at least one value")
        operands = [self._values.operand("in")]
        while self._at.accept(","):
            operands.append(self._values.operand("in"))
        self._at.expect(")", "the values of `in` are separated by commas and closed by )")
        return tuple(operands)

    def _string_operand(self, operator: Operator) -> Expression:
        start = self._at.token
        operand = self._values.operand(operator.value)
        if isinstance(operand, (ParameterRef, Variable)):
            return operand
        if not isinstance(operand, Constant) or not isinstance(operand.value, str):
            raise self._at.error(f"`{operator.value}` compares with a string, in quotes", start)
        if operator is Operator.LIKE:
            try:
                Glob.parse(operand.value)
            except GlobError as error:
                raise self._at.error(str(error), start) from None
        return operand


def _complement(predicate: Predicate) -> Node:
    """What `not` makes of a predicate: the attribute must still be present."""
    if predicate.operator is Operator.PRESENT:
        return Truth(False)
    return Predicate(predicate.attribute, COMPLEMENT[predicate.operator], predicate.operands)


class Size(NamedTuple):
    """How many disjuncts, and what all of them cost: predicates, values and operations."""

    disjuncts: int
    cost: int


def size_of(node: Node) -> Size:
    """How large a filter is, as `Limits` counts it."""
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
            each = zip(counts, costs, strict=True)
            return Size(total, sum(cost * (total // count) for count, cost in each))


def over_limit(size: Size, limits: Limits) -> str | None:
    """Why a filter is too large; None if it is not."""
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
