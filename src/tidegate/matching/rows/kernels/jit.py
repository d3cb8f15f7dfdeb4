"""Decorators for functions compiled by Numba, and the guard of Numba's cache on disk.

Numba takes a compiled function from its cache unless the file that it is written in has changed.
But the compiled code also contains the functions that it calls and the constants that it uses,
which may be in other files. So whatever was compiled before the newest of these files was written
is deleted at import. A kernel may contain code of any `kernels/` folder of `matching/`, and
constants of `arrays.py`; an import contract keeps everything else out of it.

Four ways to compile, by what a function does and who calls it:

    decorator      may allocate   counts references   part of its callers   use
    kernel         yes            yes                 no                    loops over events
    lean           no             no                  no                    loops over entries
    lean_inlined   no             no                  by LLVM               steps of a lean kernel
    inlined        as caller      as caller           by Numba              short expressions

LLVM inlines what is compiled already, so a function is compiled once. Numba does it before it
compiles, once for each place: writers with all their steps `inlined` took twice as long to compile,
and no less time to run.

A kernel is compiled once for each type of its arguments, and a literal `0` has a type of its own,
as has a variable that begins as one. So what is handed to a kernel begins as `np.int64(0)`: without
that a third of the kernels were compiled twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import njit

from tidegate.matching.rows.kernels.compile_notice import announce_compilations

P = ParamSpec("P")
R = TypeVar("R")

_MATCHING = Path(__file__).parents[2]

_NOT_COUNTED: Any = {"_nrt": False}
"""Option of Numba to compile without its runtime, which counts references; it is not documented."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function; it runs without the GIL."""
    compiled: Callable[P, R] = njit(cache=True, nogil=True)(function)
    return compiled


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that allocates nothing, without counting references to arrays.

    Otherwise each call, each view and each element of a tuple of arrays counts them, with atomic
    operations that cost more than the work of a function that is called for every entry. The
    caller holds the arrays, so nothing can be freed meanwhile. Numba refuses to compile a function
    that would allocate.
    """
    compiled: Callable[P, R] = njit(cache=True, nogil=True, **_NOT_COUNTED)(function)
    return compiled


def lean_inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function as ``lean`` does, and have LLVM inline it into every caller.

    For functions that take a packed part: as arguments of a call, its arrays would be copied to the
    stack.
    """
    compiled: Callable[P, R] = njit(cache=True, nogil=True, forceinline=True, **_NOT_COUNTED)(
        function
    )
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Numba inlines into every caller; also for kernels that allocate."""
    compiled: Callable[P, R] = njit(inline="always")(function)
    return compiled


def forget_outdated(matching: Path = _MATCHING) -> int:
    """Delete what was compiled before the newest source of any kernel was written.

    Returns how many files were deleted.
    """
    # by time of modification, which is also how Numba finds that a file has changed
    newest = max((each.stat().st_mtime_ns for each in _sources(matching)), default=0)
    outdated = 0
    for compiled in matching.rglob("kernels/__pycache__/*.nb[ic]"):
        with suppress(OSError):  # another process may do the same, or the folder is not ours
            if compiled.stat().st_mtime_ns < newest:
                compiled.unlink()
                outdated += 1
    return outdated


def _sources(matching: Path) -> Iterator[Path]:
    """The files whose code or constants may be part of a kernel."""
    yield from matching.rglob("kernels/*.py")
    yield from matching.glob("arrays.py")


def is_first_run(matching: Path = _MATCHING) -> bool:
    """Whether the kernels are still to be compiled, and can be kept on disk afterwards."""
    return os.access(matching, os.W_OK) and not any(matching.rglob("kernels/__pycache__/*.nbc"))


forget_outdated()
announce_compilations()
