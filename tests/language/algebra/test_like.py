from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import globs, strings
from tidegate.language.algebra import like
from tidegate.language.algebra.like import (
    LONG_PATTERNS_MAX,
    SHORT_CHARS_MAX,
    SHORT_PATTERNS_MAX,
    Glob,
    GlobError,
    escape,
)

texts = strings | st.text("ab%_\\\n", max_size=8)


def as_regex(pattern: str) -> str:
    """The pattern as a regular expression, written straight from the rule."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meanings = {"%": ".*", "_": "."}
    return "".join(meanings.get(part) or re.escape(part[-1]) for part in parts)


@given(globs, texts)
def test_matches_what_the_regular_expression_matches(pattern: str, text: str) -> None:
    wanted = re.fullmatch(as_regex(pattern), text, re.DOTALL) is not None
    assert Glob.parse(pattern).matches(text) == wanted


@given(st.lists(st.sampled_from("ab_%"), max_size=8).map("".join), st.text("ab", max_size=10))
def test_matches_with_many_wildcards(pattern: str, text: str) -> None:
    wanted = re.fullmatch(as_regex(pattern), text, re.DOTALL) is not None
    assert Glob.parse(pattern).matches(text) == wanted


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("", [""], ["a"]),
        ("%", ["", "a", "a\nb"], []),
        ("%%", ["", "ab"], []),
        ("_%", ["a", "ab"], [""]),
        ("%_", ["a", "ab"], [""]),
        ("a%a", ["aa", "aba"], ["a", "ab"]),
        ("ab%ba", ["abba", "abcba"], ["aba"]),
        ("%aab%", ["aaab"], ["aaa", "abab"]),
        ("a.b", ["a.b"], ["acb"]),
        (r"\%\_\\", ["%_\\"], ["a"]),
        ("é_", ["éa", "é\U0001f30a"], ["é"]),
    ],
)
def test_examples(pattern: str, matching: list[str], other: list[str]) -> None:
    glob = Glob.parse(pattern)
    assert [text for text in matching if not glob.matches(text)] == []
    assert [text for text in other if glob.matches(text)] == []


@pytest.mark.parametrize("pattern", ["%a" * 200, "%a" * 200 + "b", "%_" * 200 + "b", "_a%" * 100])
def test_a_pattern_made_to_be_slow_is_not(pattern: str) -> None:
    # a matcher that tries all ways would not come back
    text = "a" * 50_000
    assert Glob.parse(pattern).matches(text) == (not pattern.endswith("b"))


@pytest.mark.parametrize("pattern", ["\\", "a\\", r"\a", r"a\\\b"])
def test_a_backslash_stands_before_something_special(pattern: str) -> None:
    with pytest.raises(GlobError) as caught:
        Glob.parse(pattern)
    assert str(caught.value) == (
        "a backslash in a pattern must come before %, _ or another backslash"
    )


@given(texts)
def test_an_escaped_text_matches_only_itself(text: str) -> None:
    glob = Glob.parse(escape(text))
    assert glob.is_literal
    assert glob.matches(text)
    assert not glob.matches(text + "a")
    assert glob.prefix == glob.suffix == text


@given(globs)
def test_a_printed_pattern_reads_back_the_same(pattern: str) -> None:
    assert Glob.parse(str(Glob.parse(pattern))) == Glob.parse(pattern)


@given(globs, texts)
def test_matches_start_with_the_prefix_and_end_with_the_suffix(pattern: str, text: str) -> None:
    glob = Glob.parse(pattern)
    if glob.matches(text):
        assert text.startswith(glob.prefix)
        assert text.endswith(glob.suffix)


@given(globs, globs, texts)
def test_covers_and_disjoint_are_never_refuted(wide: str, narrow: str, text: str) -> None:
    a, b = Glob.parse(wide), Glob.parse(narrow)
    if a.covers(b):
        assert a.matches(text) or not b.matches(text)
    if a.disjoint(b):
        assert not (a.matches(text) and b.matches(text))


@given(globs)
def test_a_pattern_covers_itself_and_is_covered_by_all(pattern: str) -> None:
    glob = Glob.parse(pattern)
    assert glob.covers(glob)
    assert Glob.parse("%").covers(glob)
    assert not glob.disjoint(glob)


@pytest.mark.parametrize(
    ("glob", "pattern"),
    [
        (Glob.around(before="a"), "a%"),
        (Glob.around(after="a"), "%a"),
        (Glob.around(middle="a"), "%a%"),
        (Glob.around(before="a", middle="%", after="c"), r"a%\%%c"),
        (Glob.around(), "%"),
    ],
)
def test_around(glob: Glob, pattern: str) -> None:
    assert str(glob) == pattern
    assert Glob.parse(pattern) == glob


def test_few_long_patterns_are_kept_in_parsed_form() -> None:
    for number in range(2 * LONG_PATTERNS_MAX):
        long = f"{number}%" + "a" * SHORT_CHARS_MAX
        assert Glob.parse(long).matches(long.replace("%", "b"))
    assert like._parsed_long.cache_info().currsize <= LONG_PATTERNS_MAX
    assert like._fragments_of_long.cache_info().currsize <= LONG_PATTERNS_MAX
    assert like._parsed.cache_info().maxsize == SHORT_PATTERNS_MAX
