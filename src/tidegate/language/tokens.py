"""From the text of a filter to its tokens, each with its place in the text."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from tidegate.errors import FilterError


class TokenKind(Enum):
    """What a token is, as an error message would call it."""

    NUMBER = "a number"
    STRING = "a string"
    NAME = "a name"
    QUOTED_NAME = "a quoted name"
    PARAMETER = "a parameter"
    VARIABLE = "a variable"
    SYMBOL = "a symbol"
    END = "the end of the text"


class Token(NamedTuple):
    """A piece of the text; ``word`` is what keywords and symbols are compared with."""

    kind: TokenKind
    text: str
    start: int
    end: int
    word: str


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<NUMBER>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<STRING>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")
    | (?P<NAME>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    | (?P<QUOTED_NAME>`[^`]+(?:``[^`]*)*`|`(?:``[^`]*)+`)
    | (?P<PARAMETER>:[^\W\d]\w*)
    | (?P<VARIABLE>@[^\W\d]\w*)
    | (?P<SYMBOL><=|>=|<>|!=|==|&&|\|\||[=<>+\-*/%(),])
    | (?P<END>\Z)
    )""",
    re.VERBOSE,
)

_QUOTED = (TokenKind.STRING, TokenKind.QUOTED_NAME)
_INSTEAD = {"==": "=", "&&": "and", "||": "or"}


def tokenize(text: str) -> list[Token]:
    """Split a text into tokens; the last one is the end.

    >>> [token.text for token in tokenize("price < :limit")]
    ['price', '<', ':limit', '']
    """
    tokens: list[Token] = []
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unreadable(text, position)
        group = found.lastgroup or "END"
        kind, piece = TokenKind[group], found[group]
        word = "" if kind in _QUOTED else piece.lower()
        token = Token(kind, piece, found.start(group), found.end(group), word)
        if token.text in _INSTEAD:
            raise FilterError(
                f"write {_INSTEAD[token.text]} in place of {token.text}",
                text,
                token.start,
                token.end,
            )
        tokens.append(token)
        if kind is TokenKind.END:
            return tokens
        position = token.end
        if kind is TokenKind.NUMBER and text[position : position + 1].isalpha():
            raise FilterError(
                "a number and a word run together; put a space between them",
                text,
                token.start,
                position + 1,
            )


def _unreadable(text: str, position: int) -> FilterError:
    while text[position].isspace():
        position += 1
    char = text[position]
    if char in "'\"":
        reason = f"this string is not closed; it needs another {char}"
        return FilterError(reason, text, position, len(text))
    if char == "`":
        return FilterError("this name is not closed; it needs another `", text, position, len(text))
    if char in ":@":
        what = "parameter" if char == ":" else "variable"
        reason = f"a {what} is written {char}name, the name starting with a letter"
        return FilterError(reason, text, position)
    reason = (
        f"{char!r} has no meaning here; "
        "names with other characters than letters, digits and _ stand in backticks"
    )
    return FilterError(reason, text, position)


def unquote(token_text: str) -> str:
    """What stands between quotes or backticks, doubled ones made single.

    >>> print(unquote("'it''s'"))
    it's
    """
    mark = token_text[0]
    return token_text[1:-1].replace(mark + mark, mark)
