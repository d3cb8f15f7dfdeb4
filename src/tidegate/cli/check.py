"""`tidegate check`: is a filter, pattern or advertisement valid, and what does it mean?"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from datetime import datetime
from typing import cast

import click

from tidegate.errors import FilterError, NeverMatchesWarning
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.expressions import Constant, ParameterRef, format_expression, leaves
from tidegate.language.filters import Filter, parse
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.spaces import Checked
from tidegate.language.syntax import STRING_OPERATORS, predicates
from tidegate.language.values import Value, format_value

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?$", re.ASCII)
CheckReport = dict[str, object]
"""The properties of a text, in the order in which they are printed."""


@click.command()
@click.argument("text", metavar="FILTER")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["filter", "pattern", "advertisement"]),
    default="filter",
    show_default=True,
    help="Kind of the text.",
)
@click.option("--space", "space_file", metavar="FILE", help="Space that the text must fit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(text: str, kind: str, space_file: str | None, as_json: bool) -> None:
    """Check a filter and show its shape.

    With it come its parameters, its variables and its normal form.

    \b
    Examples:
      tidegate check "price < :limit and symbol like 'N%SE'"
      tidegate check --as pattern "price > 5 then price > 9 within 30 s"
    """
    space = None
    if space_file is not None:
        from tidegate.matching.space_file import read_space  # imports Arrow, which takes a while

        space = read_space(space_file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeverMatchesWarning)  # it is in the report
            checked = _PARSERS[kind](text)
        if space is not None:
            space.check_filter(checked, text=text)
    except FilterError as error:
        if not as_json:
            raise
        problem = {"error": error.reason, "start": error.start, "end": error.end}
        click.echo(json.dumps(problem, ensure_ascii=False))
        sys.exit(2)
    report = _report(checked)
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)
    for written in _times_as_strings(checked):
        click.echo(
            f"hint: {format_value(written)} is compared as a string; "
            f"a time is written timestamp {format_value(written)}",
            err=True,
        )


_PARSERS: dict[str, Callable[[str], Checked]] = {
    "filter": parse,
    "pattern": parse_pattern,
    "advertisement": parse_advertisement,
}


def _times_as_strings(checked: Checked) -> list[str]:
    """The strings that have the form of a date or a time: most likely times were meant."""
    steps = checked.steps if isinstance(checked, Pattern) else (checked,)
    constants = (
        leaf.value
        for step in steps
        for predicate in predicates(step.node)
        if predicate.operator not in STRING_OPERATORS
        for operand in predicate.operands
        for leaf in leaves(operand)
        if isinstance(leaf, Constant)
    )
    texts = [each for each in constants if isinstance(each, str) and _DATE.match(each)]
    return list(dict.fromkeys(texts))


def _report(checked: Checked) -> CheckReport:
    match checked:
        case Pattern():
            return _describe_pattern(checked)
        case Advertisement():
            return _describe_advertisement(checked)
        case _:
            return _describe(checked)


def _describe(filter: Filter) -> CheckReport:
    shape, row = filter.shape_and_row
    return {
        "filter": str(filter),
        "shape": str(shape),
        "row": [_cell(value) for value in row],
        "attributes": list(filter.attributes),
        "parameters": list(filter.parameters),
        "variables": list(filter.variables),
        "evolves": filter.evolves,
        "normal_form": str(filter.normal_form.to_node()),
        "never_matches": filter.never_matches,
    }


def _cell(value: Value | ParameterRef) -> object:
    """A cell of a row for JSON; infinities and timestamps, which JSON lacks, are written as in a
    filter."""
    if isinstance(value, ParameterRef):
        return {"parameter": value.name}
    if isinstance(value, datetime) or value in (float("inf"), float("-inf")):
        return {"value": format_value(value)}
    return value


def _describe_pattern(pattern: Pattern) -> CheckReport:
    return {
        "pattern": str(pattern),
        "within_s": pattern.within_s,
        "parameters": list(pattern.parameters),
        "steps": [_describe(step) for step in pattern.steps],
    }


def _describe_advertisement(advertisement: Advertisement) -> CheckReport:
    names = {name for alternative in advertisement.alternatives for name in alternative}
    return {"advertisement": str(advertisement), "attributes": sorted(names)}


def _print(report: CheckReport) -> None:
    for key, value in report.items():
        if key == "never_matches":
            if value:
                click.echo("warning: no event can match this filter", err=True)
        elif key == "steps" and isinstance(value, list):
            for number, step in enumerate(value, 1):
                click.echo(f"\nstep {number}")
                _print(step)
        else:
            text = _readable_row(value) if key == "row" else _readable(value)
            click.echo(f"{key.replace('_', ' '):<14}{text}")


def _readable(value: object) -> str:
    match value:
        case None | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case [*names]:
            return ", ".join(map(str, names))
        case _:
            return str(value)


def _readable_row(row: object) -> str:
    cells = [_readable_cell(cell) for cell in row] if isinstance(row, list) else []
    return ", ".join(cells) or "none"


def _readable_cell(cell: object) -> str:
    match cell:
        case {"parameter": str(name)}:
            return format_expression(ParameterRef(name))
        case {"value": str(text)}:
            return text
        case _:
            return format_value(cast(Value, cell))
