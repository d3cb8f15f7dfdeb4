"""The nearest of some names to a name that is not among them, for error messages."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

COMPARED_MAX = 200
"""Names that are compared in full, which takes some 40 us each; strangers can cause an error for
each event that they send, and a space may have thousands of attributes."""
CHARS_MAX = 200
"""A longer name is like no other."""


# Cached, because a publisher that has a name wrong has it wrong in each of its events.
@lru_cache(maxsize=64)
def nearest_name(name: str, names: tuple[str, ...]) -> str | None:
    """The name that is most like another one; None if none is.

    The same in other capitals is most like it. Of many names, only those are compared that have
    the longest beginning or end in common.

    >>> nearest_name("prize", ("symbol", "price"))
    'price'
    """
    if len(name) > CHARS_MAX:
        return None
    folded = name.casefold()
    same = next((each for each in names if each.casefold() == folded), None)
    if same is not None:
        return same
    if len(names) > COMPARED_MAX:
        backwards = (each[::-1] for each in names)
        ends = [each[::-1] for each in _neighbours(name[::-1], backwards)]
        names = (*_neighbours(name, names), *ends)
    return next(iter(get_close_matches(name, names, n=1)), None)


def _neighbours(name: str, names: Iterable[str]) -> list[str]:
    """Names next to a name in the order of the alphabet: those that begin most like it."""
    ordered = sorted(names)
    place = bisect(ordered, name)
    return ordered[max(0, place - COMPARED_MAX // 4) : place + COMPARED_MAX // 4]
