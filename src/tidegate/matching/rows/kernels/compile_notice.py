"""Saying that kernels are compiled, which somebody may be waiting for.

Numba compiles a kernel when it is first called, and keeps it on disk; that takes seconds after an
installation and no time later. The first compilation of a process is logged, and printed to stderr
where that is a terminal.
"""

from __future__ import annotations

import logging
import sys

from numba.core import event

NOTICE = "compiling kernels of the matcher, which takes some seconds, once after an installation"

_log = logging.getLogger("tidegate")


class CompileNotice(event.Listener):
    """Tells once when a kernel is compiled, not when it is loaded from disk."""

    def __init__(self, package: str = "tidegate.") -> None:
        self._package = package
        self._told = False

    def on_start(self, event: event.Event) -> None:
        # all that a process compiles is announced here, also what is not ours
        if self._told or not event.data["dispatcher"].py_func.__module__.startswith(self._package):
            return
        self._told = True
        _log.info(NOTICE)
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"tidegate: {NOTICE}\n")
            sys.stderr.flush()

    def on_end(self, event: event.Event) -> None:
        """Called when a kernel is compiled; nothing is left to say."""


def announce_compilations() -> None:
    """Have a notice given when a kernel is compiled for the first time in this process."""
    event.register("numba:compile", CompileNotice())  # type: ignore[no-untyped-call]
