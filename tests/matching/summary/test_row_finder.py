from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.summary.row_finder import RowFinder
from tidegate.matching.summary.row_patterns import covers, pattern_of
from tidegate.matching.summary.tables import RowKind, RowPattern

patterns = st.lists(st.text("ab", max_size=3), min_size=1, max_size=3).map(
    lambda pieces: pattern_of(tuple(pieces))
)


@given(st.lists(patterns, max_size=40), st.lists(st.text("ab", max_size=6), min_size=1), patterns)
def test_finds_what_fits_and_what_covers(
    changes: list[RowPattern], texts: list[str], narrow: RowPattern
) -> None:
    """Each pattern is added, or removed if it is there."""
    finder: RowFinder[RowPattern] = RowFinder()
    held: set[RowPattern] = set()
    for each in changes:
        if each in held:
            finder.remove(each)
            held.remove(each)
        else:
            finder.add(each, each)
            held.add(each)
        for text in texts[:2]:
            assert sorted(finder.find(text)) == sorted(p for p in held if p.fits(text))
    for text in texts:
        assert sorted(finder.find(text)) == sorted(p for p in held if p.fits(text))
    assert sorted(finder.covering(narrow)) == sorted(p for p in held if covers(p, narrow))


def test_numbers_that_are_left_behind_do_not_pile_up() -> None:
    finder: RowFinder[int] = RowFinder()
    finder.add(pattern_of(("", "kept", "")), -1)
    for number in range(1000):
        pattern = pattern_of((f"p{number}", ""))
        finder.add(pattern, number)
        assert finder.find(f"p{number} kept") == [-1, number]
        finder.remove(pattern)
    assert len(finder._pattern_of) < 200
    assert finder.find("p7 kept") == [-1]


def test_patterns_that_another_implementation_may_send() -> None:
    """The pieces of LIKE may be such that another kind says the same; each is a row of its own."""
    texts = [("",), ("", ""), ("", "", ""), ("a",), ("a", ""), ("", "a"), ("", "a", "")]
    rows = [RowPattern(RowKind.LIKE, text) for text in texts] + [pattern_of(text) for text in texts]
    held = set(rows)
    finder: RowFinder[RowPattern] = RowFinder()
    for row in held:
        finder.add(row, row)
    for text in ("", "a", "ab", "ba", "aa", "b"):
        assert sorted(finder.find(text)) == sorted(row for row in held if row.fits(text))
    finder.remove(RowPattern(RowKind.ANY, ()))
    assert sorted(finder.find("b")) == [
        RowPattern(RowKind.LIKE, ("", "")),
        (RowKind.LIKE, ("",) * 3),
    ]
