r"""Patterns of `like`: `%` is any run of characters, `_` any one, `\` takes the next one literally.

Rules. (1) For a given pattern, matching takes time linear in the length of the text, for any text.
(2) `covers` and `disjoint` say yes only if they are sure.

Theory of operation. A pattern is cut at its `%` into *fragments* of fixed length. The first and the
last must fit the two ends of the text; each one between is searched at the first place after the
one before it. Greedy is right: if one fits somewhere later too, taking the first place leaves
more text to those after it, so nothing ever has to be undone. A regular expression with `.*` would
backtrack instead, in time that grows by another power of the length with each `%`.

Covering reads the other pattern as if it were a text (see ``covers``). To decide it exactly needs a
deterministic automaton, which can be exponentially large; a covering that is not seen costs some
work elsewhere and never loses an event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

SHORT_CHARS_MAX, SHORT_PATTERNS_MAX, LONG_PATTERNS_MAX = 256, 4_096, 8
"""How many patterns are kept in parsed form: many of up to so many characters, and few longer ones.
A pattern may have a million characters, so a number of patterns alone would bound no memory."""

ANY_CHAR, ANY_RUN = "_", "%"

GlobToken = str
"""`_`, `%`, or a literal character after a `=`, so that an escaped `\\%` is not taken for a run."""


class GlobError(ValueError):
    """A pattern with a backslash before something other than `%`, `_` or a backslash."""

    def __init__(self) -> None:
        super().__init__("a backslash in a pattern must come before %, _ or another backslash")


@dataclass(frozen=True, slots=True)
class Glob:
    """A parsed `like` pattern in a canonical order: equal patterns have equal tokens.

    >>> Glob.parse("N%SE").matches("NYSE"), Glob.parse("_").matches("")
    (True, False)
    """

    tokens: tuple[GlobToken, ...]

    @staticmethod
    def parse(text: str) -> Glob:
        """Parse a pattern; raises GlobError."""
        return _parsed(text) if len(text) <= SHORT_CHARS_MAX else _parsed_long(text)

    @staticmethod
    def parse_anew(text: str) -> Glob:
        """As ``parse``, without looking for what was parsed before."""
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
        """The pattern `before%middle%after`, with the three taken literally."""
        runs = [ANY_RUN, *literal(middle), ANY_RUN] if middle else [ANY_RUN]
        return cls(_tidy([*literal(before), *runs, *literal(after)]))

    def matches(self, text: str) -> bool:
        """Whether the pattern fits the whole text."""
        fragments = _fragments(self)
        first, last = fragments[0], fragments[-1]
        if not _fits(first, text, 0):
            return False
        if len(fragments) == 1:
            return len(text) == first.length
        position, end = first.length, len(text) - last.length
        for fragment in fragments[1:-1]:
            # Where the two ends overlap, end < position; the search must still be of no text at
            # all.
            found = fragment.expression.search(text, position, max(position, end))
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

        Reads ``other`` as a text in which `_` and `%` are characters: a `%` of this pattern takes
        any tokens, a `_` takes one that is not a run. Sound, because whatever strings the tokens of
        ``other`` become, the token of this pattern that took them fits those strings. Not complete:
        `_%` covers `%a`, which is not seen, because a `_` here takes no run there.

        It simulates the nondeterministic automaton of this pattern; a state is the index of the
        next token, and ``reached`` holds the states that the tokens read so far can lead to.
        """
        reached = {0}
        for token in (*other.tokens, None):
            # A run may also take nothing. One step is enough: no two runs are side by side.
            reached |= {i + 1 for i in sorted(reached) if self._token(i) == ANY_RUN}
            if token is None:
                break
            reached = {j for i in reached if (j := self._state_after(i, token)) is not None}
        return len(self.tokens) in reached

    def _token(self, index: int) -> GlobToken | None:
        return self.tokens[index] if index < len(self.tokens) else None

    def _state_after(self, index: int, token: GlobToken) -> int | None:
        own = self._token(index)
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
    r"""The pattern that only this text matches.

    >>> print(escape("100%"))
    100\%
    """
    return re.sub(r"([%_\\])", r"\\\1", text)


def literal(text: str) -> list[GlobToken]:
    """The tokens of a text taken literally."""
    return ["=" + char for char in text]


def _tidy(tokens: list[GlobToken]) -> tuple[GlobToken, ...]:
    """Tokens in canonical order: between literals, first each `_` and then at most one `%`.

    `%_`, `_%` and `%_%` match the same strings; here all of them become `_%`.
    """
    tidy: list[GlobToken] = []
    for token in tokens:
        if token == ANY_CHAR and tidy and tidy[-1] == ANY_RUN:
            tidy.insert(-1, ANY_CHAR)
        elif token != ANY_RUN or not tidy or tidy[-1] != ANY_RUN:
            tidy.append(token)
    return tuple(tidy)


@lru_cache(maxsize=SHORT_PATTERNS_MAX)
def _parsed(text: str) -> Glob:
    return Glob.parse_anew(text)


@lru_cache(maxsize=LONG_PATTERNS_MAX)
def _parsed_long(text: str) -> Glob:
    return Glob.parse_anew(text)


@dataclass(frozen=True, slots=True)
class _Fragment:
    """The tokens between two runs: literals and `_`, so of a fixed length."""

    expression: re.Pattern[str]
    length: int


def _fragments(glob: Glob) -> list[_Fragment]:
    if len(glob.tokens) <= SHORT_CHARS_MAX:
        return _fragments_of_short(glob)
    return _fragments_of_long(glob)


@lru_cache(maxsize=SHORT_PATTERNS_MAX)
def _fragments_of_short(glob: Glob) -> list[_Fragment]:
    return _cut(glob)


@lru_cache(maxsize=LONG_PATTERNS_MAX)
def _fragments_of_long(glob: Glob) -> list[_Fragment]:
    return _cut(glob)


def _cut(glob: Glob) -> list[_Fragment]:
    fragments: list[list[GlobToken]] = [[]]
    for token in glob.tokens:
        if token == ANY_RUN:
            fragments.append([])
        else:
            fragments[-1].append(token)
    return [
        _Fragment(
            re.compile(
                "".join("." if token == ANY_CHAR else re.escape(token[1]) for token in fragment),
                re.DOTALL,
            ),
            len(fragment),
        )
        for fragment in fragments
    ]


def _fits(fragment: _Fragment, text: str, position: int) -> bool:
    return position >= 0 and fragment.expression.match(text, position) is not None
