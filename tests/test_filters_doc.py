"""Every example of docs/filters.md, run. The header of a table says how its rows are checked."""

from __future__ import annotations

import doctest
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

import tidegate
from support import pages
from support.pages import Row, code, said
from tidegate.language import events
from tidegate.language.evolve import parse_evolve
from tidegate.language.expressions import CHOICES, FUNCTIONS, Constant, format_expression
from tidegate.language.filters import Filter
from tidegate.language.patterns import sequence_matcher
from tidegate.language.shapes import Row as ShapeRow
from tidegate.language.spaces import TYPE_NAMES
from tidegate.language.syntax import RESERVED, Operator, Predicate, Truth, predicates
from tidegate.language.values import Kind, Value, format_value, kind_of
from tidegate.matching.registry import MATCHERS

PAGE = "docs/filters.md"
SECTIONS = pages.read(PAGE)
START = datetime(2026, 1, 2, tzinfo=UTC)


# -- what the cells hold -----------------------------------------------------------------------


def parsed(text: str, limits: tidegate.Limits | None = None) -> Filter:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tidegate.NeverMatchesWarning)
        return tidegate.parse(text, limits or tidegate.Limits())


def event_of(cell: str) -> dict[str, object]:
    """JSON, in which the attribute `at` is a timestamp."""
    attributes: dict[str, object] = json.loads(code(cell))
    if isinstance(attributes, dict) and isinstance(attributes.get("at"), str):
        attributes["at"] = datetime.fromisoformat(str(attributes["at"]))
    return attributes


def constant(text: str) -> Value:
    (predicate,) = predicates(parsed(f"x = {text}").node)
    (operand,) = predicate.operands
    assert isinstance(operand, Constant)
    return operand.value


def moment(filter: Filter, cell: str) -> Filter:
    """The filter at the values of a `with` column."""
    parameters: dict[str, object] = {}
    variables: dict[str, object] = {}
    t, now = 0.0, None
    for setting in code(cell).split(", ") if cell else []:
        name, _, text = setting.partition(" = ")
        value = constant(text)
        if name == "t":
            assert isinstance(value, (int, float))
            t = float(value)
        elif name == "now()":
            assert isinstance(value, datetime)
            now = value
        else:
            {":": parameters, "@": variables}[name[0]][name[1:]] = value
    return filter.at(parameters, variables=variables, t=t, now=now)


def answer(cell: str) -> bool:
    return {"yes": True, "no": False}[cell]


def format_row(row: ShapeRow) -> str:
    cells = [
        format_expression(each) if not isinstance(each, Value) else format_value(each)
        for each in row
    ]
    return f"({', '.join(cells)})"


# -- how the rows are checked, by the header of their table --------------------------------------

Check = Callable[..., None]
CHECKS: dict[tuple[str, ...], Check] = {}


def table(*header: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[header] = check
        return check

    return register


@table("kind", "written", "Python type")
def check_kind(kind: str, written: str, python_type: str) -> None:
    value = constant(code(written))
    assert kind_of(value) is Kind(code(kind))
    assert type(value).__name__ == code(python_type)


@table("filter", "event", "matches")
def check_match(filter: str, event: str, matches: str) -> None:
    assert parsed(code(filter)).matches(event_of(event)) is answer(matches)


@table("filter", "with", "event", "matches")
def check_match_with(filter: str, values: str, event: str, matches: str) -> None:
    assert moment(parsed(code(filter)), values).matches(event_of(event)) is answer(matches)


@table("expression", "result")
def check_expression(expression: str, result: str) -> None:
    check_expression_with(expression, "", result)


@table("expression", "with", "result")
def check_expression_with(expression: str, values: str, result: str) -> None:
    node = moment(parsed(f"x = {code(expression)}"), values).node
    if result == "undefined":
        assert node == Truth(False)
    else:
        assert isinstance(node, Predicate)
        assert format_expression(node.operands[0]) == code(result)


@table("written", "printed")
def check_printed(written: str, printed: str) -> None:
    filter = parsed(code(written))
    assert str(filter) == code(printed)
    assert parsed(str(filter)) == filter


@table("text", "error")
def check_error(text: str, error: str) -> None:
    with pytest.raises(tidegate.FilterError) as raised:
        parsed("" if text == "(empty)" else code(text))
    assert said(error, str(raised.value))


@table("limits", "text", "error")
def check_limit(limits: str, text: str, error: str) -> None:
    name, _, number = code(limits).partition("=")
    with pytest.raises(tidegate.FilterLimitError) as raised:
        parsed(code(text), tidegate.Limits(**{name: int(number)}))
    assert said(error, str(raised.value))


@table("event", "error")
def check_event_error(event: str, error: str) -> None:
    with pytest.raises(tidegate.EventError) as raised:
        tidegate.Event.of(event_of(event))
    assert said(error, str(raised.value))


@table("filter", "warning")
def check_warning(text: str, warning: str, parse: Callable[[str], object] = tidegate.parse) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        parse(code(text))
    assert [each.category for each in given] == [tidegate.NeverMatchesWarning] * answer(warning)


@table("pattern", "warning")
def check_pattern_warning(text: str, warning: str) -> None:
    check_warning(text, warning, tidegate.parse_pattern)


@table("operator", "complement", "holds if")
def check_operator(operator: str, opposite: str, _: str) -> None:
    operands = {"between": " 1 and 2", "in": " (1, 2)", "is not null": ""}
    written = f"x {code(operator)}" + operands.get(code(operator), " 'a'")
    node = parsed(f"not {written}").node
    assert str(parsed(written)) == written
    assert (node.operator.value if isinstance(node, Predicate) else str(node)) == code(opposite)


@table("function", "arguments", "result")
def check_function(function: str, arguments: str, _: str) -> None:
    count = {"none": 0, "one": 1, "two or more": 2}[arguments]
    text = f"x < {code(function)}({', '.join(['1'] * count)})"
    assert str(parsed(text)) == text


@table("reserved words")
def check_reserved(words: str) -> None:
    assert set(re.findall(r"`(\w+)`", words)) == RESERVED


@table("limit", "default", "what it bounds")
def check_default(limit: str, default: str, _: str) -> None:
    assert int(default.replace(",", "")) == LIMITS[code(limit)]


@table("filter", "normal form")
def check_normal_form(filter: str, form: str) -> None:
    assert str(parsed(code(filter)).normal_form.to_node()) == code(form)


@table("wide", "narrow", "covers")
def check_covers(wide: str, narrow: str, covers: str) -> None:
    assert parsed(code(wide)).covers(parsed(code(narrow))) is answer(covers)


@table("one", "other", "overlaps")
def check_overlaps(one: str, other: str, overlaps: str) -> None:
    a, b = parsed(code(one)), parsed(code(other))
    assert a.overlaps(b) is b.overlaps(a) is answer(overlaps)


@table("one", "other", "intersection")
def check_intersection(one: str, other: str, both: str) -> None:
    assert str(parsed(code(one)).intersect(parsed(code(other)))) == code(both)


@table("one", "other", "merged", "exact")
def check_merged(one: str, other: str, merged: str, exact: str) -> None:
    found = parsed(code(one)).merge(parsed(code(other)))
    assert (str(found.filter), found.exact) == (code(merged), answer(exact))


@table("filter", "shape", "row")
def check_shape(filter: str, shape: str, row: str) -> None:
    found, values = tidegate.shape_of(parsed(code(filter)))
    assert (str(found), format_row(values)) == (code(shape), code(row))


@table("filter", "from", "to", "over-estimate", "under-estimate")
def check_estimates(filter: str, start: str, end: str, over: str, under: str) -> None:
    evolving, elapsed = parsed(code(filter)), (float(start), float(end))
    assert str(evolving.over_estimate(*elapsed)) == code(over)
    assert str(evolving.under_estimate(*elapsed)) == code(under)


@table("wide", "narrow", "from", "to", "covers")
def check_covers_during(wide: str, narrow: str, start: str, end: str, covers: str) -> None:
    a, b = parsed(code(wide)), parsed(code(narrow))
    assert a.covers_during(b, float(start), float(end)) is answer(covers)


@table("mode", "filter", "events", "judged at", "matches")
def check_mode(mode: str, filter: str, arrivals: str, judged_at: str, matches: str) -> None:
    for matcher in MATCHERS:
        engine = tidegate.Engine(matcher=matcher)
        engine.subscribe(code(filter), id="s", since=START, evolve=parse_evolve(code(mode)))
        judged, found = [], []
        for arrival in code(arrivals).split(", "):
            second, _, x = arrival.partition(": ")
            event = tidegate.Event.of({"x": float(x)}, START + timedelta(seconds=float(second)))
            found.append("yes" if engine.match(event) else "no")
            judged.append(f"{engine.explain('s', event).t:g}")
        assert (" ".join(judged), " ".join(found)) == (code(judged_at), code(matches)), matcher


@table("evolve", "Python")
def check_mode_text(text: str, python: str) -> None:
    found = parse_evolve(code(text))
    assert (repr(found), str(found)) == (code(python), code(text))


@table("not a mode", "error")
def check_mode_error(text: str, error: str) -> None:
    with pytest.raises(tidegate.BadValueError) as raised:
        parse_evolve(code(text))
    assert said(error, str(raised.value))


@table("advertisement", "event", "allows")
def check_allows(advertisement: str, event: str, allows: str) -> None:
    found = tidegate.parse_advertisement(code(advertisement)).allows(event_of(event))
    assert found is answer(allows)


@table("not an advertisement", "error")
def check_advertisement_error(text: str, error: str) -> None:
    with pytest.raises(tidegate.FilterError) as raised:
        tidegate.parse_advertisement(code(text))
    assert said(error, str(raised.value))


@table("wide advertisement", "narrow advertisement", "covers")
def check_advertisement_covers(wide: str, narrow: str, covers: str) -> None:
    a, b = map(tidegate.parse_advertisement, (code(wide), code(narrow)))
    assert a.covers(b) is answer(covers)


@table("advertisement", "filter", "overlaps")
def check_advertisement_overlaps(advertisement: str, filter: str, overlaps: str) -> None:
    found = tidegate.parse_advertisement(code(advertisement)).overlaps(parsed(code(filter)))
    assert found is answer(overlaps)


@table("pattern", "printed")
def check_pattern_printed(pattern: str, printed: str) -> None:
    found = tidegate.parse_pattern(code(pattern))
    assert str(found) == code(printed)
    assert tidegate.parse_pattern(str(found)) == found


@table("not a pattern", "error")
def check_pattern_error(text: str, error: str) -> None:
    with pytest.raises(tidegate.FilterError) as raised:
        tidegate.parse_pattern(code(text))
    assert said(error, str(raised.value))


@table("pattern", "events", "matches")
def check_sequence(pattern: str, arrivals: str, matches: str) -> None:
    check_late_sequence(pattern, "0", arrivals, matches)


@table("pattern", "lateness", "events", "matches")
def check_late_sequence(pattern: str, lateness: str, arrivals: str, matches: str) -> None:
    matcher = tidegate.SequenceMatcher(
        tidegate.parse_pattern(code(pattern)), lateness_s=float(lateness)
    )
    found: list[sequence_matcher.Match] = []
    for arrival in code(arrivals).split(", "):
        second, _, x = arrival.partition(": ")
        time = START + timedelta(seconds=float(second))
        found += matcher.feed(tidegate.Event.of({"x": int(x)}, time))
    found += matcher.flush()
    times = [" ".join(f"{_seconds(event):g}" for event in match) for match in found]
    assert (", ".join(times) or "none") == code(matches)


def _seconds(event: tidegate.Event) -> float:
    assert event.time is not None
    return (event.time - START).total_seconds()


@table("wide pattern", "narrow pattern", "covers")
def check_pattern_covers(wide: str, narrow: str, covers: str) -> None:
    a, b = map(tidegate.parse_pattern, (code(wide), code(narrow)))
    assert a.covers(b) is answer(covers)


@table("type", "named", "values")
def check_type(kind: str, named: str, written: str) -> None:
    (declared,) = (each for each in TYPE_NAMES if each.__name__ == code(kind))
    assert TYPE_NAMES[declared] == code(named)
    space = tidegate.Space("s", {"x": declared})
    for value in re.findall("`([^`]+)`", written):
        space.check_event(tidegate.Event({"x": constant(value)}))


TRADES = tidegate.Space("trades", {
    "symbol": str, "price": float, "volume": int, "open": bool, "at": datetime,
    "quote.bid": float, "venue": str,
})  # fmt: skip
"""The space `trades` of the page."""


def check_fits(check: Callable[[], None], fits: str) -> None:
    if fits == "yes":
        check()
        return
    with pytest.raises((tidegate.EventError, tidegate.FilterError)) as raised:
        check()
    assert said(fits, str(raised.value))


@table("event in the space", "fits")
def check_event_fits(event: str, fits: str) -> None:
    check_fits(lambda: TRADES.check_event(tidegate.Event.of(event_of(event))), fits)


@table("filter in the space", "fits")
def check_filter_fits(filter: str, fits: str) -> None:
    text = code(filter)
    check_fits(lambda: TRADES.check_filter(parsed(text), text=text), fits)


# -- the tests ---------------------------------------------------------------------------------


def _limits(module: ModuleType) -> dict[str, float]:
    return {name: value for name, value in vars(module).items() if name.endswith("_MAX")}


LIMITS: dict[str, float] = asdict(tidegate.Limits()) | _limits(events) | _limits(sequence_matcher)

ROWS = [pytest.param(row, id=f"line{row.line}") for each in SECTIONS for row in each.rows]
EXAMPLES = [block for each in SECTIONS for block in each.blocks if block.language == "python"]


@pytest.mark.parametrize("row", ROWS)
def test_row(row: Row) -> None:
    CHECKS[row.header](*row.cells.values())


def test_python_examples() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    names: dict[str, object] = {}
    report: list[str] = []
    for block in EXAMPLES:
        example = parser.get_doctest(block.text, names, PAGE, PAGE, block.line - 1)
        runner.run(example, out=report.append, clear_globs=False)
        names = example.globs
    assert EXAMPLES
    assert not report, "".join(report)


def test_every_section_has_an_example() -> None:
    bare = [
        section.title
        for section in SECTIONS[1:]
        if section.prose and not section.rows and not section.blocks
    ]
    assert bare == ["The filter language"]  # it says how to read the tables


def test_tables_are_complete() -> None:
    rows: dict[tuple[str, ...], list[Row]] = {header: [] for header in CHECKS}
    for section in SECTIONS:
        for row in section.rows:
            rows[row.header].append(row)
    assert all(rows.values()), "a check that no table uses"
    operators = rows["operator", "complement", "holds if"]
    named = {code(row.cells[name]) for row in operators for name in ("operator", "complement")}
    assert named == {each.value for each in Operator} | {"false"}
    functions = {code(row.cells["function"]) for row in rows["function", "arguments", "result"]}
    assert functions == {*FUNCTIONS, *CHOICES, "now"}
    kinds = {code(row.cells["kind"]) for row in rows["kind", "written", "Python type"]}
    assert kinds == {kind.value for kind in Kind}
    types = {code(row.cells["named"]) for row in rows["type", "named", "values"]}
    assert types == set(TYPE_NAMES.values())
    limits = {code(row.cells["limit"]) for row in rows["limit", "default", "what it bounds"]}
    assert limits == LIMITS.keys()
