"""The thread that builds parts beside an index (part_build.py).

It is there only while there is something to build: ``start`` is called, with the lock held alone,
whenever the index may want a build, and the thread ends when it wants none. An idle engine has no
thread, and nothing has to be closed.

Giving way. Between two steps the thread sleeps for a moment, so that others get the lock and the
interpreter; it holds the lock for a piece at most.

Forks, ends, errors. A forked child has no such thread: what it was building is dropped there, and
begun again when the index wants it. When the interpreter ends, or nobody holds the matcher any
more, the thread stops at its next pause; the interpreter waits for that. If building fails, the
index stays as it was, which is right; the error goes to `threading.excepthook`, and the build is
tried again the next time that the index wants it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet, ref

from tidegate.matching.columnar.part_build import PartBuild
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.memory import release_memory

PAUSE_S = 0.0003
"""How long the thread sleeps between two steps."""

RELEASE_ENTRIES_MIN = 50_000
"""After a layout of this many entries unused memory is returned to the operating system."""


class BuildsParts(Protocol):
    """What wants parts to be built; both methods are called with the lock held alone."""

    def begin_build(self) -> PartBuild | None:
        """Begin to build a part; None if none is wanted."""
        ...

    def abandon_build(self) -> None:
        """Forget what is being built."""
        ...


class _StoppedError(Exception):
    """The thread has been told to stop."""


class LayoutThread:
    """Builds the parts that an index wants on a thread of its own."""

    def __init__(self, lock: SharedLock, index: BuildsParts) -> None:
        self._lock = lock
        # weak, because the index refers to this object: an index is large, and is to be freed as
        # soon as its matcher is
        self._index = ref(index)
        self._thread: threading.Thread | None = None
        self._stopping = False
        _all.add(self)

    def start(self) -> None:
        """Have the thread build what is wanted; the lock is held alone."""
        if self._thread is None and not self._stopping:
            thread = threading.Thread(target=self._run, name="tidegate-layout", daemon=True)
            # There may be too many threads. Then the index stays as it is, which is right.
            with suppress(RuntimeError):
                thread.start()  # it waits for the lock that is held here
                self._thread = thread

    def stop(self) -> None:
        """Have the thread stop at its next pause, and start no other."""
        self._stopping = True

    def join(self) -> None:
        """Wait until the thread has ended; the caller holds no lock."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def forget(self) -> None:
        """Forget the thread, which is not there in a forked child, and what it was building."""
        if self._thread is not None:
            self._thread = None
            self._abandon()

    def _abandon(self) -> None:
        index = self._index()
        if index is not None:
            index.abandon_build()

    def _run(self) -> None:
        try:
            while (build := self._next()) is not None:
                for _ in build.steps(self._lock, self._pause):
                    self._pause()
                if len(build) >= RELEASE_ENTRIES_MIN:
                    release_memory()
        except _StoppedError:
            self._give_up()
        except BaseException:
            self._give_up()
            raise

    def _next(self) -> PartBuild | None:
        # under the lock, so that whoever calls ``start`` finds a thread that will look once more
        with self._lock:
            index = self._index()
            build = None if self._stopping or index is None else index.begin_build()
            if build is None:
                self._thread = None
            return build

    def _give_up(self) -> None:
        with self._lock:
            self._abandon()
            self._thread = None

    def _pause(self) -> None:
        if self._stopping:
            raise _StoppedError
        time.sleep(PAUSE_S)


_all: WeakSet[LayoutThread] = WeakSet()


def _stop_all() -> None:
    threads = list(_all)
    for each in threads:
        each.stop()
    for each in threads:
        each.join()


def _forget_all() -> None:
    for each in list(_all):
        each.forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):  # not on Windows, where there is no fork
    os.register_at_fork(after_in_child=_forget_all)
