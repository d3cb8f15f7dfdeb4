r"""Patterns of `like`: `%` is any run of characters, `_` any one, `\` takes the next one literally.

Rules. (1) For a given pattern, matching takes time linear in the length of the text, for any text.
(2) `covers` and `disjoint` say yes only if they are sure.

Theory of operation. A pattern is cut at its `%` into *fragments* of fixed length (fragments.py).
The first and the last must fit the two ends of the text; each one between is searched at the first
place after the one before it. Greedy is right: if one fits somewhere later too, taking the first
place leaves more text to those after it, so nothing ever has to be undone. A regular expression
with `.*` would backtrack instead, in time that grows by another power of the length with each `%`.

Covering reads the other pattern as if it were a text (see ``covers``). To decide it exactly needs a
deterministic automaton, which can be exponentially large; a covering that is not seen costs some
work elsewhere and never loses an event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from tidegate.language.algebra.fragments import ANY_CHAR, ANY_RUN, find, fits
from tidegate.language.algebra.work import spend

_CHARS_A_STEP = 256
"""Characters that Python compares or searches in a step."""
_WILDCARDS = re.compile(f"[{ANY_CHAR}{ANY_RUN}]+")
_SEVERAL_WILDCARDS = re.compile(f"[{ANY_CHAR}{ANY_RUN}]{{2,}}")
_WITHOUT_ESCAPES = str.maketrans({"_": ANY_CHAR, "%": ANY_RUN})
_CACHED_CHARS_MAX = 256
"""Longer patterns are not cached, which bounds the memory of the cache."""
_SPECIAL = re.compile(r"\\(.?)|[_%]", re.DOTALL)


class GlobError(ValueError):
    """A pattern with a backslash before something other than `%`, `_` or a backslash."""

    def __init__(self) -> None:
        super().__init__("a backslash in a pattern must come before %, _ or another backslash")


@dataclass(frozen=True, slots=True)
class Glob:
    """A parsed `like` pattern in a canonical order: equal patterns have equal tokens.

    A token is a literal character, ANY_CHAR or ANY_RUN.

    >>> Glob.parse("N%SE").matches("NYSE"), Glob.parse("_").matches("")
    (True, False)
    """

    tokens: str
    prefix: str = field(init=False, compare=False)
    """The literal characters that every match starts with."""
    suffix: str = field(init=False, compare=False)
    """The literal characters that every match ends with."""

    def __post_init__(self) -> None:
        tokens = self.tokens
        first = [place for place in map(tokens.find, (ANY_CHAR, ANY_RUN)) if place >= 0]
        last = max(map(tokens.rfind, (ANY_CHAR, ANY_RUN)))
        object.__setattr__(self, "prefix", tokens[: min(first)] if first else tokens)
        object.__setattr__(self, "suffix", tokens[last + 1 :])

    @staticmethod
    def parse(text: str) -> Glob:
        """Parse a pattern; raises GlobError."""
        return _parsed(text) if len(text) <= _CACHED_CHARS_MAX else _parsed.__wrapped__(text)

    @classmethod
    def around(cls, before: str = "", middle: str = "", after: str = "") -> Glob:
        """The pattern `before%middle%after`, with the three taken literally."""
        run = ANY_RUN + middle + ANY_RUN if middle else ANY_RUN
        return cls(before + run + after)

    def matches(self, text: str) -> bool:
        """Whether the pattern fits the whole text."""
        fragments = self.tokens.split(ANY_RUN)
        first, last = fragments[0], fragments[-1]
        spend(3 + min(len(fragments), len(text)) + len(text) // _CHARS_A_STEP)
        if not fits(first, text, 0):
            return False
        if len(fragments) == 1:
            return len(text) == len(first)
        position, end = len(first), len(text) - len(last)
        for fragment in fragments[1:-1]:
            if ANY_CHAR in fragment:
                spend(1 + len(fragment) * (1 + len(text) // _CHARS_A_STEP) // 4)
            position = find(fragment, text, position, end)
            if position < 0:
                return False
            position += len(fragment)
        return end >= position and fits(last, text, end)

    @property
    def literals(self) -> str:
        """All literal characters."""
        return _WILDCARDS.sub("", self.tokens)

    @property
    def is_literal(self) -> bool:
        """Whether just one string matches."""
        return len(self.prefix) == len(self.tokens)

    def covers(self, other: Glob) -> bool:
        """Whether every match of ``other`` surely matches this pattern too.

        Reads ``other`` as a text in which `_` and `%` are characters: a `%` of this pattern takes
        any tokens, a `_` takes one that is not a run. Sound, because whatever strings the tokens of
        ``other`` become, the token of this pattern that took them fits those strings. Not complete:
        `_%` covers `%a`, which is not seen, because a `_` here takes no run there.
        """
        return self.tokens == other.tokens or self.matches(other.tokens)

    def disjoint(self, other: Glob) -> bool:
        """Whether surely no string matches both: they start or end differently."""
        spend(2)
        a, b = self.prefix, other.prefix
        if not (a.startswith(b) or b.startswith(a)):
            return True
        a, b = self.suffix, other.suffix
        return not (a.endswith(b) or b.endswith(a))

    def __str__(self) -> str:
        escaped = escape(self.tokens)
        return escaped.replace(ANY_CHAR, "_").replace(ANY_RUN, "%")


def escape(text: str) -> str:
    r"""The pattern that only this text matches.

    >>> print(escape("100%"))
    100\%
    """
    return re.sub(r"([%_\\])", r"\\\1", text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Glob:
    plain = "\\" not in text
    return Glob(_tidy(text.translate(_WITHOUT_ESCAPES) if plain else _SPECIAL.sub(_token, text)))


def _token(special: re.Match[str]) -> str:
    """The token of a wildcard, or of a character after a backslash."""
    if special[0] == "_":
        return ANY_CHAR
    if special[0] == "%":
        return ANY_RUN
    if special[1] not in ("%", "_", "\\"):
        raise GlobError
    return special[1]


def _tidy(tokens: str) -> str:
    """Tokens in canonical order: between literals, first each `_` and then at most one `%`.

    `%_`, `_%` and `%_%` match the same strings; here all of them become `_%`.
    """
    return _SEVERAL_WILDCARDS.sub(
        lambda run: ANY_CHAR * run[0].count(ANY_CHAR) + (ANY_RUN if ANY_RUN in run[0] else ""),
        tokens,
    )
