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

ANY_CHAR, ANY_RUN = "\ud800", "\ud801"
"""`_` and `%` as tokens. Surrogates are no characters, so no text has them (see to_value)."""

_PLACES_TRIED = 8
"""Places that are tried one by one."""
_FIRST_WINDOW = 256
_LITERALS = re.compile(f"[^{ANY_CHAR}]+")


def fits(fragment: str, text: str, place: int) -> bool:
    """Whether a fragment fits a text at a place.

    Texts may be patterns too (see `Glob.covers`): a `_` takes any character but a `%`.
    """
    if ANY_CHAR not in fragment:
        return place >= 0 and text.startswith(fragment, place)
    end = place + len(fragment)
    return place >= 0 and end <= len(text) and _fits_inside(_runs(fragment), text, place, end)


def find(fragment: str, text: str, start: int, end: int) -> int:
    """The first place from ``start`` where a fragment fits and ends by ``end``, or -1.

    >>> find("b" + ANY_CHAR, "abab.", 0, 5), find("b" + ANY_CHAR, "abab.", 2, 4)
    (1, -1)
    """
    if ANY_CHAR not in fragment:
        return text.find(fragment, start, end)
    runs = _runs(fragment)
    if not runs:
        return _find_without_run(len(fragment), text, start, end)
    offset, longest = max(runs, key=lambda run: len(run[1]))
    last = end - len(fragment)
    for _ in range(_PLACES_TRIED):
        found = text.find(longest, start + offset, last + offset + len(longest))
        if start > last or found < 0:
            return -1
        start = found - offset
        if _fits_inside(runs, text, start, start + len(fragment)):
            return start
        start += 1
    return _find_by_bits(fragment, text, start, last)


def _runs(fragment: str) -> list[tuple[int, str]]:
    """The runs of literal characters, each with its offset; none if there are only `_`."""
    return [(run.start(), run[0]) for run in _LITERALS.finditer(fragment)]


def _fits_inside(runs: list[tuple[int, str]], text: str, start: int, end: int) -> bool:
    return (
        all(text.startswith(run, start + offset) for offset, run in runs)
        and text.find(ANY_RUN, start, end) < 0
    )


def _find_without_run(length: int, text: str, start: int, end: int) -> int:
    """The first place where ``length`` characters, none of them a `%`, end by ``end``, or -1."""
    while start + length <= end:
        run = text.rfind(ANY_RUN, start, start + length)
        if run < 0:
            return start
        start = run + 1
    return -1


def _find_by_bits(fragment: str, text: str, start: int, last: int) -> int:
    """The first place from ``start`` to ``last`` where a fragment fits, or -1.

    In windows that double, so that a place that is near is found soon.
    """
    count = _FIRST_WINDOW
    while start <= last:
        count = min(count, last - start + 1)
        places = _places(fragment, text[start : start + count + len(fragment) - 1], count)
        if places:
            return start + (places & -places).bit_length() - 1
        start += count
        count *= 2
    return -1


def _places(fragment: str, window: str, count: int) -> int:
    """The places of a window, of which there are ``count``, where a fragment fits, as bits.

    Tokens are looked at until no place is left.
    """
    places = (1 << count) - 1
    bits = _bits_of_characters(window, {*fragment, ANY_RUN})
    of_runs = bits.get(ANY_RUN, 0)
    for offset, token in enumerate(fragment):
        if token != ANY_CHAR:
            places &= bits.get(token, 0) >> offset
        elif of_runs:
            places &= ~(of_runs >> offset)
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
    digits = bytearray(b"0" * length)
    for place in places:
        digits[length - 1 - place] = 49  # "1"
    return int(digits, 2)
