from __future__ import annotations

from typing import Any

import numba

from tidegate.experiments.warming import counted_compilations


def _twice(x: int) -> int:
    return 2 * x


def test_what_is_compiled_is_counted_once() -> None:
    twice: Any = numba.njit(_twice)
    with counted_compilations() as first:
        assert twice(3) == 6
    with counted_compilations() as second:
        assert twice(4) == 8
    assert first.compiled > 0
    assert second.compiled == 0
