"""Who waits for whom. Threads meet at barriers; a timeout only ends a test that would hang."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

import pytest

from tidegate.matching.rows import locks
from tidegate.matching.rows.locks import SharedLock

TIMEOUT_S = 20


@contextmanager
def shared(lock: SharedLock) -> Iterator[None]:
    lock.share()
    try:
        yield
    finally:
        lock.unshare()


class WatchedCondition(threading.Condition):
    """A condition that shows when threads begin to wait, and may interrupt them instead."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__(lock)
        self._begun = threading.Semaphore(0)
        self.interrupts = False

    def wait(self, timeout: float | None = None) -> bool:
        if self.interrupts:
            raise KeyboardInterrupt
        self._begun.release()
        return super().wait(timeout)

    def next(self) -> None:
        """Return when one more thread waits."""
        assert self._begun.acquire(timeout=TIMEOUT_S)


class Watched:
    """A lock and the condition that its threads wait on."""

    def __init__(self) -> None:
        self.lock = SharedLock(self._make)

    def _make(self, lock: threading.Lock) -> WatchedCondition:
        self.waits = WatchedCondition(lock)
        return self.waits


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def lock(watched: Watched) -> SharedLock:
    return watched.lock


@pytest.fixture
def waits(watched: Watched) -> WatchedCondition:
    return watched.waits


def start(function: Callable[[], None]) -> Future[None]:
    """Run a function in a thread, which does not keep the tests from ending if it hangs."""
    future: Future[None] = Future()

    def run() -> None:
        try:
            function()
            future.set_result(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def done(*futures: Future[None]) -> None:
    for future in futures:
        future.result(TIMEOUT_S)


def test_readers_go_in_together(lock: SharedLock) -> None:
    inside = threading.Barrier(4, timeout=TIMEOUT_S)

    def read() -> None:
        with shared(lock):
            inside.wait()

    done(*[start(read) for _ in range(4)])


def test_a_writer_waits_for_the_readers_to_leave(lock: SharedLock, waits: WatchedCondition) -> None:
    order: list[str] = []

    def write() -> None:
        with lock:
            order.append("writer")

    lock.share()
    lock.share()
    writer = start(write)
    waits.next()
    order.append("one reader leaves")
    lock.unshare()
    order.append("the other leaves")
    lock.unshare()
    done(writer)
    assert order == ["one reader leaves", "the other leaves", "writer"]


def test_no_reader_gets_in_while_a_writer_waits(lock: SharedLock, waits: WatchedCondition) -> None:
    order: list[str] = []

    def write() -> None:
        with lock:
            order.append("writer")

    def read() -> None:
        with shared(lock):
            order.append("reader")

    lock.share()
    writer = start(write)
    waits.next()
    readers = [start(read) for _ in range(2)]
    waits.next()
    waits.next()
    assert order == []
    lock.unshare()
    done(writer, *readers)
    assert order == ["writer", "reader", "reader"]


def test_all_writers_that_wait_get_in(lock: SharedLock, waits: WatchedCondition) -> None:
    order: list[str] = []

    def write() -> None:
        with lock:
            order.append("writer")

    def read() -> None:
        with shared(lock):
            order.append("reader")

    lock.share()
    writers = [start(write) for _ in range(3)]
    for _ in writers:
        waits.next()
    reader = start(read)
    waits.next()
    lock.unshare()
    done(*writers, reader)
    assert order == ["writer", "writer", "writer", "reader"]


def test_a_patient_reader_lets_writers_pass(
    lock: SharedLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []

    def another_writes(_: float) -> None:
        if len(writes) < 3:
            with lock:
                writes.append(len(writes))

    monkeypatch.setattr("tidegate.matching.rows.locks.time.sleep", another_writes)
    lock.let_writers_pass()
    assert writes == [0, 1, 2]


def test_a_reader_does_not_let_writers_pass_for_ever(
    lock: SharedLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []

    def another_writes(_: float) -> None:
        with lock:
            writes.append(len(writes))

    monkeypatch.setattr("tidegate.matching.rows.locks.time.sleep", another_writes)
    lock.let_writers_pass()
    assert len(writes) == locks.PASSING_MAX


def test_writers_that_had_to_wait_are_counted(lock: SharedLock, waits: WatchedCondition) -> None:
    def write() -> None:
        with lock:
            pass

    write()
    with lock.shared():
        assert lock.waits == 0
        writer = start(write)
        waits.next()
    done(writer)
    assert lock.waits == 1


def test_a_writer_is_alone(lock: SharedLock) -> None:
    """Many threads, each counting who holds the lock with it."""
    readers = 0
    writers = 0
    counting = threading.Lock()

    def work(seed: int) -> None:
        nonlocal readers, writers
        rng = random.Random(seed)
        for _ in range(300):
            if rng.random() < 0.3:
                with lock:
                    writers += 1
                    assert (readers, writers) == (0, 1)
                    writers -= 1
            else:
                with shared(lock):
                    with counting:
                        readers += 1
                    assert writers == 0
                    with counting:
                        readers -= 1

    done(*[start(partial(work, seed)) for seed in range(6)])
    assert (readers, writers) == (0, 0)


def fail(*_: object) -> None:
    raise LookupError


def take_both_ways(lock: SharedLock) -> None:
    """Fail if another thread cannot take the lock, alone and then shared."""

    def take() -> None:
        with lock:
            pass
        with shared(lock):
            pass

    done(start(take))


@pytest.mark.parametrize("how", [shared, lambda lock: lock], ids=["shared", "alone"])
def test_an_exception_releases_the_lock(
    how: Callable[[SharedLock], SharedLock], lock: SharedLock
) -> None:
    with pytest.raises(LookupError), how(lock):
        fail()
    take_both_ways(lock)


def test_a_reader_that_is_interrupted_while_it_waits_leaves_no_trace(
    lock: SharedLock, waits: WatchedCondition
) -> None:
    lock.share()
    writer = start(lock.__enter__)
    waits.next()
    waits.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        lock.share()
    waits.interrupts = False
    lock.unshare()
    done(writer)
    lock.__exit__()
    take_both_ways(lock)


def test_a_writer_that_is_interrupted_while_it_waits_leaves_no_trace(
    lock: SharedLock, waits: WatchedCondition
) -> None:
    lock.share()
    waits.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        lock.__enter__()
    waits.interrupts = False
    # Would wait if the inner lock were still held, or the writer still counted as waiting.
    done(start(lock.share))
