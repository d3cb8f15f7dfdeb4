"""Bins and bits; what a cluster matches is tested with its layout, in test_layout.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.columnar.kernels.scan import bin_of, trailing_zeros
from tidegate.matching.rows.kernels.jit import inlined

floats = st.floats(allow_nan=False)


@given(st.lists(floats, unique=True).map(sorted), floats)
def test_the_bin_of_a_value(edges: list[float], x: float) -> None:
    stored = np.array([-1.0, *edges])  # those of another channel come before them
    assert bin_of(stored, 1, len(edges) + 1, x) == np.searchsorted(edges, x, side="right")
    assert bin_of(stored, 1, len(edges) + 1, math.nan) == len(edges) + 1


@inlined
def count_zeros(word: Any) -> Any:
    """An intrinsic can only be called by what is compiled."""
    return trailing_zeros(word)


@given(st.integers(0, 63), st.integers(0, 2**64 - 1))
def test_zeros_at_the_end_of_a_word(zeros: int, above: int) -> None:
    word = (above << zeros | 1 << zeros) & 2**64 - 1
    assert count_zeros(np.uint64(word)) == zeros
