from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.golden import messages
from tidegate.errors import FilterError
from tidegate.language.parsing.tokens import TokenKind, tokenize, unquote

NUMBER, STRING, NAME = TokenKind.NUMBER, TokenKind.STRING, TokenKind.NAME
QUOTED, SYMBOL, END = TokenKind.QUOTED_NAME, TokenKind.SYMBOL, TokenKind.END


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\r\n\u00a0\u2003", []),
        ("1 12 1.5 .5 5. 1e5 1E-5 .5e+5 007", [(NUMBER, x) for x in
            ["1", "12", "1.5", ".5", "5.", "1e5", "1E-5", ".5e+5", "007"]]),
        ("a a1 _ a.b größe 日本 a.b.c", [(NAME, x) for x in
            ["a", "a1", "_", "a.b", "größe", "日本", "a.b.c"]]),
        ("'' 'a' 'it''s' \"a\" \"\"\"\" '\n'", [(STRING, x) for x in
            ["''", "'a'", "'it''s'", '"a"', '""""', "'\n'"]]),
        ("`a` `a b` `a``b` ```` `'`", [(QUOTED, x) for x in
            ["`a`", "`a b`", "`a``b`", "````", "`'`"]]),
        (":a :größe", [(TokenKind.PARAMETER, ":a"), (TokenKind.PARAMETER, ":größe")]),
        ("@a", [(TokenKind.VARIABLE, "@a")]),
        ("= != <> < <= > >= + - * / % ( ) ,", [(SYMBOL, x) for x in
            ["=", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "(", ")", ","]]),
        ("a<=1", [(NAME, "a"), (SYMBOL, "<="), (NUMBER, "1")]),
        ("a<-1", [(NAME, "a"), (SYMBOL, "<"), (SYMBOL, "-"), (NUMBER, "1")]),
        ("1-1", [(NUMBER, "1"), (SYMBOL, "-"), (NUMBER, "1")]),
        ("'a'and", [(STRING, "'a'"), (NAME, "and")]),
    ],
)  # fmt: skip
def test_tokens(text: str, tokens: list[tuple[TokenKind, str]]) -> None:
    found = tokenize(text)
    assert [(token.kind, token.text) for token in found[:-1]] == tokens
    assert found[-1].kind is END
    assert all(text[token.start : token.end] == token.text for token in found)


def test_words_are_compared_in_lower_case_and_quoted_ones_never() -> None:
    assert [token.word for token in tokenize("AND 'and' `and` <=")] == ["and", "", "", "<=", ""]


def test_the_end_stands_right_behind_the_last_token() -> None:
    assert tokenize("price <  \n ")[-1].start == len("price <")
    assert tokenize("  ")[-1].start == 0


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("a 'b", 2, 4),
        ("a 'b''c", 2, 7),
        ("'a' 'b", 4, 6),
        ('"', 0, 1),
        ("a `b", 2, 4),
        ("``", 0, 2),
        ("```", 0, 3),
        ("1a", 0, 2),
        ("a 1.5x and", 2, 6),
        (".5_", 0, 3),
        ("1e5e5", 0, 5),
        ("a ; b", 2, 3),
        (": a", 0, 1),
        ("@1", 0, 1),
        ("a == b", 2, 4),
        ("a.", 1, 2),
        ("٣", 0, 1),
        ("\ud800", 0, 1),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, start: int, end: int) -> None:
    with pytest.raises(FilterError) as caught:
        tokenize(text)
    assert (caught.value.start, caught.value.end) == (start, end)


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.sampled_from("'\"`"))
def test_unquote_undoes_quoting(text: str, mark: str) -> None:
    quoted = mark + text.replace(mark, mark * 2) + mark
    assert unquote(quoted) == text
    if text or mark != "`":
        assert [token.text for token in tokenize(quoted)] == [quoted, ""]


@given(st.text(st.sampled_from("ab1.'\"` =<!&:@é\n")))
def test_any_text_is_tokens_or_an_error_inside_it(text: str) -> None:
    place = (0, 0)
    try:
        tokens = tokenize(text)
    except FilterError as error:
        place = (error.start, error.end)
    else:
        read = "".join(token.text for token in tokens)
        assert "".join(read.split()) == "".join(text.split())
    assert 0 <= place[0] <= place[1] <= len(text)


@pytest.mark.parametrize("char", "'\"`(1.:@ae \n")
def test_a_long_run_of_one_character_is_read_in_no_time(char: str) -> None:
    # an expression that tries all ways would not come back
    try:
        tokenize(char * 65_536 + "\0")
    except FilterError:
        return
    raise AssertionError


@pytest.mark.parametrize(("text", "message"), messages("tokens"))
def test_messages(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        tokenize(text)
    assert str(caught.value) == message
