"""How many things a matcher keeps, structure by structure: what must not grow with its history."""

from __future__ import annotations

from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.rows.kernels.cell_kinds import STRING
from tidegate.matching.tree.matcher import TreeMatcher

RowMatcher = ColumnarMatcher | TreeMatcher


def footprint(matcher: RowMatcher) -> dict[str, int]:
    """The numbers of things in the table, the channels and the plans of a matcher."""
    table, channels = matcher._table, matcher._channels
    rows = table.rows
    return {
        "strings": len(table.pool),
        "string numbers": len(table.pool.texts()),
        "shapes": len(table._shapes),
        "shape numbers": len(table.shapes),
        "lists of names": len(table._names.lists()),
        "row cells": rows._length,
        "subscription numbers": table.columns.count,
        "attributes": len(channels.of_attribute),
        "columns": channels.columns,
        "variables": channels.variable_columns,
        "program words": len(channels.program),
        "pattern texts": len(channels._patterns_with),
        "order labels": len(channels.orders),
        "pattern numbers": sum(len(each.patterns()) for each in channels.patterns.values()),
        "held shapes": len(channels._held),
        "plans": sum(map(len, matcher._rewriter._plans.values())),
    }


def check_counts(matcher: RowMatcher) -> None:
    """Compare all counts of uses with the uses that are there."""
    table, channels = matcher._table, matcher._channels
    columns, rows = table.columns, table.rows
    used = columns.used().tolist()
    shapes = [columns.shape.item(number) for number in used]
    names = [columns.names.item(number) for number in used]
    strings: list[int] = []
    for number, shape in zip(used, shapes, strict=True):
        begin = columns.row.item(number)
        cells = range(begin, begin + table.width(shape))
        strings += [rows.cells.item(cell) for cell in cells if rows.kinds[cell] == STRING]
    for counted, found in (
        (table._shapes.uses.counts(), shapes),
        (table._names.uses.counts(), names),
        (table.pool.uses.counts(), strings),
    ):
        assert [max(0, each) for each in counted] == [
            found.count(number) for number in range(len(counted))
        ]
    assert table.pool.uses.unused == 0
    texts = {table.pool.text(number) for number in strings}
    assert channels._patterns_with.keys() <= texts
    assert {number for number, _ in table.numbered_shapes()} >= channels._held.keys()
    assert channels._held.keys() >= set(shapes) or not used
    attributes = {name for needs in channels._held.values() for name in needs.attributes}
    assert {name for name in channels.of_attribute if name} <= attributes


def forgetful(matcher: RowMatcher) -> None:
    """Let a matcher forget shapes and lists of names at once, so that numbers are reused soon."""
    matcher._table._shapes._unused_max = 0
    matcher._table._names._unused_max = 0
