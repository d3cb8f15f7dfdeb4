"""Filters: the predicate tree of a subscriber, with all its operations.

This is the public face of the language: the other modules of this package do the work.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from tidegate.errors import (
    BadValueError,
    FilterLimitError,
    NeverMatchesWarning,
    UnresolvedError,
)
from tidegate.language.algebra import evolution, relations
from tidegate.language.algebra.normal_form import Conjunction, NormalForm, desugared, disjuncts
from tidegate.language.algebra.ranges import ElapsedRange
from tidegate.language.algebra.value_sets import ValueSet
from tidegate.language.algebra.work import Budget, OutOfWorkError
from tidegate.language.events import Event
from tidegate.language.expressions import (
    Constant,
    Elapsed,
    Environment,
    Expression,
    Now,
    ParameterRef,
    Variable,
    evaluate,
    format_expression,
    leaves,
)
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.parser import Size, over_limit, parse_filter, size_of
from tidegate.language.semantics import holds
from tidegate.language.shapes import Row, Shape, row_of, split
from tidegate.language.syntax import (
    STRING_OPERATORS,
    Node,
    Operator,
    Predicate,
    Truth,
    all_of,
    map_leaves,
    map_predicates,
    predicates,
)
from tidegate.language.values import Value, format_value, to_value

_NUMBER_CHARS_MAX = 26
"""No number is longer as text: 24 characters, as -1.7976931348623157e+308, and parentheses."""


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Filter:
    """Parse a filter; raises FilterError, warns if no event can ever match.

    >>> parse("symbol = 'IBM' and price < 10").matches({"symbol": "IBM", "price": 9.5})
    True
    """
    filter = Filter(parse_filter(text, limits))
    if filter.never_matches and text.strip().lower() != "false":
        warnings.warn(f"no event can match `{text}`", NeverMatchesWarning, stacklevel=2)
    return filter


@dataclass(frozen=True, eq=False)
class Filter:
    """A filter. Two filters are `==` if they have the same text; ``equals`` compares meanings.

    Relations such as ``covers`` need a filter of constants. If it has parameters, `t`, `now()` or
    variables, ``bind`` replaces the parameters by values, and ``at`` replaces all of them.

    A filter has a tree (``node``) or, made by ``of_shape``, a shape and a row; either is computed
    from the other when it is first used. A table of a million subscriptions is made of shapes and
    rows, and most of its trees are never looked at.
    """

    node: Node

    @classmethod
    def of_shape(cls, shape: Shape, row: Row) -> Filter:
        """The filter with this shape and row; its tree is built when it is first used."""
        # Past __init__, which wants the tree. `shape_and_row` is a cached_property, whose value is
        # an entry of __dict__; with `node` missing there, __getattr__ builds it on first use.
        filter = cls.__new__(cls)
        filter.__dict__["shape_and_row"] = (shape, row)
        return filter

    def __getattr__(self, name: str) -> Node:
        if name != "node" or "shape_and_row" not in self.__dict__:
            raise AttributeError(f"a filter has no {name!r}")
        # Only once: with the entry in __dict__, Python does not call __getattr__ again.
        shape, row = self.shape_and_row
        node = self.__dict__["node"] = shape.fill(row)
        return node

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        own, others = self.__dict__.get("shape_and_row"), other.__dict__.get("shape_and_row")
        if own is not None and others is not None and own[1] != others[1]:
            return False  # different rows; most filters of a table differ here, without trees
        return self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __str__(self) -> str:
        return str(self.node)

    # -- its parts ----------------------------------------------------------------------------

    @property
    def _has_no_tree(self) -> bool:
        """Whether the tree was not needed yet; then the shape knows most of what is asked."""
        return "node" not in self.__dict__

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes it constrains, in the order of the text."""
        if self._has_no_tree:
            return self.shape_and_row[0].attributes
        return tuple(dict.fromkeys(each.attribute for each in predicates(self.node)))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters, in the order of the text."""
        if self._has_no_tree:
            cells = self.shape_and_row[1]
            return tuple(
                dict.fromkeys(each.name for each in cells if isinstance(each, ParameterRef))
            )
        names = [leaf.name for leaf in self._leaves if isinstance(leaf, ParameterRef)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names of the broker's variables it uses, in the order of the text."""
        if self._has_no_tree:
            return self.shape_and_row[0].variables
        names = [leaf.name for leaf in self._leaves if isinstance(leaf, Variable)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def evolves(self) -> bool:
        """Whether it is an evolving filter: its values depend on `t`, `now()` or variables."""
        if self._has_no_tree:
            return self.shape_and_row[0].evolves
        return any(isinstance(leaf, (Elapsed, Now, Variable)) for leaf in self._leaves)

    @cached_property
    def _leaves(self) -> list[Expression]:
        collected: list[Expression] = []
        for predicate in predicates(self.node):
            for operand in predicate.operands:
                if isinstance(operand, Constant):  # nearly all are; saves the generator
                    collected.append(operand)
                else:
                    collected += leaves(operand)
        return collected

    @cached_property
    def shape_and_row(self) -> tuple[Shape, Row]:
        """The filter split into its shape and the row of its values."""
        shape, filled = split(self.node)
        return shape, row_of(filled)

    @cached_property
    def normal_form(self) -> NormalForm:
        """A disjunction of conjunctions, with one value set for each attribute."""
        with Budget(apart=True):
            return NormalForm.of(self.node)

    @cached_property
    def never_matches(self) -> bool:
        """Whether surely no event can match it, for any values of its parameters.

        Disjunct by disjunct, without the normal form: joining disjuncts costs more, and cannot make
        one of them empty.
        """
        with Budget(apart=True):
            return all(Conjunction.of(each).is_empty for each in disjuncts(self.node))

    @cached_property
    def size(self) -> Size:
        """Its size, as `Limits` counts it."""
        if self._has_no_tree:
            return self.shape_and_row[0].size
        return size_of(self.node)

    @cached_property
    def length_chars(self) -> int:
        """The length of its text, in characters."""
        return len(str(self))

    def is_longer(self, chars_max: int) -> bool:
        """Whether its text is longer than ``chars_max`` characters.

        Of a filter without a tree, an upper bound on the length mostly answers that: the text of
        the shape, which filters share, and the longest text that each cell can have.
        """
        if self._has_no_tree:
            shape, row = self.shape_and_row
            if shape.length_chars + sum(map(_cell_chars_max, row)) <= chars_max:
                return False
        return self.length_chars > chars_max

    # -- matching -----------------------------------------------------------------------------

    def matches(
        self,
        event: Event | Mapping[str, object],
        parameters: Mapping[str, object] | None = None,
        *,
        variables: Mapping[str, object] | None = None,
        t: float = 0.0,
        now: datetime | None = None,
    ) -> bool:
        """Whether an event matches, with these values for parameters, variables and time.

        >>> window = parse("x between -3 + t and 3 + t")
        >>> window.matches({"x": 4}), window.matches({"x": 4}, t=1.0)
        (False, True)
        """
        environment = environment_of(parameters, variables, t, now)
        return holds(self.node, Event.of(event).attributes, environment)

    # -- values for parameters, variables and time --------------------------------------------

    def bind(self, /, **parameters: object) -> Filter:
        """The filter with values in place of the named parameters; the others stay.

        >>> print(parse("price < :limit").bind(limit=10))
        price < 10
        """
        own = frozenset(self.parameters)
        unknown = [name for name in parameters if name not in own]
        if unknown:
            names = ", ".join(f":{name}" for name in self.parameters) or "none"
            raise UnresolvedError(f"the filter has no parameter :{unknown[0]}; it has {names}")
        values = _values("parameter :", parameters)

        def bound(leaf: Expression) -> Expression:
            if isinstance(leaf, ParameterRef) and leaf.name in values:
                return Constant(values[leaf.name])
            return leaf

        return Filter(map_leaves(self.node, bound))

    def at(
        self,
        parameters: Mapping[str, object] | None = None,
        *,
        variables: Mapping[str, object] | None = None,
        t: float = 0.0,
        now: datetime | None = None,
    ) -> Filter:
        """The filter of constants that this one is at one time, with these values.

        >>> print(parse("x between -3 + t and 3 + t").at(t=1.5))
        x between -1.5 and 4.5
        """
        environment = environment_of(parameters, variables, t, now)

        def fixed(predicate: Predicate) -> Node:
            return _fixed(predicate, environment)

        return Filter(map_predicates(self.node, fixed))

    def relaxed(self, *, keep_parameters: bool = False) -> Filter:
        """An over-estimate: matches whatever this filter matches with any parameters and variables.

        A predicate that depends on them is replaced by a test for presence. With
        ``keep_parameters`` only variables count as unknown.

        >>> print(parse("x between :a and 9 and y < @limit").relaxed())
        x is not null and x <= 9 and y is not null
        """
        unknown = Variable if keep_parameters else ParameterRef | Variable
        return Filter(evolution.relaxed(self.node, unknown))

    def with_cells(self, cells: Mapping[int, Value]) -> Filter:
        """The filter with other values in some cells of its row.

        Properties that do not depend on the values are carried over instead of computed again.

        >>> print(parse("symbol = 'IBM' and price < 10").with_cells({0: 30}))
        price < 30 and symbol = 'IBM'
        """
        shape, row = self.shape_and_row
        changed = list(row)
        for index, value in cells.items():
            changed[index] = value
        filter = Filter.of_shape(shape, tuple(changed))
        cached = filter.__dict__
        # A shape of comparisons has no `t` and no variables, only values and parameters.
        cached["size"] = shape.size
        if shape.comparisons is not None and not self.parameters:
            cached |= {"parameters": (), "variables": (), "evolves": False}
        return filter

    def resolved_form(self) -> NormalForm:
        """The normal form of a filter of constants; raises UnresolvedError for any other."""
        return self._resolved_form

    @cached_property
    def _resolved_form(self) -> NormalForm:
        for leaf in self._leaves:
            if not isinstance(leaf, Constant):
                name = format_expression(leaf)
                raise UnresolvedError(
                    f"`{self}` depends on {name}: take it at one moment with .at(...), "
                    "or bind its parameters with .bind(...)"
                )
        return self.normal_form

    # -- relations ----------------------------------------------------------------------------

    def covers(self, other: Filter) -> bool:
        """Whether every event that matches ``other`` surely matches this filter.

        >>> parse("price < 10").covers(parse("price < 5 and symbol = 'IBM'"))
        True
        """
        return relations.covers(self.resolved_form(), other.resolved_form())

    def equals(self, other: Filter) -> bool:
        """Whether each filter covers the other."""
        with Budget():
            return self.covers(other) and other.covers(self)

    def overlaps(self, other: Filter) -> bool:
        """Whether some event could match both."""
        return relations.overlaps(self.resolved_form(), other.resolved_form())

    def intersect(self, other: Filter) -> Filter:
        """The filter that matches what both match.

        In normal form, unless that takes too much work; raises FilterLimitError if the filter is
        too large then.
        """
        try:
            both = relations.intersect(self.resolved_form(), other.resolved_form())
        except OutOfWorkError:
            return _both(self, other)
        return _from_normal_form(both)

    def merge(self, other: Filter) -> Merged:
        """The smallest conjunction that covers both filters, and whether it is exact.

        >>> print(parse("price < 5").merge(parse("price between 5 and 9")))
        price <= 9 (exact)
        """
        form, exact = relations.merge(self.resolved_form(), other.resolved_form())
        return Merged(_from_normal_form(form), exact)

    # -- over an elapsed range ----------------------------------------------------------------

    def covers_during(self, other: Filter, start: float, end: float, *, lead: float = 0.0) -> bool:
        """Whether this filter covers ``other`` at every `t` from ``start`` to ``end`` seconds.

        `t` is that of this filter. The `t` of ``other`` is ``lead`` seconds ahead of it: positive
        if ``other`` began earlier, negative if later.

        >>> wide, narrow = parse("x < 3 + t"), parse("x < 2 + t")
        >>> wide.covers_during(narrow, 0, 60), narrow.covers_during(wide, 0, 60)
        (True, False)
        """
        for filter in (self, other):
            if filter.parameters:
                raise UnresolvedError(
                    f"`{filter}` depends on :{filter.parameters[0]}: "
                    "bind its parameters with .bind(...)"
                )
        elapsed = ElapsedRange(float(start), float(end))
        return evolution.covers_during(self.node, other.node, elapsed, lead)

    def over_estimate(self, start: float, end: float) -> Filter:
        """A static filter that matches whatever this one matches at some `t` of the range.

        >>> print(parse("x between -3 + t and 3 + t").over_estimate(0, 10))
        x >= -3.0 and x <= 13.0
        """
        return Filter(evolution.over_estimate(self.node, ElapsedRange(float(start), float(end))))

    def under_estimate(self, start: float, end: float) -> Filter:
        """A static filter that matches only what this one matches at every `t` of the range."""
        return Filter(evolution.under_estimate(self.node, ElapsedRange(float(start), float(end))))


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of ``merge``; exact, if it matches only what one of the two filters matches."""

    filter: Filter
    exact: bool

    def __str__(self) -> str:
        return f"{self.filter} ({'exact' if self.exact else 'wider'})"


def shape_of(filter: Filter) -> tuple[Shape, Row]:
    """The shape and the row of a filter.

    >>> shape, row = shape_of(parse("symbol = 'IBM' and x >= -3 + t"))
    >>> print(shape, row)
    symbol = ? and x >= ? + t ('IBM', -3)
    """
    return filter.shape_and_row


def environment_of(
    parameters: Mapping[str, object] | None = None,
    variables: Mapping[str, object] | None = None,
    t: float = 0.0,
    now: datetime | None = None,
) -> Environment:
    """The environment of these values, checked; raises BadValueError."""
    time = to_value(now)
    if time is not None and not isinstance(time, datetime):
        raise BadValueError(f"now must be a datetime, not {type(now).__name__}")
    return Environment(
        _values("parameter :", parameters or {}),
        _values("variable @", variables or {}),
        _seconds(t),
        time,
    )


def _cell_chars_max(cell: Value | ParameterRef) -> int:
    """An upper bound on the length of a cell's text."""
    if type(cell) is float or type(cell) is int:
        return _NUMBER_CHARS_MAX
    return len(format_value(cell)) if not isinstance(cell, ParameterRef) else 1 + len(cell.name)


def _seconds(t: float) -> float:
    try:
        seconds = float(t)
    except (TypeError, ValueError):
        seconds = math.nan
    if math.isfinite(seconds):
        return seconds
    raise BadValueError(f"t must be a finite number of seconds, not {t!r}")


def check_values(what: str, raw: Mapping[str, object]) -> dict[str, Value | None]:
    """Convert objects by name to values; None for one that counts as absent.

    ``what`` precedes the name in the message of a BadValueError.
    """
    values: dict[str, Value | None] = {}
    for name, each in raw.items():
        try:
            values[name] = to_value(each)
        except BadValueError as error:
            raise BadValueError(f"{what}{name}: {error}") from None
    return values


def _values(what: str, raw: Mapping[str, object]) -> dict[str, Value]:
    checked = check_values(what, raw)
    return {name: value for name, value in checked.items() if value is not None}


def _fixed(predicate: Predicate, environment: Environment) -> Node:
    """A predicate with the values of its operands; `false` where an undefined one decides it."""
    values = [evaluate(operand, environment) for operand in predicate.operands]
    constants = tuple(Constant(value) for value in values if value is not None)
    if predicate.operator in STRING_OPERATORS and ValueSet.of(predicate.operator, values).is_empty:
        return Truth(False)  # not a string, or not a well-formed pattern
    # An undefined operand equals nothing, so `in` goes on without it; of `not between` the other
    # half is left; every other predicate is false.
    if len(constants) == len(values) or (predicate.operator is Operator.IN and constants):
        return Predicate(predicate.attribute, predicate.operator, constants)
    if predicate.operator is Operator.NOT_BETWEEN:
        return map_predicates(desugared(predicate), lambda each: _fixed(each, environment))
    return Truth(False)


def _from_normal_form(form: NormalForm) -> Filter:
    return Filter(form.to_node())


def _both(a: Filter, b: Filter) -> Filter:
    """`a and b` as it is, within the limits of a text; raises FilterLimitError."""
    node = all_of([a.node, b.node])
    reason = over_limit(size_of(node), DEFAULT_LIMITS)
    if reason is not None:
        raise FilterLimitError(
            f"what both filters match is more than a filter can be: {reason}; "
            "intersect filters with fewer alternatives",
            "",
            0,
        )
    return Filter(node)
