from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from support.golden import messages
from tidegate.errors import FilterError, NeverMatchesWarning
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern, parse_pattern

patterns = st.builds(
    Pattern,
    st.lists(strategies.filters, min_size=1, max_size=3).map(tuple),
    st.none() | st.floats(0, 1e12) | st.integers(0, 10**12).map(float),
)
pytestmark = pytest.mark.filterwarnings("ignore::tidegate.errors.NeverMatchesWarning")


@pytest.mark.parametrize(
    ("text", "printed", "steps", "within_s"),
    [
        ("a = 1", "a = 1", 1, None),
        ("a = 1 then b = 2", "a = 1 then b = 2", 2, None),
        ("a=1 THEN b=2 Then c=3", "a = 1 then b = 2 then c = 3", 3, None),
        ("a = 1 then b = 2 within 30 s", "a = 1 then b = 2 within 30 s", 2, 30.0),
        ("a = 1 then b = 2 WITHIN 30 S", "a = 1 then b = 2 within 30 s", 2, 30.0),
        ("a = 1 within 250 ms", "a = 1 within 0.25 s", 1, 0.25),
        ("a = 1 within 1.5 min", "a = 1 within 90 s", 1, 90.0),
        ("a = 1 within 2 h", "a = 1 within 7200 s", 1, 7200.0),
        ("a = 1 within 7 d", "a = 1 within 604800 s", 1, 604_800.0),
        ("a = 1 within 0 s", "a = 1 within 0 s", 1, 0.0),
        ("a = 1 within 1e-6 s", "a = 1 within 1e-06 s", 1, 1e-6),
        ("a = 1 or b = 2 then c = 3", "a = 1 or b = 2 then c = 3", 2, None),
        ("(a = 1 or b = 2) then (c = 3)", "a = 1 or b = 2 then c = 3", 2, None),
        ("true then true", "true then true", 2, None),
        ("`then` = 1 then `within` = 2", "`then` = 1 then `within` = 2", 2, None),
    ],
)
def test_reading_and_printing(text: str, printed: str, steps: int, within_s: float | None) -> None:
    pattern = parse_pattern(text)
    assert (str(pattern), len(pattern.steps), pattern.within_s) == (printed, steps, within_s)
    assert parse_pattern(printed) == pattern


@given(patterns)
def test_what_is_printed_reads_back_the_same(pattern: Pattern) -> None:
    assert parse_pattern(str(pattern)) == pattern


def test_whole_seconds_may_be_an_integer() -> None:
    steps = parse_pattern("a = 1").steps
    assert str(Pattern(steps, 30)) == "a = 1 within 30 s"


@pytest.mark.parametrize(("text", "message"), messages("patterns"))
def test_messages(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_pattern(text)
    assert str(caught.value) == message


def test_a_step_that_never_matches_is_told() -> None:
    with pytest.warns(NeverMatchesWarning, match="no event can match `b < 1 and b > 2`"):
        parse_pattern("a = 1 then b < 1 and b > 2")


def test_parameters_of_all_steps() -> None:
    pattern = parse_pattern("a = :p and b = :q then a > :q and c = :r")
    assert pattern.parameters == ("p", "q", "r")


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a > 1 then b > 1", "a > 2 then b > 1"),
        ("a > 1 then b > 1", "a > 1 then b > 1 within 5 s"),
        ("a > 1 then b > 1 within 5 s", "a > 1 then b = 2 within 4 s"),
        ("true then true", "a = 1 then b = 2"),
    ],
)
def test_covers(wide: str, narrow: str) -> None:
    a, b = parse_pattern(wide), parse_pattern(narrow)
    assert a.covers(a)
    assert a.covers(b)
    assert not b.covers(a)


def test_patterns_of_different_length_do_not_cover() -> None:
    one, two = parse_pattern("true"), parse_pattern("a = 1 then a = 1")
    assert not one.covers(two)
    assert not two.covers(one)


def test_steps_are_filters() -> None:
    assert parse_pattern("a = 1 then b = 2").steps == tuple(
        Filter(parse_pattern(text).steps[0].node) for text in ("a = 1", "b = 2")
    )
