from __future__ import annotations

import numba

from tidegate.experiments.warming import counted_compilations


def test_what_is_compiled_is_counted_once() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def twice(x: int) -> int:
        return 2 * x

    with counted_compilations() as first:
        assert twice(3) == 6
    with counted_compilations() as second:
        assert twice(4) == 8
    assert first.compiled > 0
    assert second.compiled == 0
