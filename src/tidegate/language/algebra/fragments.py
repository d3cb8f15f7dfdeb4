"""Fragments of `like` patterns: literal characters and `_`, so of a fixed length.

Rule. The first place of a fragment in a text is found in time that hardly depends on how the two
were chosen: linear for a fragment without `_`, and about the product of both lengths divided by the
bits of a machine word for any other.

Theory of operation. Literals are searched by Python, whose search is linear (Crochemore and Perrin,
"Two-way string-matching", JACM 38(3), 1991). A fragment with `_` is tried where the longest of its
literals is found. If a few of these places are wrong, places are tried all at once, as bits of one
integer: those with the first literal character at its offset, of these the ones with the second one
at its offset, and so on (the bit-parallel search of Baeza-Yates and Gonnet, CACM 35(10), 1992,
turned around: bits are places in the text, because a text may be longer than an integer of one
word, and so may a pattern).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ANY_CHAR, ANY_RUN = "\ud800", "\ud801"
"""`_` and `%` as tokens. Surrogates are no characters, so no text has them (see to_value)."""

_PLACES_TRIED = 8
"""Places that are tried one by one."""
_FIRST_WINDOW = 256
_LITERALS = re.compile(f"[^{ANY_CHAR}]+")


@dataclass(frozen=True, slots=True)
class Fragment:
    """The tokens of a pattern between two `%`.

    Texts may be patterns too (see `Glob.covers`): a `_` takes any character but a `%`.
    """

    tokens: str
    literals: tuple[tuple[int, str], ...]
    """The runs of literal characters, each with its offset; empty if there are only `_`."""

    @classmethod
    def of(cls, tokens: str) -> Fragment:
        """The fragment with these tokens."""
        return cls(tokens, tuple((run.start(), run[0]) for run in _LITERALS.finditer(tokens)))

    @property
    def is_literal(self) -> bool:
        """Whether it has no `_`."""
        return ANY_CHAR not in self.tokens

    def fits(self, text: str, place: int) -> bool:
        """Whether the fragment fits a text at a place."""
        if self.is_literal:
            return place >= 0 and text.startswith(self.tokens, place)
        end = place + len(self.tokens)
        return (
            place >= 0
            and end <= len(text)
            and all(text.startswith(run, place + offset) for offset, run in self.literals)
            and text.find(ANY_RUN, place, end) < 0
        )

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from ``start`` where the fragment fits and ends by ``end``, or -1."""
        if self.is_literal:
            return text.find(self.tokens, start, end)
        if not self.literals:
            return self._find_without_run(text, start, end)
        offset, run = max(self.literals, key=lambda each: len(each[1]))
        last = end - len(self.tokens)
        place = start
        for _ in range(_PLACES_TRIED):
            found = text.find(run, place + offset, last + offset + len(run))
            if found < 0 or place > last:
                return -1
            place = found - offset
            if self.fits(text, place):
                return place
            place += 1
        return self._find_by_bits(text, place, last)

    def _find_without_run(self, text: str, start: int, end: int) -> int:
        """As ``find``, for a fragment of `_` alone."""
        length = len(self.tokens)
        while start + length <= end:
            run = text.rfind(ANY_RUN, start, start + length)
            if run < 0:
                return start
            start = run + 1
        return -1

    def _find_by_bits(self, text: str, start: int, last: int) -> int:
        """The first place from ``start`` to ``last`` where the fragment fits, or -1.

        In windows that double, so that a place that is near is found soon.
        """
        count = _FIRST_WINDOW
        while start <= last:
            count = min(count, last - start + 1)
            places = self._places(text[start : start + count + len(self.tokens) - 1], count)
            if places:
                return start + (places & -places).bit_length() - 1
            start += count
            count *= 2
        return -1

    def _places(self, window: str, count: int) -> int:
        """The places of a window, of which there are ``count``, where the fragment fits, as bits.

        Tokens are looked at until no place is left.
        """
        places = (1 << count) - 1
        bits = _bits_of_characters(window, {*self.tokens, ANY_RUN})
        runs = bits.get(ANY_RUN, 0)
        for offset, token in enumerate(self.tokens):
            if token == ANY_CHAR:
                if runs:
                    places &= ~(runs >> offset)
            else:
                places &= bits.get(token, 0) >> offset
            if not places:
                break
        return places


def _bits_of_characters(window: str, wanted: set[str]) -> dict[str, int]:
    """For each wanted character, the places where a window has it, as bits of an integer."""
    places: dict[str, list[int]] = {}
    for place, char in enumerate(window):
        if char in wanted:
            places.setdefault(char, []).append(place)
    return {char: _bits(each, len(window)) for char, each in places.items()}


def _bits(places: list[int], length: int) -> int:
    """An integer with one bits at some places, of ``length`` bits."""
    if len(places) < 8:
        return sum(1 << place for place in places)
    digits = bytearray(b"0" * length)
    for place in places:
        digits[length - 1 - place] = 49  # "1"
    return int(digits, 2)
