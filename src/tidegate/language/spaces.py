"""Information spaces: which attributes the events of a space have, and their types (Gryphon, 1).

Rules.

(1) An attribute keeps its type for as long as the space lives. Attributes are added, never changed
    or removed, so whatever a space has accepted it would accept again.
(2) An event need not have all attributes; an absent one satisfies nothing, as everywhere.
(3) Events are checked by type, filters by kind. An integer can be written where a float is
    declared, and a float without a fraction where an integer is: `3` and `3.0` are the same number
    to every filter, and JSON and tables with nulls do not keep them apart. A filter may compare a
    number with any number: `volume > 2.5` is a fair question about integers.
(4) A filter is checked as it was written, also where a part of it cannot matter: the misspelled
    attribute of `true or prize < 10` is a mistake all the same.

Theory of operation. A filter is checked by its shape and row; those that were parsed in bulk have
no tree, and need none for this. The parser has dropped what cannot matter by then, so a text that
may have such a part is parsed once more; and so is every text with a mistake, to find its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from reprlib import Repr
from reprlib import repr as shortened
from types import MappingProxyType
from typing import NamedTuple

from tidegate.errors import BadValueError, EventError, FilterError, SpaceError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.expression_kinds import Kinds, kinds_of
from tidegate.language.expressions import (
    Constant,
    Expression,
    ParameterRef,
    Slot,
    format_expression,
    leaves,
)
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.nearest_names import nearest_name
from tidegate.language.parsing.parser import Parser, PlacedPredicate
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.shapes import Row
from tidegate.language.syntax import STRING_OPERATORS, Predicate, format_attribute, predicates
from tidegate.language.values import Kind, Value, parse_timestamp, to_value

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
_ANY_SIZE = Limits(*[1 << 62] * 5)
"""For texts that were parsed before, by a caller with limits of its own."""
_TRUTH = re.compile(r"(?:^|\(|\b(?:and|or|not|then)\b)\s*(?:true|false)\b")
"""Finds a `true` or `false` in place of a predicate, and some that are values."""
_NOT = re.compile(r"\bnot\b(?!\s+null\b)")
_TIMES_MAX = 16
"""An operand with more strings than these has no timestamps among them."""
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)

_names = Repr()
_names.maxstring = 200  # strangers send names of any length


def _listed(name: str) -> str:
    """A name in a list of names: as it is, unless it is long or would spoil the message."""
    return name if len(name) <= _names.maxstring and name.isprintable() else _names.repr(name)


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
        problem = _problem_of_name(name)
        if problem is not None:
            raise SpaceError(f"the name of a space {problem}")
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

        One that the space has already may be declared again with the same type. If two threads
        declare one with different types at the same time, the first type stays, and of the other
        thread's attributes those before this one are declared too.
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
        problem = _problem_of_name(name)
        if problem is not None:
            raise SpaceError(f"space {self.name!r}: the name of an attribute {problem}")
        where = f"space {self.name!r}, attribute {name!r}"
        if isinstance(declared, Mapping):
            raise SpaceError(f"{where}: {nested_hint(name, declared)}")
        if not isinstance(declared, type) or declared not in TYPE_NAMES:
            types = ", ".join(each.__name__ for each in TYPE_NAMES)
            shown = declared.__name__ if isinstance(declared, type) else repr(declared)
            raise SpaceError(f"{where}: {shown} is no type of attributes; there are {types}")
        if known is not declared:
            raise SpaceError(
                f"{where}: it is {_a(known)} already and cannot become {_a(declared)}; "
                "declare another attribute"
            )

    def includes(self, other: Space) -> bool:
        """Whether all attributes of another space are here, so that whatever fits it fits here."""
        return all(self._types.get(name) is kind for name, kind in other.attributes.items())

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
        names = tuple(self._types)
        nearest = nearest_name(name, names)
        if nearest is not None:
            hint = f" (did you mean {nearest!r}?)"
        else:
            more = ", ..." if len(names) > _LISTED_MAX else ""
            hint = f"; it has {', '.join(map(_listed, names[:_LISTED_MAX])) or 'none'}{more}"
        return f"space {self.name!r} has no attribute {_names.repr(name)}{hint}"

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
        variable of the broker. ``text`` is what the user wrote: all of it is checked (rule 4), and
        the message shows it. Without it, that is the filter as it is printed.

        >>> from tidegate.language.filters import parse
        >>> Space("trades", {"price": float}).check_filter(parse("prize < 10"))
        Traceback (most recent call last):
        tidegate.errors.FilterError: space 'trades' has no attribute 'prize' (did you mean 'price'?)
          prize < 10
          ^^^^^
        """
        values = parameters or {}
        if self._fits(checked, values) and (text is None or not _may_drop(text)):
            return
        written = str(checked) if text is None else text
        parser = Parser(written, _ANY_SIZE)
        parser.pattern()
        for placed in parser.placed:
            problem = self._problem(placed.predicate, (), values)
            if problem is not None:
                raise FilterError(problem.reason, written, *problem.place(placed))

    def _fits(self, checked: Checked, parameters: Mapping[str, Value]) -> bool:
        """Whether all predicates of a filter fit, those that cannot matter apart."""
        for predicate, row in _rows_of_predicates(checked):
            if self._problem(predicate, row, parameters) is not None:
                return False
        return True

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
            kinds = kinds_of(operand, row, parameters)
            if kind not in kinds:
                what, found = self._what_it_is(predicate.attribute), _described(operand, kinds)
                right = _fitting(kind, operand)
                return _Problem(f"{what}; compare it with {right}, not {found}", index)
        return None

    def _what_it_is(self, name: str) -> str:
        return f"{format_attribute(name)} is {_a(self._types[name])} in space {self.name!r}"

    # -- values from JSON -----------------------------------------------------------------------

    def event_from_json(self, event: Event) -> Event:
        """An event from JSON, with strings as timestamps where the space has them.

        Raises EventError for a string that is no timestamp there. Whether the event fits is left to
        ``check_event``.
        """
        times: dict[str, Value] = {}
        for name, value in event.attributes.items():
            if isinstance(value, str) and self._types.get(name) is datetime:
                try:
                    times[name] = parse_timestamp(value)
                except BadValueError as error:
                    raise EventError(f"attribute {name!r}: {error}") from None
        return Event({**event.attributes, **times}, event.time) if times else event

    def with_timestamps(
        self, filter: Filter, parameters: Mapping[str, Value | None]
    ) -> dict[str, Value | None]:
        """Parameters from JSON, with strings as timestamps where the filter compares with one.

        Raises BadValueError for a string that is no timestamp there.

        >>> from tidegate.language.filters import parse
        >>> space = Space("trades", {"at": datetime})
        >>> space.with_timestamps(parse("at > :since"), {"since": "2026-01-02T00:00:00Z"})
        {'since': datetime.datetime(2026, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)}
        """
        timed = dict(parameters)
        if str not in map(type, timed.values()):
            return timed
        for predicate, row in _rows_of_predicates(filter):
            if self._types.get(predicate.attribute) is not datetime:
                continue
            for name, text in _strings_for_times(predicate, row, timed).items():
                try:
                    timed[name] = parse_timestamp(text)
                except BadValueError as error:
                    what = self._what_it_is(predicate.attribute)
                    raise BadValueError(f"parameter :{name}: {error} ({what})") from None
        return timed


class _Problem(NamedTuple):
    """Why a predicate does not fit, and which of its operands is wrong; None for the attribute."""

    reason: str
    operand: int | None = None

    def place(self, placed: PlacedPredicate) -> tuple[int, int]:
        """Where in the text the problem is."""
        return placed.attribute if self.operand is None else placed.operands[self.operand]


def _may_drop(text: str) -> bool:
    """Whether the parser may have dropped a predicate of a text, because it cannot matter.

    That takes a `true` or `false` in place of a predicate, or `not x is not null`, which is false.
    """
    lower = text.lower()
    # Most texts have none of these words, and a search with `in` takes a tenth of the time.
    if ("true" in lower or "false" in lower) and _TRUTH.search(lower):
        return True
    return "null" in lower and _NOT.search(lower) is not None


def _rows_of_predicates(checked: Checked) -> Iterator[tuple[Predicate, Row]]:
    """The predicates of a filter, each with the row that fills its slots."""
    if isinstance(checked, Advertisement):
        yield from ((each, ()) for each in predicates(checked.node))
        return
    for filter in checked.steps if isinstance(checked, Pattern) else (checked,):
        shape, row = filter.shape_and_row
        for conjunction in shape.disjuncts:
            for predicate in conjunction:
                yield predicate, row


def _strings_for_times(
    predicate: Predicate, row: Row, parameters: Mapping[str, Value | None]
) -> dict[str, str]:
    """The parameters that are strings, and as timestamps would make an operand a timestamp.

    `:since` in `at > :since - 60`; not `:seconds` in `at > now() - :seconds`.
    """
    found: dict[str, str] = {}
    for operand in predicate.operands:
        cells = [row[each.index] if isinstance(each, Slot) else each for each in leaves(operand)]
        references = [cell for cell in cells if isinstance(cell, ParameterRef)]
        known = {each.name: parameters.get(each.name) for each in references}
        texts = {name: value for name, value in known.items() if isinstance(value, str)}
        # Each is tried with all of the operand: a hostile one may have thousands.
        if len(texts) <= _TIMES_MAX:
            found |= {
                name: text
                for name, text in texts.items()
                if Kind.TIME in kinds_of(operand, row, {**known, name: _SOME_TIME})
            }
    return found


def _fitting(kind: Kind, operand: Expression) -> str:
    """What to compare an attribute of a kind with, as an error message names it."""
    is_parameter = isinstance(operand, ParameterRef) and kind is not Kind.BOOLEAN
    return f"a {kind.value}" if is_parameter else _WRITTEN[kind]


def _described(operand: Expression, kinds: Kinds) -> str:
    """An operand of a wrong kind, as an error message names it."""
    if not kinds:
        return f"{format_expression(operand)}, which has no value"
    what = " or ".join(f"a {each.value}" for each in Kind if each in kinds)
    return what if isinstance(operand, Constant) else f"{format_expression(operand)}, {what}"


def _problem_of_name(name: object) -> str | None:
    """What is wrong with the name of a space or an attribute; None if nothing is."""
    if not isinstance(name, str) or not name:
        return f"is a string, not empty; it is {name!r}"
    try:
        to_value(name)
    except BadValueError as error:
        return f"cannot be {name!r}: {error}"
    return None


def nested_hint(name: object, fields: Mapping[object, object]) -> str:
    """What would be right where the attributes of a nested object are declared in an object."""
    inner = next(iter(fields), "...")
    return f"attributes of nested objects have dotted names; declare {f'{name}.{inner}'!r}"


def _a(declared: type) -> str:
    name = TYPE_NAMES[declared]
    return f"an {name}" if name == "integer" else f"a {name}"
