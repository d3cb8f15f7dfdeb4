from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import EDGE_STRINGS, strings_around, typed_predicates
from tidegate.language.algebra.normal_form import ground_values
from tidegate.language.filters import parse
from tidegate.language.syntax import Operator, Predicate
from tidegate.matching.summary.row_patterns import (
    ANY_TEXT,
    covers,
    joined,
    literal_chars,
    pattern_of,
    patterns_of,
    pieces_of,
)
from tidegate.matching.summary.tables import RowKind, RowPattern

texts = st.text("ab", max_size=3)
pieces = st.lists(texts, min_size=1, max_size=4).map(tuple)
some_texts = st.text("abc", max_size=8)


def patterns_for(text: str) -> list[tuple[str, tuple[str, ...], bool]]:
    """The patterns of the constraints on `s` in a filter: kind, parts, and whether it is exact."""
    (conjunction,) = parse(text).normal_form.conjunctions
    found = [each for strings in conjunction.sets["s"].strings for each in patterns_of(strings)]
    return [(pattern.kind.name, pattern.parts, exact) for pattern, exact in found]


@given(pieces, some_texts)
def test_a_pattern_fits_what_its_pieces_fit(pieces: tuple[str, ...], text: str) -> None:
    pattern = pattern_of(pieces)
    assert pattern.fits(text) == RowPattern(RowKind.LIKE, pieces).fits(text)
    assert pattern_of(pieces_of(pattern)) == pattern


@given(pieces, pieces, some_texts)
def test_covering_is_sound(one: tuple[str, ...], other: tuple[str, ...], text: str) -> None:
    wide, narrow = pattern_of(one), pattern_of(other)
    if covers(wide, narrow):
        assert wide.fits(text) or not narrow.fits(text)
        assert literal_chars(wide) <= literal_chars(narrow)
    assert covers(ANY_TEXT, narrow)
    assert covers(wide, wide)


@given(pieces, pieces, some_texts)
def test_a_joined_pattern_covers_both(
    one: tuple[str, ...], other: tuple[str, ...], text: str
) -> None:
    a, b = pattern_of(one), pattern_of(other)
    both = joined(a, b)
    assert covers(both, a)
    assert covers(both, b)
    assert both.fits(text) or not (a.fits(text) or b.fits(text))


def test_the_example_of_the_paper() -> None:
    general = pattern_of(("m", "t"))
    assert covers(general, pattern_of(("microsoft",)))
    assert covers(general, pattern_of(("micronet",)))
    assert joined(pattern_of(("microsoft",)), pattern_of(("micronet",))) == pattern_of(
        ("micro", "t")
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s = 'a'", [("EQUAL", ("a",), True)]),
        ("s in ('a', 'b')", [("EQUAL", ("a",), True), ("EQUAL", ("b",), True)]),
        ("s is not null", [("ANY", (), True)]),
        ("s starts with 'ab'", [("PREFIX", ("ab",), True)]),
        ("s ends with 'ab'", [("SUFFIX", ("ab",), True)]),
        ("s contains 'ab'", [("CONTAINS", ("ab",), True)]),
        ("s like 'a%b%c'", [("LIKE", ("a", "b", "c"), True)]),
        ("s like 'a_b'", [("LIKE", ("a", "b"), False)]),
        ("s != 'a'", [("ANY", (), False)]),
        ("s < 'm'", [("ANY", (), False)]),
        ("s >= 'ma' and s < 'mz'", [("PREFIX", ("m",), False)]),
        ("s starts with 'a' or s starts with 'b'",
         [("PREFIX", ("a",), True), ("PREFIX", ("b",), True)]),
        ("s starts with 'a' and s ends with 'b'", [("LIKE", ("a", "b"), True)]),
        ("s starts with 'ab' and s ends with 'ba'", [("PREFIX", ("ab",), False)]),
        ("s starts with 'a' and not s contains 'x'", [("PREFIX", ("a",), False)]),
        ("s contains 'x' and s contains 'yyy'", [("CONTAINS", ("yyy",), False)]),
        ("s ends with 'x' and s < 'm'", [("SUFFIX", ("x",), False)]),
    ],
)  # fmt: skip
def test_the_patterns_of_constraints(
    text: str, expected: list[tuple[str, tuple[str, ...], bool]]
) -> None:
    assert patterns_for(text) == expected


@given(st.lists(typed_predicates(), min_size=1, max_size=3), st.data())
def test_the_patterns_of_a_set_are_sound(predicates: list[Predicate], data: st.DataObject) -> None:
    values = [ground_values(each) for each in predicates if each.operator is not Operator.PRESENT]
    for sets in (each.strings for each in values):
        for strings in sets:
            text = data.draw(st.sampled_from([*strings_around(EDGE_STRINGS[:6]), "abab", "é"]))
            found = patterns_of(strings)
            fitting = [exact for pattern, exact in found if pattern.fits(text)]
            assert fitting or not strings.contains(text)
            assert strings.contains(text) or not any(fitting)
