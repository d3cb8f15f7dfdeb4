"""From the text of a filter to its tokens, each with its place in the text."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from tidegate.errors import FilterError


class TokenKind(Enum):
    """What a token is."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    QUOTED_NAME = "name in backticks"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """A piece of the text; ``word`` is what keywords and symbols are compared with."""

    kind: TokenKind
    text: str
    start: int
    end: int
    word: str


# What is possessive (*+, ?>) never gives back a character: an unclosed string or a number that runs
# into a word is not read as something shorter.
_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<NUMBER>(?>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?!\w))
    | (?P<STRING>'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+")
    | (?P<NAME>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    | (?P<QUOTED_NAME>`(?=[^`]|``)[^`]*+(?:``[^`]*+)*+`)
    | (?P<PARAMETER>:[^\W\d]\w*)
    | (?P<VARIABLE>@[^\W\d]\w*)
    | (?P<FOREIGN>==|=<|=>|&&|\|\||!(?!=))
    | (?P<SYMBOL><=|>=|<>|!=|[=<>+\-*/%(),])
    | (?P<END>\Z)
    | (?P<UNREADABLE>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_KINDS = {kind.name: kind for kind in TokenKind}
_INSTEAD = {"==": "=", "=<": "<=", "=>": ">=", "&&": "and", "||": "or", "!": "not (or !=)"}
_RUN_TOGETHER = re.compile(r"\.?[0-9][\w.]*")
_EMPTY_NAME = re.compile(r"``(?!`)")


def tokenize(text: str) -> list[Token]:
    """Split a text into tokens; the last one is the end, right behind the one before it.

    >>> [token.text for token in tokenize("price < :limit")]
    ['price', '<', ':limit', '']
    """
    tokens: list[Token] = []
    position = 0
    for found in _TOKEN.finditer(text):
        group = found.lastgroup or "END"
        if group == "END":
            break
        piece = found[group]
        start, end = found.span(group)
        if group == "UNREADABLE":
            raise _unreadable(text, start)
        if group == "FOREIGN":
            raise FilterError(f"write {_INSTEAD[piece]} in place of {piece}", text, start, end)
        word = "" if group in ("STRING", "QUOTED_NAME") else piece.lower()
        tokens.append(Token(_KINDS[group], piece, start, end, word))
        position = end
    tokens.append(Token(TokenKind.END, "", position, position, ""))
    return tokens


def _unreadable(text: str, position: int) -> FilterError:
    end = position + 1
    char = text[position]
    if char in "'\"":
        reason, end = f"this string is not closed; it needs another {char}", len(text)
    elif _EMPTY_NAME.match(text, position):
        reason, end = "a name in backticks must not be empty", position + 2
    elif char == "`":
        reason, end = "this name is not closed; it needs another `", len(text)
    elif char in ":@":
        what = "parameter" if char == ":" else "variable"
        reason = f"a {what} is written {char}name, the name starting with a letter"
    elif number := _RUN_TOGETHER.match(text, position):
        reason = "a number and a word run together; put a space between them"
        end = number.end()
    elif char in "\u2018\u2019\u201c\u201d":
        reason = "strings stand in straight quotes, ' or \""
    else:
        reason = (
            f"{char!r} has no meaning here; "
            "names with other characters than letters, digits and _ stand in backticks"
        )
    return FilterError(reason, text, position, end)


def unquote(token_text: str) -> str:
    """What stands between quotes or backticks, doubled ones made single.

    >>> print(unquote("'it''s'"))
    it's
    """
    mark = token_text[0]
    return token_text[1:-1].replace(mark + mark, mark)
