"""Locks in forked children."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from tidegate.matching.forking import Rank, forkable_lock, survive_forks
from tidegate.matching.rows.locks import SharedLock

FORK = multiprocessing.get_context("fork")


def is_free_in_child(lock: threading.Lock) -> bool:
    def check() -> None:
        assert lock.acquire(timeout=0)
        lock.release()

    child = FORK.Process(target=check)
    child.start()
    child.join(60)
    return child.exitcode == 0


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_the_thread_that_holds_a_lock() -> None:
    lock, is_held, is_forking = forkable_lock(Rank.MATCHER), threading.Event(), threading.Event()
    done: list[str] = []

    def hold() -> None:
        with lock:
            is_held.set()
            is_forking.wait(60)
            done.append("changed")

    first = _Signal(is_forking)
    survive_forks(first, Rank.ENGINE)  # acquired before the other lock
    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait(60)
    assert is_free_in_child(lock)
    assert done == ["changed"]
    thread.join()


class _Signal:
    """A lock that tells that it is acquired."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def __enter__(self) -> None:
        self._event.set()

    def __exit__(self, *_: object) -> None:
        pass


def test_locks_are_free_in_the_child_and_in_the_parent() -> None:
    lock, shared = forkable_lock(Rank.CACHED), SharedLock()
    survive_forks(shared, Rank.MATCHER)
    assert is_free_in_child(lock)
    with lock, shared:
        pass
    shared.share()
    shared.unshare()


class _HeldBack(threading.Condition):
    """A condition whose waiting threads, once woken, go on only when they are let go."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__(lock)
        self.is_waiting, self.may_go_on = threading.Event(), threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.is_waiting.set()
        is_notified = super().wait(timeout)
        self.release()
        self.may_go_on.wait(60)
        self.acquire()
        return is_notified


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_writer_that_waited_at_the_fork_does_not_keep_readers_out_of_the_child() -> None:
    conditions: list[_HeldBack] = []

    def make(inner: threading.Lock) -> _HeldBack:
        conditions.append(_HeldBack(inner))
        return conditions[0]

    lock = SharedLock(make)
    survive_forks(lock, Rank.MATCHER)
    lock.share()

    def write() -> None:
        with lock:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    assert conditions[0].is_waiting.wait(60)
    with lock._inner:  # the writer waits, as it released this lock
        pass
    lock.unshare()

    def read() -> None:
        lock.share()
        lock.unshare()

    child = FORK.Process(target=read, daemon=True)
    child.start()
    child.join(20)
    conditions[0].may_go_on.set()
    writer.join()
    assert child.exitcode == 0


def test_locks_are_acquired_by_rank() -> None:
    acquired: list[Rank] = []

    class Noting:
        def __init__(self, rank: Rank) -> None:
            self._rank = rank

        def __enter__(self) -> None:
            acquired.append(self._rank)

        def __exit__(self, *_: object) -> None:
            pass

    locks = [Noting(rank) for rank in reversed(Rank)]
    for lock, rank in zip(locks, reversed(Rank), strict=True):
        survive_forks(lock, rank)
    child = FORK.Process(target=lambda: None)
    child.start()
    child.join(60)
    assert acquired == list(Rank)
