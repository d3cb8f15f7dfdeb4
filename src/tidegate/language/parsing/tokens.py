"""From the text of a filter to its tokens, each with its place in the text.

One regular expression recognizes everything, what is wrong included: an operator of another
language (`==`, `&&`) or an unclosed string is a match of its own, with its own error message.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from tidegate.errors import FilterError


class TokenKind(Enum):
    """The kinds of tokens."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    QUOTED_NAME = "name in backticks"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """A token; ``start`` and ``end`` are its offsets in the text.

    ``word`` is its text in lower case, for comparison with keywords and symbols. It is empty for
    strings and names in backticks, which are never keywords.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    word: str


# The possessive parts (*+ and ?>) do not backtrack. So an unclosed string or a number that runs
# into a word is not read as something shorter, and a text of 60,000 quotes takes linear time, not
# quadratic.
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
    """Split a text into tokens; the last one is the END, right after the one before it.

    >>> [token.text for token in tokenize("price < :limit")]
    ['price', '<', ':limit', '']
    """
    tokens: list[Token] = []
    position = 0
    for found in _TOKEN.finditer(text):
        group = found.lastgroup or "END"
        if group == "END":
            break
        token_text = found[group]
        start, end = found.span(group)
        if group == "UNREADABLE":
            raise _unreadable(text, start)
        if group == "FOREIGN":
            instead = f"write {_INSTEAD[token_text]} in place of {token_text}"
            raise FilterError(instead, text, start, end)
        word = "" if group in ("STRING", "QUOTED_NAME") else token_text.lower()
        tokens.append(Token(_KINDS[group], token_text, start, end, word))
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
        reason = "strings are written in straight quotes, ' or \""
    else:
        reason = (
            f"{char!r} has no meaning here; "
            "names with other characters than letters, digits and _ are written in backticks"
        )
    return FilterError(reason, text, position, end)


def unquote(token_text: str) -> str:
    """The text between quotes or backticks, with doubled ones made single.

    >>> print(unquote("'it''s'"))
    it's
    """
    mark = token_text[0]
    return token_text[1:-1].replace(mark + mark, mark)
