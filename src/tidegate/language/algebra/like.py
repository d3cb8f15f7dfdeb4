r"""String patterns: `%` is any run of characters, `_` any one, `\` takes the next one literally.

A pattern is matched in time linear in the text for a given pattern, whatever the text: the pieces
between two `%` are each found at the first place where they fit, which never has to be undone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

ANY_CHAR, ANY_RUN = "_", "%"

GlobToken = str
"""One character taken literally is written with a leading `=`; `_` and `%` stand for themselves."""


class GlobError(ValueError):
    """A pattern with a backslash before something other than `%`, `_` or a backslash."""

    def __init__(self) -> None:
        super().__init__("a backslash in a pattern must stand before %, _ or another backslash")


@dataclass(frozen=True, slots=True)
class Glob:
    """A parsed `like` pattern; no two runs stand side by side.

    >>> Glob.parse("N%SE").matches("NYSE"), Glob.parse("_").matches("")
    (True, False)
    """

    tokens: tuple[GlobToken, ...]

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(text: str) -> Glob:
        """Read a pattern; raises GlobError."""
        tokens: list[GlobToken] = []
        position = 0
        while position < len(text):
            char = text[position]
            if char == "\\":
                position += 1
                if position == len(text) or text[position] not in "%_\\":
                    raise GlobError
                tokens.append("=" + text[position])
            elif char in (ANY_CHAR, ANY_RUN):
                tokens.append(char)
            else:
                tokens.append("=" + char)
            position += 1
        return Glob(_tidy(tokens))

    @classmethod
    def around(cls, before: str = "", middle: str = "", after: str = "") -> Glob:
        """The strings that start with ``before``, contain ``middle`` and end with ``after``,
        in that order and without overlap."""
        runs = [ANY_RUN, *literal(middle), ANY_RUN] if middle else [ANY_RUN]
        return cls(_tidy([*literal(before), *runs, *literal(after)]))

    def matches(self, text: str) -> bool:
        """Whether the whole text reads like the pattern."""
        pieces = _pieces(self)
        first, last = pieces[0], pieces[-1]
        if not _fits(first, text, 0):
            return False
        if len(pieces) == 1:
            return len(text) == first.length
        position, end = first.length, len(text) - last.length
        for piece in pieces[1:-1]:
            found = piece.expression.search(text, position, max(position, end))
            if found is None:
                return False
            position = found.end()
        return end >= position and _fits(last, text, end)

    @property
    def prefix(self) -> str:
        """The literal characters that every match starts with."""
        chars: list[str] = []
        for token in self.tokens:
            if token in (ANY_CHAR, ANY_RUN):
                break
            chars.append(token[1])
        return "".join(chars)

    @property
    def suffix(self) -> str:
        """The literal characters that every match ends with."""
        return Glob(self.tokens[::-1]).prefix[::-1]

    @property
    def is_literal(self) -> bool:
        """Whether just one string matches."""
        return not any(token in (ANY_CHAR, ANY_RUN) for token in self.tokens)

    def covers(self, other: Glob) -> bool:
        """Whether every match of ``other`` surely matches this pattern too.

        Reads ``other`` as a text in which `_` and `%` are characters of their own: here `%` takes
        any of them, `_` takes one that is not a run. Never wrong when it says yes.
        """
        reached = {0}
        for token in (*other.tokens, None):
            reached |= {i + 1 for i in sorted(reached) if self._at(i) == ANY_RUN}
            if token is None:
                break
            reached = {j for i in reached if (j := self._after(i, token)) is not None}
        return len(self.tokens) in reached

    def _at(self, index: int) -> GlobToken | None:
        return self.tokens[index] if index < len(self.tokens) else None

    def _after(self, index: int, token: GlobToken) -> int | None:
        own = self._at(index)
        if own == ANY_RUN:
            return index
        if own == token or (own == ANY_CHAR and token != ANY_RUN):
            return index + 1
        return None

    def disjoint(self, other: Glob) -> bool:
        """Whether surely no string matches both: they start or end differently."""
        ends = [
            (self.prefix, other.prefix),
            (self.suffix[::-1], other.suffix[::-1]),
        ]
        return any(not (a.startswith(b) or b.startswith(a)) for a, b in ends)

    def __str__(self) -> str:
        return "".join(
            token if token in (ANY_CHAR, ANY_RUN) else escape(token[1]) for token in self.tokens
        )


def escape(text: str) -> str:
    r"""A text as a pattern that only it matches.

    >>> print(escape("100%"))
    100\%
    """
    return re.sub(r"([%_\\])", r"\\\1", text)


def literal(text: str) -> list[GlobToken]:
    """The tokens of a text taken literally."""
    return ["=" + char for char in text]


def _tidy(tokens: list[GlobToken]) -> tuple[GlobToken, ...]:
    """Between literals, single characters first and at most one run behind them."""
    tidy: list[GlobToken] = []
    for token in tokens:
        if token == ANY_CHAR and tidy and tidy[-1] == ANY_RUN:
            tidy.insert(-1, ANY_CHAR)
        elif token != ANY_RUN or not tidy or tidy[-1] != ANY_RUN:
            tidy.append(token)
    return tuple(tidy)


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands between two runs: a fixed number of literals and `_`."""

    expression: re.Pattern[str]
    length: int


@lru_cache(maxsize=4096)
def _pieces(glob: Glob) -> list[_Piece]:
    pieces: list[list[GlobToken]] = [[]]
    for token in glob.tokens:
        if token == ANY_RUN:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [
        _Piece(
            re.compile(
                "".join("." if token == ANY_CHAR else re.escape(token[1]) for token in piece),
                re.DOTALL,
            ),
            len(piece),
        )
        for piece in pieces
    ]


def _fits(piece: _Piece, text: str, position: int) -> bool:
    return position >= 0 and piece.expression.match(text, position) is not None
