"""A readers-writer lock that is nearly as cheap as a plain lock for the writer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PASSING_S, PASSING_MAX = 0.0002, 50
"""A reader lets writers pass until none came for this time, at most that many times it."""


class SharedLock:
    """Readers hold the lock together, a writer holds it alone.

    `with lock:` takes it for writing; readers call ``share`` and ``unshare``. Neither is reentrant:
    a reader that wants to write must ``unshare`` first, else it waits for itself.

    Who waits for whom. A writer waits until all present readers have left. While a writer waits, no
    new reader is let in (else a steady stream of readers would starve it); readers are let in again
    once no writer waits. Writers among themselves are ordered by the inner lock.

    A writer keeps the inner lock while it writes. So readers and other writers simply block on that
    lock, no state has to be recorded, and an uncontended write costs one acquire and release.

    ``condition`` makes the condition variable that threads wait on.
    """

    def __init__(
        self, condition: Callable[[threading.Lock], threading.Condition] = threading.Condition
    ) -> None:
        self._inner = threading.Lock()
        self._changed = condition(self._inner)
        self._readers = 0
        self._writers_waiting = 0
        self._writes = 0
        self.waits = 0
        """How often a writer has had to wait for readers."""

    def share(self) -> None:
        """Take the lock for reading, together with other readers."""
        with self._inner:
            while self._writers_waiting:
                self._changed.wait()
            self._readers += 1

    def unshare(self) -> None:
        """Release the lock of a reader."""
        with self._inner:
            self._readers -= 1
            if not self._readers and self._writers_waiting:
                self._changed.notify_all()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock for reading."""
        self.share()
        try:
            yield
        finally:
            self.unshare()

    def let_writers_pass(self) -> None:
        """Wait as long as writers come one right after the other, but not for ever.

        For a reader that wants the lock again and again, and is in no hurry: else each of the
        writers would have to wait for it anew. Call it without the lock.
        """
        for _ in range(PASSING_MAX):
            before = self._writes
            time.sleep(PASSING_S)
            if self._writes == before:
                return

    def __enter__(self) -> None:
        self._inner.acquire()
        self._writes += 1
        if not self._readers:
            return
        self.waits += 1
        self._writers_waiting += 1
        try:
            # wait() releases the inner lock, so that the readers can leave
            while self._readers:
                self._changed.wait()
        except BaseException:  # such as KeyboardInterrupt, raised while waiting
            self._stop_waiting()
            self._inner.release()
            raise
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        """Count a writer as no longer waiting; if it was the last, wake the waiting readers."""
        self._writers_waiting -= 1
        if not self._writers_waiting:
            self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        self._inner.release()

    def forget_waiting_threads(self) -> None:
        """Let readers in whatever writers waited. For a forked child, where these are no more.

        Call it as the holder of the lock. Such a writer was counted as waiting and then woken, but
        the thread that forked came first; in the child nobody would count it as done.
        """
        self._writers_waiting = 0
