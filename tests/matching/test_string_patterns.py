from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import globs
from tidegate.language.algebra.like import GlobError, escape
from tidegate.language.semantics import satisfies
from tidegate.language.syntax import Operator
from tidegate.matching.string_patterns import (
    ANCHOR_CHARS_MAX,
    MERGE_RATIO,
    RECENT_MAX,
    Anchor,
    AnchorPlace,
    Outline,
    StringPatterns,
    Substrings,
)

STARTS, ENDS, CONTAINS, LIKE = (
    Operator.STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.CONTAINS,
    Operator.LIKE,
)
Pattern = tuple[Operator, str]

CHARS = ["a", "b", "%", "_", "\\", "\0", "é", "𝄞", "\ud834", "\udd1e"]  # the last two make up 𝄞
any_text = st.text("ab", max_size=8) | st.text(CHARS, max_size=6)
any_glob = globs | st.lists(st.sampled_from(["%", "_", *map(escape, CHARS)]), max_size=6).map(
    "".join
)
any_pattern = st.tuples(st.sampled_from([STARTS, ENDS, CONTAINS]), any_text) | st.tuples(
    st.just(LIKE), any_glob
)


def numbered(patterns: Iterable[Pattern]) -> StringPatterns:
    found = StringPatterns()
    for operator, text in patterns:
        found.number(operator, text)
    found.flush()
    return found


def expected(patterns: Iterable[Pattern], text: str) -> list[int]:
    """The numbers of the patterns that a text satisfies by the meaning of the language."""
    return [
        number
        for number, (operator, pattern) in enumerate(patterns)
        if satisfies(text, operator, [pattern])
    ]


@given(
    steps=st.lists(any_pattern | any_text | st.none(), max_size=30),
    anchor_chars_max=st.integers(1, 3) | st.just(ANCHOR_CHARS_MAX),
    recent_max=st.integers(0, 3),
    merge_ratio=st.integers(1, MERGE_RATIO),
)
@example(["", (CONTAINS, "aa"), (LIKE, "%aa%"), None, (LIKE, "%aa_%"), "baab"], 1, 0, 1)
def test_agrees_with_the_meaning_while_patterns_are_added(
    steps: list[Pattern | str | None], anchor_chars_max: int, recent_max: int, merge_ratio: int
) -> None:
    patterns = StringPatterns(
        anchor_chars_max=anchor_chars_max, recent_max=recent_max, merge_ratio=merge_ratio
    )
    added: dict[Pattern, int] = {}
    for step in steps:
        if step is None:
            patterns.flush()
        elif isinstance(step, str):
            assert patterns.satisfied(step).tolist() == expected(added, step)
        else:
            assert patterns.number(*step) == added.setdefault(step, len(added))
    patterns.flush()
    # texts that the patterns are likely to fit
    for _, text in added:
        for near in (text, text.replace("%", ""), text.replace("_", "a"), "b" + text + "a"):
            assert patterns.satisfied(near).tolist() == expected(added, near)
    assert patterns.patterns() == list(added)
    assert len(patterns) == len(added)


@pytest.mark.parametrize("text", ["", "a", "\0", "ab"])
def test_empty_patterns(text: str) -> None:
    patterns = [(STARTS, ""), (ENDS, ""), (CONTAINS, ""), (LIKE, ""), (LIKE, "%"), (LIKE, "_%")]
    found = numbered(patterns).satisfied(text)
    assert found.dtype == np.int32
    assert found.tolist() == ([0, 1, 2, 3, 4] if text == "" else [0, 1, 2, 4, 5])


def test_without_patterns_nothing_is_satisfied() -> None:
    assert numbered([]).satisfied("a").tolist() == []
    assert len(StringPatterns()) == 0


def test_a_pattern_keeps_its_number() -> None:
    patterns = StringPatterns()
    assert [patterns.number(*each) for each in [(LIKE, "a%"), (STARTS, "a"), (LIKE, "a%")]] == [
        0,
        1,
        0,
    ]
    assert patterns.satisfied("ab").tolist() == [0, 1]
    again = StringPatterns(patterns.patterns())
    assert again.patterns() == patterns.patterns() == [(LIKE, "a%"), (STARTS, "a")]


def test_a_bad_like_pattern_is_refused() -> None:
    patterns = StringPatterns()
    with pytest.raises(GlobError):
        patterns.number(LIKE, "a\\b")
    assert len(patterns) == 0
    assert patterns.number(CONTAINS, "a\\b") == 0


@pytest.mark.parametrize("operator", [Operator.NOT_LIKE, Operator.NOT_CONTAINS, Operator.EQUAL])
def test_only_patterns_are_numbered(operator: Operator) -> None:
    with pytest.raises(ValueError, match="is no pattern"):
        StringPatterns().number(operator, "a")


@pytest.mark.parametrize(
    ("operator", "text", "place", "literal", "exact"),
    [
        (STARTS, "ab", AnchorPlace.START, "ab", True),
        (ENDS, "ab", AnchorPlace.END, "ab", True),
        (CONTAINS, "ab", AnchorPlace.ANYWHERE, "ab", True),
        (CONTAINS, "", AnchorPlace.START, "", True),
        (LIKE, "", AnchorPlace.WHOLE, "", True),
        (LIKE, r"a\%b", AnchorPlace.WHOLE, "a%b", True),
        (LIKE, "ab%", AnchorPlace.START, "ab", True),
        (LIKE, "%%ab", AnchorPlace.END, "ab", True),
        (LIKE, "%ab%", AnchorPlace.ANYWHERE, "ab", True),
        (LIKE, "%", AnchorPlace.START, "", True),
        (LIKE, "ab_", AnchorPlace.START, "ab", False),
        (LIKE, "ab_%", AnchorPlace.START, "ab", False),
        (LIKE, "_ab", AnchorPlace.END, "ab", False),
        (LIKE, "%_ab%", AnchorPlace.ANYWHERE, "ab", False),
        (LIKE, "ab%cd", AnchorPlace.START, "ab", False),
        (LIKE, "a%cd", AnchorPlace.END, "cd", False),
        (LIKE, "a%bcd%ef", AnchorPlace.ANYWHERE, "bcd", False),
        (LIKE, "__", AnchorPlace.START, "", False),
        (LIKE, "%_", AnchorPlace.START, "", False),
    ],
)
def test_anchors(
    operator: Operator, text: str, place: AnchorPlace, literal: str, exact: bool
) -> None:
    assert Outline.of(operator, text).anchor() == Anchor(place, literal, exact)


def test_long_literals_are_cut_on_the_side_away_from_the_end_they_stand_at() -> None:
    long, cut = "a" + "b" * ANCHOR_CHARS_MAX, ANCHOR_CHARS_MAX
    for operator, text, place, literal in [
        (STARTS, long, AnchorPlace.START, long[:cut]),
        (ENDS, long, AnchorPlace.END, long[-cut:]),
        (CONTAINS, long, AnchorPlace.ANYWHERE, long[:cut]),
        (LIKE, f"%{long}%", AnchorPlace.ANYWHERE, long[:cut]),
        (LIKE, f"{long}%{long}bb", AnchorPlace.START, long[:cut]),
    ]:
        assert Outline.of(operator, text).anchor() == Anchor(place, literal, exact=False)


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("ab%", ["ab", "abc"], ["a", "", "cab"]),
        ("a%a", ["aa", "aba"], ["a", "ab"]),
        ("ab%ba", ["abba", "abcba"], ["aba"]),
        ("a%b%b%a", ["abba", "abcbca"], ["aba", "abbb"]),
        ("a%b%c", ["abc", "a-b-c"], ["ac", "acb"]),
        ("_ab_", ["ab", "-ab-"], ["a-b"]),  # the meaning has to tell these apart
    ],
)
def test_outlines(pattern: str, fitting: list[str], other: list[str]) -> None:
    outline = Outline.of(LIKE, pattern)
    assert outline.complete == ("_" not in pattern)
    assert [text for text in fitting if not outline.fits(text)] == []
    assert [text for text in other if outline.fits(text)] == []


def test_a_pattern_of_a_million_characters() -> None:
    # in an automaton as it is, it would crash the process when that is freed
    long = "a" * 1_000_000
    patterns = [(CONTAINS, str(number)) for number in range(RECENT_MAX)] + [(CONTAINS, long)]
    found = numbered(patterns)
    assert found.satisfied("1" + long).tolist() == [1, RECENT_MAX]
    assert found.satisfied("1" + long[: 2 * ANCHOR_CHARS_MAX]).tolist() == [1]


def filled(more: Iterable[Pattern]) -> tuple[StringPatterns, list[Pattern]]:
    """Patterns, with so many more that those anywhere in a text are found by an automaton."""
    patterns = [*more, *((CONTAINS, f"<{number}>") for number in range(RECENT_MAX + 1))]
    return numbered(patterns), patterns


@pytest.mark.parametrize(
    ("literals", "text"),
    [
        (["\0", "\0\0", "a\0b"], "a\0b\0"),
        (["𝄞", "𝄞b", "\U0010ffff"], "a𝄞b\U0010ffff"),
        (["𝄞", "\ud834", "\udd1e", "\ud834\udd1e"], "𝄞"),
        (["𝄞", "\ud834", "\udd1e", "\ud834\udd1e"], "\ud834\udd1e"),
        (["é", "e\u0301", "e", "\u0301"], "é"),
        (["é", "e\u0301", "e", "\u0301"], "e\u0301"),
        (["é", "É", "ss", "ß"], "Éß"),
        (["a", "aa", "aaa", "ab"], "aaaaa"),
        (["he", "she", "his", "hers"], "ushers"),  # the example of Aho and Corasick
        (["a b", " ", "\n"], "a b"),
        (["a"], ""),
    ],
)
def test_literals_in_an_automaton(literals: list[str], text: str) -> None:
    found, patterns = filled((CONTAINS, literal) for literal in literals)
    assert found.satisfied(text).tolist() == expected(patterns, text)


def test_a_pattern_added_to_an_anchor_that_is_in_an_automaton() -> None:
    found, patterns = filled([(CONTAINS, "ab")])
    patterns += [(LIKE, "%ab%"), (LIKE, "%_ab%")]
    assert [found.number(*each) for each in patterns] == list(range(len(patterns)))
    assert found.satisfied("ab").tolist() == [0, len(patterns) - 2]
    assert found.satisfied("xab").tolist() == [0, len(patterns) - 2, len(patterns) - 1]


def test_flushing_after_each_literal_puts_few_of_them_into_new_automata() -> None:
    literals = Substrings()
    newest, builds, copied, count = None, 0, 0, 5_000
    for number in range(count):
        literals.add(f"<{number}>", number)
        literals.flush()
        if literals.parts and literals.parts[-1] is not newest:
            newest = literals.parts[-1]
            builds += 1
            copied += len(newest.literals)
            sizes = [len(part.literals) for part in literals.parts]
            assert all(large > MERGE_RATIO * small for large, small in pairwise(sizes))
    assert 1 < builds <= count / RECENT_MAX
    assert copied < 20 * count
    assert sorted(literals.within("<1><70><4999>")) == [1, 70, 4999]


@given(
    steps=st.lists(any_pattern | any_text | st.none(), max_size=40),
    anchor_chars_max=st.integers(1, 3) | st.just(ANCHOR_CHARS_MAX),
    recent_max=st.integers(0, 3),
)
@example([(CONTAINS, "a"), None, (CONTAINS, "a"), (CONTAINS, "b"), "a", (CONTAINS, "a"), "a"], 1, 0)
def test_agrees_with_the_meaning_while_patterns_come_and_go(
    steps: list[Pattern | str | None], anchor_chars_max: int, recent_max: int
) -> None:
    """A pattern that is there is removed; the numbers of removed ones are given out again."""
    patterns = StringPatterns(anchor_chars_max=anchor_chars_max, recent_max=recent_max)
    there: dict[Pattern, int] = {}
    most = 0
    texts = [near for step in steps if isinstance(step, tuple) for near in (step[1], step[1] + "a")]
    for step in steps:
        if step is None:
            patterns.flush()
        elif isinstance(step, tuple) and step in there:
            patterns.remove(*step)
            del there[step]
        elif isinstance(step, tuple):
            there[step] = patterns.number(*step)
            most = max(most, len(there))
        for text in [step] if isinstance(step, str) else texts:
            assert patterns.satisfied(text).tolist() == sorted(
                number for each, number in there.items() if satisfies(text, each[0], [each[1]])
            )
    assert len(patterns) == len(there) == len(set(there.values()))
    assert len(patterns.patterns()) == most
    again = StringPatterns(patterns.patterns())
    assert {each: again.number(*each) for each in there} == there
    for text in texts:
        assert again.satisfied(text).tolist() == patterns.satisfied(text).tolist()


def test_removed_patterns_leave_nothing_behind() -> None:
    patterns = StringPatterns()
    for number in range(2_000):
        for operator in (STARTS, ENDS, CONTAINS, LIKE):
            patterns.number(operator, f"<{number}>" + "%" * (operator is LIKE))
        patterns.flush()
        if number >= 100:
            for operator in (STARTS, ENDS, CONTAINS, LIKE):
                patterns.remove(operator, f"<{number - 100}>" + "%" * (operator is LIKE))
    assert len(patterns) == 400
    assert len(patterns.patterns()) == 404
    substrings = patterns._substrings
    assert sum(len(part.literals) for part in substrings.parts) <= 400
    assert patterns._literals[AnchorPlace.START]._length_counts == {6: 100}  # type: ignore[attr-defined]


def test_a_pattern_that_is_not_there_cannot_be_removed() -> None:
    patterns = numbered([(STARTS, "a")])
    with pytest.raises(KeyError):
        patterns.remove(ENDS, "a")
    assert patterns.satisfied("a").tolist() == [0]


def test_flushing_does_nothing_for_a_few_literals() -> None:
    literals = Substrings()
    for number in range(RECENT_MAX):
        literals.add(f"<{number}>", number)
        literals.flush()
    assert literals.parts == []
    literals.add("<last>", RECENT_MAX)
    literals.flush()
    assert [len(part.literals) for part in literals.parts] == [RECENT_MAX + 1]


def test_many_threads_may_ask_at_once() -> None:
    likes = [(LIKE, f"%{number}%{number}%") for number in range(100)]
    found, patterns = filled([*likes, (STARTS, "1"), (ENDS, "1")])
    texts = [f"{number}<{number * 7}>{number}" for number in range(100)] * 12
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda text: found.satisfied(text).tolist(), texts))
    assert answers == [expected(patterns, text) for text in texts[:100]] * 12
