"""A lock that many readers share and a writer has alone."""

from __future__ import annotations

import threading


class SharedLock:
    """Readers go in together; a writer waits for them to leave, and new ones wait for it.

    `with lock:` holds it alone; readers use ``share`` and ``unshare``. A writer keeps the inner
    lock while it is in, so that being alone costs hardly more than a plain lock.
    """

    def __init__(self) -> None:
        self._inner = threading.Lock()
        self._changed = threading.Condition(self._inner)
        self._readers = 0
        self._writers_waiting = 0

    def share(self) -> None:
        """Take the lock together with other readers."""
        with self._inner:
            while self._writers_waiting:
                self._changed.wait()
            self._readers += 1

    def unshare(self) -> None:
        """Give the shared lock back."""
        with self._inner:
            self._readers -= 1
            if not self._readers and self._writers_waiting:
                self._changed.notify_all()

    def __enter__(self) -> None:
        self._inner.acquire()
        if not self._readers:
            return
        self._writers_waiting += 1
        try:
            while self._readers:
                self._changed.wait()
        except BaseException:  # such as KeyboardInterrupt
            self._let_others_in()
            self._inner.release()
            raise
        self._let_others_in()

    def _let_others_in(self) -> None:
        self._writers_waiting -= 1
        if not self._writers_waiting:
            self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        self._inner.release()
