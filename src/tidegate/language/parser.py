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

from tidegate.errors import FilterError
from tidegate.language.cursor import Cursor, guess
from tidegate.language.expressions import Constant, Expression, Parameter, Variable, children
from tidegate.language.like import Glob, GlobError
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.normal import count_disjuncts
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
)
from tidegate.language.tokens import Token, TokenKind, unquote
from tidegate.language.value_parser import Literal, ValueParser

_COMPARISONS = {
    "=": Operator.EQUAL,
    "!=": Operator.NOT_EQUAL,
    "<>": Operator.NOT_EQUAL,
    "<": Operator.LESS,
    "<=": Operator.LESS_EQUAL,
    ">": Operator.GREATER,
    ">=": Operator.GREATER_EQUAL,
}
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


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
        if unit.word not in _UNIT_SECONDS:
            raise self._at.error("a unit of time is one of " + ", ".join(_UNIT_SECONDS))
        self._at.advance()
        return float(number.text) * _UNIT_SECONDS[unit.word]

    def _check_size(self, node: Node, start: int) -> None:
        count = count_disjuncts(node)
        if count > self._at.limits.disjuncts_max:
            raise self._at.limit(
                f"as a disjunction of conjunctions the filter has {count} disjuncts; "
                f"at most {self._at.limits.disjuncts_max} are taken",
                start,
            )
        cost = _cost(node)
        if cost > self._at.limits.cost_max:
            raise self._at.limit(
                f"the filter costs {cost} predicates, values and operations; "
                f"at most {self._at.limits.cost_max} are taken",
                start,
            )

    # -- filters ------------------------------------------------------------------------------

    def _disjunction(self) -> Node:
        parts = [self._conjunction()]
        while self._at.accept("or"):
            parts.append(self._conjunction())
        return any_of(parts)

    def _conjunction(self) -> Node:
        parts = [self._negation()]
        while self._at.accept("and"):
            parts.append(self._negation())
        return all_of(parts)

    def _negation(self) -> Node:
        if self._at.accept("not"):
            return complement(self._at.nested(self._negation))
        if self._at.accept("("):
            node = self._at.nested(self._disjunction)
            self._at.expect(")", "the parenthesis is not closed")
            return node
        if self._at.token.word in ("true", "false"):
            return Truth(self._at.advance().word == "true")
        return self._predicate()

    def _predicate(self) -> Node:
        name = self._attribute()
        comparison = _COMPARISONS.get(self._at.token.word)
        if comparison is not None:
            operator = self._at.advance()
            operand = self._values.operand(operator.text)
            return Predicate(name, comparison, (operand,))
        if self._at.accept("is"):
            return self._presence(name)
        negated = self._at.accept("not")
        predicate = self._worded(name)
        return complement(predicate) if negated else predicate

    def _attribute(self) -> str:
        token = self._at.token
        if token.kind is TokenKind.QUOTED_NAME:
            return unquote(self._at.advance().text)
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

    def _presence(self, name: str) -> Node:
        if self._at.accept("not"):
            self._at.expect("null", "`is not` is followed by `null`")
            return Predicate(name, Operator.PRESENT)
        raise self._at.error(
            "only presence can be asked for, with `is not null`: "
            "an absent attribute satisfies no constraint"
        )

    def _worded(self, name: str) -> Predicate:
        """`between`, `in` and the string operators, without their `not`."""
        token = self._at.token
        if self._at.accept("between"):
            low = self._values.operand("between")
            self._at.expect("and", "`between` needs two values: between 1 and 2")
            return Predicate(name, Operator.BETWEEN, (low, self._values.operand("between")))
        if self._at.accept("in"):
            return Predicate(name, Operator.IN, self._listed())
        for words, operator in (
            (("like",), Operator.LIKE),
            (("starts", "with"), Operator.STARTS_WITH),
            (("ends", "with"), Operator.ENDS_WITH),
            (("contains",), Operator.CONTAINS),
        ):
            if self._at.accept(words[0]):
                if len(words) == 2:
                    self._at.expect("with", f"write `{words[0]} with`")
                return Predicate(name, operator, (self._string_operand(operator),))
        raise self._no_operator(name, token)

    def _no_operator(self, name: str, token: Token) -> FilterError:
        if token.kind is TokenKind.END or token.word in ("and", "or", ")"):
            reason = (
                f"an operator must follow the attribute {name!r}; "
                f"for a boolean write `{name} = true`, for presence `{name} is not null`"
            )
        elif token.word == "(":
            reason = f"left of an operator stands an attribute, not a function such as {name!r}"
        elif token.word in tuple("+-*/%"):
            reason = (
                "left of an operator stands an attribute alone; arithmetic goes to the right, "
                "and a name with other characters stands in backticks"
            )
        else:
            reason = (
                "an operator must stand here, one of = != < <= > >= between, in, like, "
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
        if isinstance(operand, (Parameter, Variable)):
            return operand
        if not isinstance(operand, Constant) or not isinstance(operand.value, str):
            raise self._at.error(f"`{operator.value}` compares with a string, in quotes", start)
        if operator is Operator.LIKE:
            try:
                Glob.parse(operand.value)
            except GlobError as error:
                raise self._at.error(str(error), start) from None
        return operand


def complement(node: Node) -> Node:
    """What `not` makes of a filter: every predicate's complement, on attributes still present."""
    match node:
        case Truth(value):
            return Truth(not value)
        case And(parts):
            return any_of(complement(part) for part in parts)
        case Or(parts):
            return all_of(complement(part) for part in parts)
        case Predicate(_, Operator.PRESENT):
            return Truth(False)
        case Predicate(attribute, operator, operands):
            return Predicate(attribute, COMPLEMENT[operator], operands)


def _cost(node: Node) -> int:
    """Predicates, values and operations of the filter, counted once for each disjunct."""
    match node:
        case Truth():
            return 1
        case Or(parts):
            return sum(_cost(part) for part in parts)
        case And(parts):
            counts = [count_disjuncts(part) for part in parts]
            total = 1
            for count in counts:
                total *= count
            return sum(
                _cost(part) * (total // count) if count else 1
                for part, count in zip(parts, counts, strict=True)
            )
        case Predicate(_, operator, operands):
            doubled = 2 if operator is Operator.NOT_BETWEEN else 1
            return doubled + sum(_operations(operand) for operand in operands)


def _operations(expression: Expression) -> int:
    return 1 + sum(_operations(part) for part in children(expression))
