"""Which patterns strings satisfy, remembered in a bounded number of bytes."""

from __future__ import annotations

import numpy as np

from tidegate.matching.rows.entries.satisfied_cache import SatisfiedCache

NUMBERS = np.array([1, 2], np.int32)


def test_what_was_put_is_found() -> None:
    cache = SatisfiedCache(10_000)
    cache.put("name", "a", NUMBERS)
    assert cache.get("name", "a") is NUMBERS
    assert cache.get("name", "b") is cache.get("place", "a") is None
    cache.clear()
    assert cache.get("name", "a") is None


def test_bytes_are_bounded_and_not_strings() -> None:
    cache = SatisfiedCache(1_000_000)
    for number in range(1_000):
        cache.put("name", f"{number:020000}", NUMBERS)
    assert len(cache) * 20_000 <= 1_000_000
    for number in range(100_000):
        cache.put("name", str(number), NUMBERS)
    assert len(cache) * 200 <= 1_000_000


def test_one_that_is_too_long_is_not_remembered() -> None:
    cache = SatisfiedCache(10_000)
    cache.put("name", "a", NUMBERS)
    cache.put("name", "a" * 5_000, NUMBERS)
    assert cache.get("name", "a" * 5_000) is None
    assert cache.get("name", "a") is NUMBERS


def test_what_comes_again_and_again_stays() -> None:
    cache = SatisfiedCache(10_000)
    cache.put("name", "often", NUMBERS)
    for number in range(1_000):
        cache.put("name", str(number), NUMBERS)
        assert cache.get("name", "often") is NUMBERS
    assert cache.get("name", "0") is None
