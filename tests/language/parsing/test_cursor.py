from __future__ import annotations

from typing import Any

import pytest

from tidegate.errors import FilterError, FilterLimitError
from tidegate.language.limits import Limits
from tidegate.language.parsing.cursor import Cursor, guess
from tidegate.language.parsing.tokens import TokenKind, tokenize


def cursor(text: str, **limits: int) -> Cursor:
    return Cursor(text, Limits(**limits))


def test_it_walks_to_the_end_and_stays_there() -> None:
    at = cursor("price < 5")
    assert [at.advance().text for _ in range(5)] == ["price", "<", "5", "", ""]
    assert at.token.kind is TokenKind.END
    assert at.previous.text == "5"


def test_a_word_is_accepted_in_any_case() -> None:
    at = cursor("NOT not 'not'")
    assert at.accept("not")
    assert at.accept("not")
    assert not at.accept("not")
    assert at.previous.text == "not"


def test_what_is_expected_must_be_there() -> None:
    at = cursor("( 5")
    at.expect("(", "unused")
    with pytest.raises(FilterError) as caught:
        at.expect(")", "the parenthesis is not closed")
    assert (
        str(caught.value)
        == "the parenthesis is not closed; expected ')' here, not '5'\n  ( 5\n    ^"
    )
    assert at.take(TokenKind.NUMBER, "a number").text == "5"
    with pytest.raises(FilterError) as caught:
        at.take(TokenKind.NUMBER, "a number")
    assert str(caught.value) == "expected a number, but the text ends\n  ( 5\n     ^"
    at.expect_end()


def test_depth() -> None:
    at = cursor("a b", depth_max=2)
    at.enter()
    at.enter()
    at.leave(2)
    at.enter()
    at.enter()
    with pytest.raises(FilterLimitError, match="nested more than 2 deep"):
        at.enter()


def test_a_long_token_is_shortened_in_a_message() -> None:
    at = cursor("'" + "a" * 1000 + "'")
    assert at.but_found() == ", not \"'aaaaaaaaaaa...aaaaaaaaaaaa'\""


@pytest.mark.parametrize("text", [None, 5, b"price < 5", ["price < 5"]])
def test_a_filter_is_a_string(text: Any) -> None:
    with pytest.raises(FilterError) as caught:
        Cursor(text, Limits())
    assert str(caught.value) == f"a filter is a string, not {type(text).__name__}"


def test_guess() -> None:
    words = ["between", "in", "like"]
    assert guess(tokenize("betwen")[0], words) == " (did you mean 'between'?)"
    assert guess(tokenize("LIKES")[0], words) == " (did you mean 'like'?)"
    assert guess(tokenize("x")[0], words) == ""
