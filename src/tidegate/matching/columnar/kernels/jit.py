"""Functions compiled by Numba, kept on disk from one run to the next.

Numba takes a compiled function from its cache unless the file that it is written in has changed.
But the compiled code also contains the functions that it calls and the constants that it uses,
which may stand in other files. So whatever was compiled before the newest of these files was
written is deleted at import. A kernel may contain code of any `kernels/` folder of `matching/`, and
constants of `arrays.py`; an import contract keeps everything else out of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_MATCHING = Path(__file__).parents[2]

_NOT_COUNTED: Any = {"_nrt": False}
"""An option of Numba that its types do not tell."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function; it runs without the GIL."""
    compiled: Callable[P, R] = njit(cache=True, nogil=True)(function)
    return compiled


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that makes no arrays; references to arrays are not counted in it.

    Otherwise each call and each view counts them, with atomic operations that cost more than the
    work of a function that is called for every entry.
    """
    compiled: Callable[P, R] = njit(cache=True, nogil=True, **_NOT_COUNTED)(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function as a part of each that calls it."""
    compiled: Callable[P, R] = njit(inline="always")(function)
    return compiled


def forget_outdated(matching: Path = _MATCHING) -> int:
    """Delete what was compiled before the newest source of any kernel; returns how many files."""
    newest = max((each.stat().st_mtime_ns for each in _sources(matching)), default=0)
    outdated = 0
    for compiled in matching.rglob("kernels/__pycache__/*.nb[ic]"):
        with suppress(OSError):  # another process may do the same, or the folder is not ours
            if compiled.stat().st_mtime_ns < newest:
                compiled.unlink()
                outdated += 1
    return outdated


def _sources(matching: Path) -> Iterator[Path]:
    yield from matching.rglob("kernels/*.py")
    yield from matching.glob("arrays.py")


def is_first_run(matching: Path = _MATCHING) -> bool:
    """Whether the kernels are still to be compiled, and can be kept on disk afterwards."""
    return os.access(matching, os.W_OK) and not any(matching.rglob("kernels/__pycache__/*.nbc"))


forget_outdated()
