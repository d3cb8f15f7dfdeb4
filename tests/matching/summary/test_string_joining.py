from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.summary.row_patterns import covers, pattern_of
from tidegate.matching.summary.string_joining import chance, harm_of, least_harmful_first
from tidegate.matching.summary.tables import RowPattern

patterns = st.lists(st.text("ab", max_size=3), min_size=1, max_size=3).map(
    lambda pieces: pattern_of(tuple(pieces))
)


def best(*rows: tuple[RowPattern, int]) -> tuple[RowPattern, RowPattern, RowPattern]:
    ids = dict(rows)

    def covering(pattern: RowPattern) -> list[RowPattern]:
        return [each for each in ids if covers(each, pattern)]

    join = least_harmful_first(ids, covering)[0]
    return join.one, join.other, join.into


def test_what_starts_ends_or_contains_alike_is_joined_first() -> None:
    a, b, c = pattern_of(("abcd",)), pattern_of(("abce",)), pattern_of(("wbcd",))
    assert best((a, 1), (b, 1), (pattern_of(("zz",)), 1))[2] == pattern_of(("abc", ""))
    assert best((a, 1), (c, 1), (pattern_of(("zz",)), 1))[2] == pattern_of(("", "bcd"))
    parts = pattern_of(("", "tidegate", "")), pattern_of(("", "tidewater", ""))
    assert best((parts[0], 1), (parts[1], 1), (a, 1))[2] == pattern_of(("", "tide", ""))


def test_few_members_are_joined_before_many() -> None:
    rows = [pattern_of((text,)) for text in ("aa", "ab", "xa", "xb")]
    one, other, _ = best((rows[0], 100), (rows[1], 100), (rows[2], 1), (rows[3], 1))
    assert (one, other) == (rows[2], rows[3])


def test_a_covered_row_joins_the_one_that_covers_it() -> None:
    wide, narrow = pattern_of(("", "b")), pattern_of(("a", "", "ab"))
    assert best((wide, 1), (narrow, 1))[2] == wide


@given(patterns, patterns, st.integers(1, 9), st.integers(1, 9))
def test_harm_is_never_negative(one: RowPattern, other: RowPattern, a: int, b: int) -> None:
    joins = least_harmful_first({one: a, other: b}, lambda _: [])
    assert all(join.harm >= 0 for join in joins)
    assert harm_of(one, one, one, (a, b)) == 0
    assert 0 < chance(one) <= 1
