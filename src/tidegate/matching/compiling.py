"""Functions compiled by Numba, kept on disk from one run to the next.

Numba takes a compiled function from its cache unless the file that it is written in has changed.
But a function also has in it what it calls and the constants that it uses, from other files. So all
that was compiled before the newest file of this folder was written is thrown away first.
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


def forget_outdated(folder: Path) -> int:
    """Throw away what was compiled before the newest source file of a folder; gives how much."""
    newest = max((each.stat().st_mtime_ns for each in folder.glob("*.py")), default=0)
    outdated = 0
    for compiled in folder.glob("__pycache__/*.nb[ic]"):
        with suppress(OSError):  # another process may do the same, or the folder is not ours
            if compiled.stat().st_mtime_ns < newest:
                compiled.unlink()
                outdated += 1
    return outdated


def is_first_run(folder: Path = Path(__file__).parent) -> bool:
    """Whether nothing that is compiled in a folder has been kept there yet, though it could be."""
    return os.access(folder, os.W_OK) and not any(folder.glob("__pycache__/*.nbc"))


forget_outdated(Path(__file__).parent)
