"""A position in the tokens of a text, shared by the parsers of filters and of values."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from reprlib import repr as shortened

from tidegate.errors import FilterError, FilterLimitError
from tidegate.language.limits import Limits
from tidegate.language.parsing.tokens import Token, TokenKind, tokenize


class Cursor:
    """Walks over the tokens of one text, counts the nesting depth, and builds the errors."""

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
        """The next token, not consumed yet."""

    @property
    def previous(self) -> Token:
        """The token that was consumed last."""
        return self._tokens[self._index - 1]

    def advance(self) -> Token:
        """Consume the next token and return it; the END is returned again and again."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._index += 1
            self.token = self._tokens[self._index]
        return token

    def accept(self, word: str) -> bool:
        """Consume the next token if it is this word or symbol; returns whether it was."""
        if self.token.word != word:
            return False
        self.advance()
        return True

    def expect(self, word: str, otherwise: str) -> None:
        """Consume this word or symbol; raises an error that begins with ``otherwise``."""
        if not self.accept(word):
            raise self.error(f"{otherwise}; expected {word!r} here" + self.but_found())

    def take(self, kind: TokenKind, wanted: str) -> Token:
        """Consume and return a token of this kind; ``wanted`` describes it in the error."""
        if self.token.kind is not kind:
            raise self.error(f"expected {wanted}" + self.but_found())
        return self.advance()

    def expect_end(self) -> None:
        """Raise an error unless the text ends here."""
        if self.token.word == ")":
            raise self.error("this parenthesis was never opened")
        if self.token.kind is not TokenKind.END:
            raise self.error("expected `and`, `or` or the end here" + self.but_found())

    def enter(self) -> None:
        """Go one nesting level deeper; raises FilterLimitError."""
        self._depth += 1
        if self._depth > self.limits.depth_max:
            raise self.limit(f"the filter is nested more than {self.limits.depth_max} deep")

    def leave(self, levels: int = 1) -> None:
        """Go back up by ``levels`` nesting levels."""
        self._depth -= levels

    def but_found(self) -> str:
        """A description of the token found here, for the end of an error message."""
        if self.token.kind is TokenKind.END:
            return ", but the text ends"
        return f", not {shortened(self.token.text)}"

    def error(self, reason: str, token: Token | None = None) -> FilterError:
        """An error at ``token``, by default the next one."""
        place = token or self.token
        return FilterError(reason, self._text, place.start, place.end)

    def limit(self, reason: str, start: int | None = None) -> FilterLimitError:
        """A limit that the next token exceeds, or all the text from ``start`` up to it."""
        begin, end = (
            (self.token.start, self.token.end) if start is None else (start, self.token.start)
        )
        return FilterLimitError(reason, self._text, begin, end)


def guess(token: Token, words: Sequence[str]) -> str:
    """The word that the user may have meant, for the end of a message; empty if none is close."""
    close = get_close_matches(token.word, words, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
