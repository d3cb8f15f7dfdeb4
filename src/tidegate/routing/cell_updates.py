"""What is asked for as a structure and cells, so that a change of values is sent as an update.

A filter is a shape and a row (see `language.shapes`): constants are cells as well as parameters
are, and the name of what was sent together with the index of a cell is a variable that the two ends
of one link share (the broker variables of "Parametric Subscriptions", 4.3). Where only cells
differ, only those are sent.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tidegate.errors import BadValueError, RoutingError
from tidegate.language.expressions import ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.values import Value, to_value
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, filter_of

Cell = tuple[int, Value]
"""A value, and its place in a row."""


def structure(standing: WantedFilter) -> Hashable:
    """All but the cells; things of equal structure differ in cells only."""
    if isinstance(standing, Filter):
        return standing.shape_and_row[0]
    return standing.filter.shape_and_row[0], standing.origin_us, standing.evolve


def differing_cells(old: WantedFilter, new: WantedFilter) -> tuple[Cell, ...]:
    """The cells in which something differs from another of the same structure.

    >>> from tidegate.language.filters import parse
    >>> differing_cells(parse("a = 1 and b < 5"), parse("a = 1 and b < 7.5"))
    ((1, 7.5),)
    """
    pairs = zip(_row(old), _row(new), strict=True)
    return tuple(
        [
            (index, after)
            for index, (before, after) in enumerate(pairs)
            if before is not after and (type(before), before) != (type(after), after)
        ]
    )


def altered(standing: WantedFilter, cells: Iterable[Cell]) -> WantedFilter:
    """The same with other values in some cells.

    >>> from tidegate.language.filters import parse
    >>> print(altered(parse("a = 1 and b < 5"), [(1, 7.5)]))
    a = 1 and b < 7.5
    """
    shape, row = filter_of(standing).shape_and_row
    values: dict[int, Value] = {}
    for index, value in cells:
        if not isinstance(index, int) or not 0 <= index < len(row):
            raise RoutingError(
                f"`{shape}` has {len(row)} cells, so there is none of number {index}"
            )
        values[index] = _checked(value)
    filter = filter_of(standing).with_cells(values)
    if isinstance(standing, EvolvingFilter):
        return EvolvingFilter(filter, standing.origin_us, standing.evolve)
    return filter


def _row(standing: WantedFilter) -> tuple[Value, ...]:
    _, row = filter_of(standing).shape_and_row
    return tuple([each for each in row if not isinstance(each, ParameterRef)])


def _checked(value: object) -> Value:
    try:
        checked = to_value(value)
    except BadValueError as error:
        raise RoutingError(f"a cell cannot hold that: {error}") from None
    if checked is None:
        raise RoutingError("a cell holds a value")
    return checked
