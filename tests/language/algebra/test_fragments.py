from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.algebra.fragments import ANY_CHAR, ANY_RUN, find, fits

fragments = st.text("ab" + ANY_CHAR, min_size=1, max_size=6)
texts = st.text("ab", max_size=12) | st.text("ab" + ANY_RUN + ANY_CHAR, max_size=12)


def as_regex(fragment: str) -> re.Pattern[str]:
    return re.compile(fragment.replace(ANY_CHAR, f"[^{ANY_RUN}]"))


@given(fragments, texts, st.integers(-2, 13))
def test_fits_where_the_regular_expression_matches(fragment: str, text: str, place: int) -> None:
    wanted = place >= 0 and as_regex(fragment).match(text, place) is not None
    assert fits(fragment, text, place) == wanted


@given(fragments, texts, st.integers(0, 13), st.integers(0, 13))
def test_finds_the_first_place(fragment: str, text: str, start: int, end: int) -> None:
    end = min(end, len(text))
    wanted = as_regex(fragment).search(text, start, max(start, end))
    assert find(fragment, text, start, end) == (-1 if wanted is None else wanted.start())


@given(fragments, st.text("ab", max_size=8), st.integers(1, 60))
def test_finds_a_place_behind_many_wrong_ones(fragment: str, text: str, count: int) -> None:
    text = "aab" * count + text + "ba" * count
    wanted = as_regex(fragment).search(text)
    assert find(fragment, text, 0, len(text)) == (-1 if wanted is None else wanted.start())


@pytest.mark.parametrize("last", ["b", "c"])
def test_a_fragment_made_to_be_slow_is_not(last: str) -> None:
    # one place after the other would take 400 million comparisons
    fragment = ("a" + ANY_CHAR) * 10_000 + last
    text = "a" * 40_000 + "b" + "a" * 100
    assert find(fragment, text, 0, len(text)) == (20_000 if last == "b" else -1)
