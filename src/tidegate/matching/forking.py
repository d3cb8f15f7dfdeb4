"""Locks that a process may be forked with: free in the child, with what they guard unbroken.

A forked child has a copy of the memory, and of all threads only the one that forked. A lock that
another thread held would never be released there, and what it guards may be half changed. So before
a fork all locks are acquired, which waits for changes that are under way, and after it they are
released, in the parent and in the child. A lock that counts the threads that wait for it forgets
them in the child first.

Lock order. Locks are acquired by rank: those that are held while others are waited for come first.
A thread that holds one of a rank waits for none of the same or an earlier rank, so whoever holds a
lock that the fork waits for gets on. The thread that forks holds none itself: no function of a user
runs under a lock.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable
from weakref import WeakSet

Lock = AbstractContextManager[Any]


@runtime_checkable
class CountsWaitingThreads(Protocol):
    """A lock whose state says which threads wait for it."""

    def forget_waiting_threads(self) -> None:
        """Count no thread as waiting. Called in a forked child while the lock is held."""


class Rank(IntEnum):
    """The order in which locks are acquired."""

    ENGINE = 0
    CACHED = 1
    PERIODIC = 2
    LAZY = 3
    REBUILDING = 4
    MATCHER = 5


_registering = threading.Lock()
"""Held while a lock is registered, and before a fork acquired first."""
_registered: tuple[WeakSet[Lock], ...] = tuple(WeakSet() for _ in Rank)
_held: list[Lock] = []
"""The locks that are held for a fork, in the order in which they were acquired."""


def survive_forks(lock: Lock, rank: Rank) -> None:
    """Have a lock acquired before each fork of this process and released after it."""
    with _registering:
        _registered[rank].add(lock)


def forkable_lock(rank: Rank) -> threading.Lock:
    """A new lock that is free in a forked child."""
    lock = threading.Lock()
    survive_forks(lock, rank)
    return lock


def _acquire_all() -> None:
    _registering.acquire()
    for locks in _registered:
        for lock in list(locks):
            lock.__enter__()
            _held.append(lock)


def _release_all() -> None:
    while _held:
        _held.pop().__exit__(None, None, None)
    _registering.release()


def _release_all_in_child() -> None:
    for lock in _held:
        if isinstance(lock, CountsWaitingThreads):
            lock.forget_waiting_threads()
    _release_all()


if hasattr(os, "register_at_fork"):  # not on Windows, where there is no fork
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all_in_child
    )
