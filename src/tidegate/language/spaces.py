"""Information spaces: which attributes the events of a space have, and their types (Gryphon, 1).

Rules.

(1) An attribute keeps its type for as long as the space lives. Attributes are added, never changed
    or removed, so whatever a space has accepted it would accept again.
(2) An event need not have all attributes; an absent one satisfies nothing, as everywhere.
(3) Events are checked by type, filters by kind. An integer can be written where a float is
    declared, and a float without a fraction where an integer is: `3` and `3.0` are the same number
    to every filter, and JSON and tables with nulls do not keep them apart. A filter may compare a
    number with any number: `volume > 2.5` is a fair question about integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from reprlib import repr as shortened
from types import MappingProxyType
from typing import NamedTuple

from tidegate.errors import EventError, FilterError, FilterLimitError, SpaceError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Slot,
    Variable,
    format_expression,
)
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import Parser
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.shapes import Row
from tidegate.language.syntax import STRING_OPERATORS, Predicate, format_attribute, predicates
from tidegate.language.values import Kind, Value, kind_of

TYPE_NAMES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "float",
    bool: "boolean",
    datetime: "timestamp",
}
"""The types of attributes, with their names in error messages and in files."""

_KINDS: Mapping[type, Kind] = {
    str: Kind.STRING,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIME,
}
_WRITTEN = {
    Kind.STRING: "a string, in quotes",
    Kind.NUMBER: "a number",
    Kind.BOOLEAN: "true or false",
    Kind.TIME: "a timestamp, as timestamp '2026-01-02T03:04:05Z'",
}
_LISTED_MAX = 10
"""The attributes that an error message lists."""

Checked = Filter | Pattern | Advertisement
"""What is checked against a space when it comes in."""


class Space:
    """An information space: a name, and the type of each attribute that its events may have.

    Types are `str`, `int`, `float`, `bool` and `datetime`. The attributes of nested objects have
    dotted names, as in events.

    >>> trades = Space("trades", {"symbol": str, "price": float})
    >>> trades.check_event(Event.of({"symbol": "IBM", "price": "low"}))
    Traceback (most recent call last):
    tidegate.errors.EventError: attribute 'price' is a float in space 'trades', not the string 'low'
    >>> trades.add({"volume": int})
    >>> trades.check_event(Event.of({"symbol": "IBM", "volume": 100}))
    """

    def __init__(self, name: str, attributes: Mapping[str, type]) -> None:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"the name of a space is a string, not empty; it is {name!r}")
        self.name = name
        self._types: dict[str, type] = {}
        self.add(attributes)

    def __repr__(self) -> str:
        return f"Space({self.name!r}, {len(self._types)} attributes)"

    @property
    def attributes(self) -> Mapping[str, type]:
        """The types of all attributes by name, as of now."""
        return MappingProxyType(dict(self._types))

    def add(self, attributes: Mapping[str, type]) -> None:
        """Declare attributes, all or, if one is wrong, none; usable from any thread.

        One that the space has already may be declared again with the same type.
        """
        if not isinstance(attributes, Mapping):
            raise SpaceError(
                f"space {self.name!r}: attributes are a mapping of names to types, "
                f"not {type(attributes).__name__}"
            )
        for name, declared in attributes.items():
            self._check_declaration(name, declared, self._types.get(name, declared))
        # The language has no locks. `setdefault` is atomic, and returns the type that another
        # thread has declared in the meantime; so of two types declared at once the first one stays.
        for name, declared in attributes.items():
            self._check_declaration(name, declared, self._types.setdefault(name, declared))

    def _check_declaration(self, name: object, declared: object, known: type) -> None:
        if not isinstance(name, str) or not name:
            raise SpaceError(
                f"space {self.name!r}: the name of an attribute is a string, not empty; "
                f"it is {name!r}"
            )
        where = f"space {self.name!r}, attribute {name!r}"
        if not isinstance(declared, type) or declared not in TYPE_NAMES:
            types = ", ".join(each.__name__ for each in TYPE_NAMES)
            shown = declared.__name__ if isinstance(declared, type) else repr(declared)
            raise SpaceError(f"{where}: {shown} is no type of attributes; there are {types}")
        if known is not declared:
            raise SpaceError(
                f"{where}: it is {_a(known)} already and cannot become {_a(declared)}; "
                "declare another attribute"
            )

    # -- events -------------------------------------------------------------------------------

    def check_event(self, event: Event) -> None:
        """Raise EventError if an attribute of an event is not declared, or has another type."""
        for name, value in event.attributes.items():
            reason = self.misfit(name, value)
            if reason is not None:
                raise EventError(reason)

    def misfit(self, name: str, value: Value) -> str | None:
        """Why an attribute of an event cannot have a value; None if it can.

        >>> Space("trades", {"volume": int}).misfit("volume", 9.5)
        "attribute 'volume' is an integer in space 'trades', not the float 9.5"
        """
        declared = self._types.get(name)
        given = type(value)
        if declared is given or (declared is float and given is int):
            return None
        if declared is None:
            return self._no_attribute(name)
        if declared is int and isinstance(value, float) and value.is_integer():
            return None
        # format_value would print a long string in full
        shown = value.isoformat() if isinstance(value, datetime) else shortened(value)
        return (
            f"attribute {name!r} is {_a(declared)} in space {self.name!r}, "
            f"not the {TYPE_NAMES[given]} {shown}"
        )

    def _no_attribute(self, name: str) -> str:
        names = list(self._types)
        close = get_close_matches(name, names, n=1)
        if close:
            hint = f" (did you mean {close[0]!r}?)"
        else:
            more = ", ..." if len(names) > _LISTED_MAX else ""
            hint = f"; it has {', '.join(names[:_LISTED_MAX]) or 'none'}{more}"
        return f"space {self.name!r} has no attribute {name!r}{hint}"

    # -- filters ------------------------------------------------------------------------------

    def check_filter(
        self,
        checked: Checked,
        parameters: Mapping[str, Value] | None = None,
        *,
        text: str | None = None,
    ) -> None:
        """Raise FilterError if a filter does not fit: it could match no event of the space.

        It names an attribute that is not declared, or compares one with a value of another kind.
        Parameters count with their values; one without a value fits everywhere, and so does a
        variable of the broker. ``text`` is what the user wrote, for the caret in the message.

        >>> from tidegate.language.filters import parse
        >>> Space("trades", {"price": float}).check_filter(parse("prize < 10"))
        Traceback (most recent call last):
        tidegate.errors.FilterError: space 'trades' has no attribute 'prize' (did you mean 'price'?)
          prize < 10
          ^^^^^
        """
        values = parameters or {}
        for predicate, row in _rows_of_predicates(checked):
            problem = self._problem(predicate, row, values)
            if problem is not None:
                written = str(checked) if text is None else text
                raise self._error(written, values, problem)

    def _problem(
        self, predicate: Predicate, row: Row, parameters: Mapping[str, Value]
    ) -> _Problem | None:
        """What is wrong in a predicate; None if it fits."""
        declared = self._types.get(predicate.attribute)
        if declared is None:
            return _Problem(self._no_attribute(predicate.attribute))
        kind = _KINDS[declared]
        if kind is not Kind.STRING and predicate.operator in STRING_OPERATORS:
            what = self._what_it_is(predicate.attribute)
            return _Problem(f"`{predicate.operator.value}` compares strings; {what}")
        for index, operand in enumerate(predicate.operands):
            kinds = _kinds(operand, row, parameters)
            if kind not in kinds:
                what, found = self._what_it_is(predicate.attribute), _described(operand, kinds)
                return _Problem(f"{what}; compare it with {_WRITTEN[kind]}, not {found}", index)
        return None

    def _what_it_is(self, name: str) -> str:
        return f"{format_attribute(name)} is {_a(self._types[name])} in space {self.name!r}"

    def _error(self, text: str, parameters: Mapping[str, Value], found: _Problem) -> FilterError:
        """The error for a text that does not fit, with the place of its first problem.

        ``found`` is the problem that was seen first; the shape of a filter has its predicates in
        another order than the text.
        """
        parser = Parser(text)
        try:
            parser.pattern()
        except FilterLimitError:  # of a caller who has other limits
            return FilterError(found.reason, text, 0, len(text))
        for placed in parser.placed:
            problem = self._problem(placed.predicate, (), parameters)
            if problem is None:
                continue
            if problem.operand is None:
                return FilterError(problem.reason, text, *placed.attribute)
            return FilterError(problem.reason, text, *placed.operands[problem.operand])
        return FilterError(found.reason, text, 0, len(text))


class _Problem(NamedTuple):
    """Why a predicate does not fit, and which of its operands is wrong; None for the attribute."""

    reason: str
    operand: int | None = None


def _rows_of_predicates(checked: Checked) -> Iterator[tuple[Predicate, Row]]:
    """The predicates of a filter, each with the row that fills its slots.

    Those of the shape: filters that were parsed in bulk have no tree, and need none for this.
    """
    if isinstance(checked, Advertisement):
        yield from ((each, ()) for each in predicates(checked.node))
        return
    for filter in checked.steps if isinstance(checked, Pattern) else (checked,):
        shape, row = filter.shape_and_row
        for conjunction in shape.disjuncts:
            for predicate in conjunction:
                yield predicate, row


_ANY = frozenset(Kind)
_NO_KIND: frozenset[Kind] = frozenset()
_ONLY = {kind: frozenset([kind]) for kind in Kind}


def _kinds(expression: Expression, row: Row, parameters: Mapping[str, Value]) -> frozenset[Kind]:
    """The kinds of value that an expression can have; none if it is undefined in any case."""
    match expression:
        case Slot(index):
            cell = row[index]
            if isinstance(cell, ParameterRef):
                return _kinds(cell, row, parameters)
            return _ONLY[kind_of(cell)]
        case Constant(value):
            return _ONLY[kind_of(value)]
        case ParameterRef(name):
            bound = parameters.get(name)
            return _ANY if bound is None else _ONLY[kind_of(bound)]
        case Variable():
            return _ANY
        case Elapsed():
            return _ONLY[Kind.NUMBER]
        case Now():
            return _ONLY[Kind.TIME]
        case Negated(operand):
            return _number_if_numbers([_kinds(operand, row, parameters)])
        case Call(_, arguments):
            return _number_if_numbers(_kinds(each, row, parameters) for each in arguments)
        case Arithmetic(operator, left, right):
            a, b = _kinds(left, row, parameters), _kinds(right, row, parameters)
            return _number_if_numbers([a, b]) | _kinds_of_times(operator, a, b)


def _number_if_numbers(operands: Iterable[frozenset[Kind]]) -> frozenset[Kind]:
    return _ONLY[Kind.NUMBER] if all(Kind.NUMBER in each for each in operands) else _NO_KIND


def _kinds_of_times(operator: str, a: frozenset[Kind], b: frozenset[Kind]) -> frozenset[Kind]:
    """As `expressions._combine_times`: a time plus or minus seconds, the difference of two."""
    kinds: set[Kind] = set()
    if operator in "+-" and Kind.TIME in a and Kind.NUMBER in b:
        kinds.add(Kind.TIME)
    if operator == "+" and Kind.NUMBER in a and Kind.TIME in b:
        kinds.add(Kind.TIME)
    if operator == "-" and Kind.TIME in a and Kind.TIME in b:
        kinds.add(Kind.NUMBER)
    return frozenset(kinds)


def _described(operand: Expression, kinds: frozenset[Kind]) -> str:
    """An operand of a wrong kind, as an error message names it."""
    if not kinds:
        return f"{format_expression(operand)}, which has no value"
    what = " or ".join(f"a {each.value}" for each in Kind if each in kinds)
    return what if isinstance(operand, Constant) else f"{format_expression(operand)}, {what}"


def _a(declared: type) -> str:
    name = TYPE_NAMES[declared]
    return f"an {name}" if name == "integer" else f"a {name}"
