"""Functions compiled by Numba, kept on disk from one run to the next.

Numba takes a compiled function from its cache unless the file that it is written in has changed.
But the compiled code also contains the functions that it calls and the constants that it uses,
which may stand in other files. So whatever was compiled before the newest source file of
`matching/` was written is deleted at import.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_MATCHING = Path(__file__).parents[2]
"""All sources that a kernel may contain code of: the folder `matching/`."""

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


def forget_outdated(folder: Path = _MATCHING) -> int:
    """Delete what was compiled before the newest source file in a folder tree; returns how much."""
    newest = max((each.stat().st_mtime_ns for each in folder.rglob("*.py")), default=0)
    outdated = 0
    for compiled in folder.rglob("__pycache__/*.nb[ic]"):
        with suppress(OSError):  # another process may do the same, or the folder is not ours
            if compiled.stat().st_mtime_ns < newest:
                compiled.unlink()
                outdated += 1
    return outdated


def is_first_run(folder: Path = _MATCHING) -> bool:
    """Whether the kernels in a folder tree are still to be compiled and kept there."""
    return os.access(folder, os.W_OK) and not any(folder.rglob("__pycache__/*.nbc"))


forget_outdated()
