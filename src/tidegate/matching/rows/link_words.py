"""Sets of links as words of 64 bits, as the kernels take them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidegate.matching.arrays import U64

LINK_BITS = 64
_ALL_BITS = (1 << LINK_BITS) - 1


def widened(array: U64, rows: int, before: int, words: int) -> U64:
    """Rows of words with more words in each."""
    wider: U64 = np.zeros((rows, words), np.uint64)
    if before:
        wider[:, :before] = array[: rows * before].reshape(rows, before)
    return wider.ravel()


def as_words(links: int, words: int) -> U64:
    """A set of links as words of 64 bits; links beyond them are left out."""
    return np.array([links >> LINK_BITS * each & _ALL_BITS for each in range(words)], np.uint64)


def all_as_words(sets: Iterable[int], words: int) -> U64:
    """Many sets of links that fit in some words, a row for each set."""
    packed = b"".join(each.to_bytes(LINK_BITS // 8 * words, "little") for each in sets)
    rows: U64 = np.frombuffer(packed, np.dtype("<u8")).reshape(-1, words)
    return rows


def as_int(words: U64) -> int:
    """The set of links in words of 64 bits."""
    return sum(int(word) << LINK_BITS * place for place, word in enumerate(words))
