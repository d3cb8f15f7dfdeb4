"""Updates of a wanted filter as cells: which values differ, and the filter with other values.

A filter is a shape and a row (see `language.shapes`), and constants are cells of the row just like
parameters. The key under which a filter was sent, together with the index of a cell, is a variable
that the two ends of one link share (the broker variables of "Parametric Subscriptions", 4.3; that
all values become variables is the step which the paper leaves out for simplicity). So where one
filter replaces another of the same structure, only the cells that differ cross the link.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tidegate.errors import BadValueError, RoutingError
from tidegate.language.expressions import ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.values import Value, to_value
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter

Cell = tuple[int, Value]
"""The index of a cell in its row, and its value."""


def structure(wanted: WantedFilter) -> Hashable:
    """Everything of a wanted filter but its cells; filters of equal structure differ in cells only.

    The time from which an evolving filter counts `t` belongs to the structure: it is no cell, so an
    update could not change it.
    """
    if isinstance(wanted, Filter):
        return wanted.shape_and_row[0]
    return wanted.filter.shape_and_row[0], wanted.origin_us, wanted.evolve


def identity(wanted: WantedFilter) -> Hashable:
    """The structure and the cells: equal for filters between which there is nothing to update."""
    return structure(wanted), tuple([(type(cell), cell) for cell in _row(wanted)])


def differing_cells(old: WantedFilter, new: WantedFilter) -> tuple[Cell, ...]:
    """The cells of ``new`` that differ from those of ``old``, which has the same structure.

    >>> from tidegate.language.filters import parse
    >>> differing_cells(parse("a = 1 and b < 5"), parse("a = 1 and b < 7.5"))
    ((1, 7.5),)
    """
    pairs = zip(_row(old), _row(new), strict=True)
    # Types are compared too: 1, 1.0 and True are equal in Python but not the same value here.
    return tuple(
        [
            (index, after)
            for index, (before, after) in enumerate(pairs)
            if before is not after and (type(before), before) != (type(after), after)
        ]
    )


def with_cells(wanted: WantedFilter, cells: Iterable[Cell]) -> WantedFilter:
    """A wanted filter with other values in some cells; raises RoutingError for cells it lacks.

    The cells come from a neighbour, so indexes and values are checked here.

    >>> from tidegate.language.filters import parse
    >>> print(with_cells(parse("a = 1 and b < 5"), [(1, 7.5)]))
    a = 1 and b < 7.5
    """
    shape, row = underlying_filter(wanted).shape_and_row
    values: dict[int, Value] = {}
    for index, value in cells:
        if not isinstance(index, int) or not 0 <= index < len(row):
            raise RoutingError(
                f"`{shape}` has no cell {index!r}; its {len(row)} cells are numbered from 0"
            )
        values[index] = _checked(value)
    filter = underlying_filter(wanted).with_cells(values)
    if isinstance(wanted, EvolvingFilter):
        return EvolvingFilter(filter, wanted.origin_us, wanted.evolve)
    return filter


def _row(wanted: WantedFilter) -> tuple[Value, ...]:
    """The row of a wanted filter, which has values in all cells and no parameters."""
    _, row = underlying_filter(wanted).shape_and_row
    return tuple([each for each in row if not isinstance(each, ParameterRef)])


def _checked(value: object) -> Value:
    try:
        checked = to_value(value)
    except BadValueError as error:
        raise RoutingError(f"a cell cannot hold this value: {error}") from None
    if checked is None:
        raise RoutingError(f"a cell must hold a value, not {value!r}")
    return checked
