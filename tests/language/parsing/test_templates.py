from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidegate.language.expressions import ParameterRef, Slot
from tidegate.language.parsing.parser import Parser
from tidegate.language.parsing.templates import Template, Term, UnusualLiteralError, conjunction
from tidegate.language.shapes import Row, split
from tidegate.language.syntax import Operator, Predicate


def learn(text: str) -> Template:
    parser = Parser(text)
    shape, filled = split(parser.filter())
    return Template.of(shape, filled, parser.literals)


@pytest.mark.parametrize(
    ("text", "literals", "row"),
    [
        ("a = 1", ["2"], (2,)),
        ("a = 1", ["2.5"], (2.5,)),
        ("a = -1", ["007"], (-7,)),
        ("a = 'x'", ["'it''s'"], ("it's",)),
        ("a = 'x'", ['"é"'], ("é",)),
        ("a like 'x%'", ["'%'"], ("%",)),
        ("a = timestamp '2026-01-02'", ["'2026-01-03'"], (datetime(2026, 1, 3, tzinfo=UTC),)),
        ("b = 1 and a = 2", ["3", "4"], (4, 3)),
        ("a between 1 and 2", ["3", "4"], (4, 3)),
        ("a in (1, :p, true, 'x')", ["3", "'y'"], (3, ParameterRef("p"), True, "y")),
        ("c = 3 and (b = 2 or a = 1)", ["7", "8", "9"], (9, 7, 8, 7)),
        ("a is not null", [], ()),
    ],
)
def test_a_row_from_literals(text: str, literals: list[str], row: Row) -> None:
    found = learn(text).row(literals)
    assert [(type(value), value) for value in found] == [(type(value), value) for value in row]


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("a = 1", "'x'"),
        ("a = 1", "1e999"),
        ("a = 1", "1" * 19),
        ("a = 'x'", "1"),
        ("a = 'x'", "'\ud800'"),
        ("a like 'x'", r"'\%'"),
        ("a = timestamp '2026-01-02'", "'soon'"),
        ("a = timestamp '2026-01-02'", "5"),
    ],
)
def test_unusual_literals_are_left_to_the_parser(text: str, literal: str) -> None:
    with pytest.raises(UnusualLiteralError):
        learn(text).row([literal])


def test_the_terms_of_a_conjunction() -> None:
    terms = learn("b between 1 and :p + 2 and a is not null").terms()
    assert [str(term.predicate) for term in terms] == ["a is not null", "b <= ? + ?", "b >= ?"]
    assert [term.base for term in terms] == [(), (ParameterRef("p"), 2), (1,)]
    assert [[fill[:2] for fill in term.fills] for term in terms] == [[], [(1, 1)], [(0, 0)]]


def test_a_term_in_several_places() -> None:
    (term,) = learn("a in (1, 2)").terms()
    placed = term.placed(3)
    assert placed == Predicate("a", Operator.IN, (Slot(3), Slot(4)))
    assert term.placed(3) is placed
    assert term.placed(0) == term.predicate


def test_a_conjunction_is_what_parsing_it_gives() -> None:
    parts = ["x < 1", "b between 2 and 3", "x < :p + 4", "a is not null", "x < 5"]
    terms: list[tuple[Term, int]] = []
    before = 0
    for part in parts:
        template = learn(part)
        terms += [(term, before) for term in template.terms()]
        before += len(template.fills)
    whole = learn(" and ".join(parts))
    found = conjunction(terms)
    assert (found.shape, found.base, set(found.fills)) == (
        whole.shape,
        whole.base,
        set(whole.fills),
    )
    assert found.row(["10", "20", "30", "40", "50"]) == whole.row(["10", "20", "30", "40", "50"])
