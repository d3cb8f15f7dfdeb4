"""A place in the tokens of a text, with what every part of the parser needs there."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from reprlib import repr as shortened

from tidegate.errors import FilterError, FilterLimitError
from tidegate.language.limits import Limits
from tidegate.language.parsing.tokens import Token, TokenKind, tokenize


class Cursor:
    """Walks over the tokens of one text, counts how deep it is nested, and words the errors."""

    def __init__(self, text: str, limits: Limits) -> None:
        if not isinstance(text, str):
            raise FilterError(f"a filter is a string, not {type(text).__name__}", "", 0)
        if len(text) > limits.length_chars_max:
            raise FilterLimitError(
                f"the text has {len(text)} characters; at most {limits.length_chars_max} are taken",
                text,
                limits.length_chars_max,
            )
        self.limits = limits
        self._text = text
        self._tokens = tokenize(text)
        self._index = 0
        self._depth = 0
        self.token = self._tokens[0]
        """The token that comes next."""

    @property
    def previous(self) -> Token:
        """The token that came last."""
        return self._tokens[self._index - 1]

    def advance(self) -> Token:
        """Step over the next token, and give it."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._index += 1
            self.token = self._tokens[self._index]
        return token

    def accept(self, word: str) -> bool:
        """Step over the next token if it is this word or symbol."""
        if self.token.word != word:
            return False
        self.advance()
        return True

    def expect(self, word: str, otherwise: str) -> None:
        """Step over this word or symbol, which must come next."""
        if not self.accept(word):
            raise self.error(f"{otherwise}; {word!r} must stand here" + self.found())

    def take(self, kind: TokenKind, wanted: str) -> Token:
        """Step over a token of this kind, which must come next."""
        if self.token.kind is not kind:
            raise self.error(f"here must stand {wanted}" + self.found())
        return self.advance()

    def expect_end(self) -> None:
        """The text must end here."""
        if self.token.word == ")":
            raise self.error("this parenthesis closes none that was opened")
        if self.token.kind is not TokenKind.END:
            raise self.error("`and`, `or` or the end must follow here" + self.found())

    def enter(self) -> None:
        """One level deeper."""
        self._depth += 1
        if self._depth > self.limits.depth_max:
            raise self.limit(f"the filter is nested more than {self.limits.depth_max} deep")

    def leave(self, levels: int = 1) -> None:
        """So many levels back."""
        self._depth -= levels

    def found(self) -> str:
        """What stands here in place of what should, for the end of a message."""
        if self.token.kind is TokenKind.END:
            return ", but the text ends"
        return f", not {shortened(self.token.text)}"

    def error(self, reason: str, token: Token | None = None) -> FilterError:
        """An error at a token, or here."""
        at = token or self.token
        return FilterError(reason, self._text, at.start, at.end)

    def limit(self, reason: str, start: int | None = None) -> FilterLimitError:
        """A limit that was passed here, or by all that stands from ``start`` on."""
        begin, end = (
            (self.token.start, self.token.end) if start is None else (start, self.token.start)
        )
        return FilterLimitError(reason, self._text, begin, end)


def guess(token: Token, words: Sequence[str]) -> str:
    """A word that the user may have meant, for the end of a message."""
    close = get_close_matches(token.word, words, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
