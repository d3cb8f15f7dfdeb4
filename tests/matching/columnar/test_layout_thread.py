"""The thread that builds parts beside an index: what starts it, and how it ends."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.columnar.index_pair import IndexPair
from tidegate.matching.columnar.layout_thread import LayoutThread
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.subscription import Moment, Subscription

X_IS_1, NOW = Event.of({"x": 1}), Moment(None)
SIZES = IndexSizes(open_entries_max=2, at_once_entries_max=4, piece_entries=2)


class FakeBuild:
    """A build whose steps are what a test says."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.todo = steps

    def __len__(self) -> int:
        return 0

    def steps(self, lock: SharedLock, pause: Callable[[], object]) -> Iterator[None]:
        del lock
        for each in self.todo:
            each()
            pause()
            yield


class FakeIndex:
    """Hands out builds, and counts those that are abandoned."""

    def __init__(self, *builds: FakeBuild) -> None:
        self.builds = list(builds)
        self.abandoned = 0

    def begin_build(self) -> FakeBuild | None:
        return self.builds.pop(0) if self.builds else None

    def abandon_build(self) -> None:
        self.abandoned += 1


def started(index: FakeIndex) -> LayoutThread:
    lock = SharedLock()
    thread = LayoutThread(lock, index)  # type: ignore[arg-type]
    with lock:
        thread.start()
        thread.start()  # it is there already
    return thread


def layout_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "tidegate-layout"]


def test_builds_all_that_is_wanted_and_ends() -> None:
    done: list[int] = []
    index = FakeIndex(FakeBuild(lambda: done.append(1)), FakeBuild(lambda: done.append(2)))
    started(index).join()
    assert (done, index.abandoned, index.builds) == ([1, 2], 0, [])


def test_starts_again_when_more_is_wanted() -> None:
    done: list[int] = []
    index = FakeIndex(FakeBuild(lambda: done.append(1)))
    thread = started(index)
    thread.join()
    index.builds.append(FakeBuild(lambda: done.append(2)))
    thread.start()
    thread.join()
    assert done == [1, 2]


def test_stops_at_its_next_pause() -> None:
    stop: list[Callable[[], None]] = []
    go = threading.Event()
    index = FakeIndex(FakeBuild(go.wait, lambda: stop[0](), lambda: pytest.fail("not stopped")))
    thread = started(index)
    stop.append(thread.stop)
    go.set()
    thread.join()
    assert index.abandoned == 1
    thread.start()
    thread.join()


def test_an_error_is_reported_and_the_build_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))

    def fail() -> None:
        raise MemoryError

    index = FakeIndex(FakeBuild(fail))
    thread = started(index)
    thread.join()
    assert (reported, index.abandoned) == ([MemoryError], 1)
    index.builds.append(FakeBuild())
    thread.start()
    thread.join()
    assert index.builds == []


def filled(count: int = 60) -> ColumnarMatcher:
    matcher = ColumnarMatcher(sizes=SIZES)
    for number in range(count):
        matcher.add([Subscription(f"s{number}", parse("x > 0 and y is not null or x = 1"))])
        assert len(matcher.match(X_IS_1, NOW)) == number + 1
    return matcher


def test_a_matcher_merges_its_parts_on_the_thread() -> None:
    matcher = filled()
    matcher._layout_thread.join()
    assert len(matcher._indexes.current.parts) < 8
    assert len(matcher.match(X_IS_1, NOW)) == 60


def test_threads_that_change_and_match_while_parts_are_built() -> None:
    """A subscription is in every answer for as long as it is there, with the value it has then."""
    matcher = ColumnarMatcher(sizes=SIZES)
    lasting = [f"lasting{number}" for number in range(40)]
    matcher.add(Subscription(id, parse("x > :low and y is not null"), {"low": 0}) for id in lasting)
    errors: list[str] = []

    def churn(name: str) -> None:
        for number in range(150):
            id = f"{name}{number % 7}"
            if id in matcher:
                matcher.remove(id)
            matcher.add([Subscription(id, parse("x > :low or y = 3"), {"low": 4})])
            matcher.update(id, {"low": 5})

    def move() -> None:
        for number in range(400):
            id = lasting[number % len(lasting)]
            matcher.update(id, {"low": number % 2})  # 0 or 1: 2 is above both

    def match() -> None:
        for _ in range(300):
            found = matcher.match(Event.of({"x": 2, "y": 1}), NOW)
            if sorted(found) != sorted(lasting):
                errors.append(f"{found}")

    calls: list[Callable[[], object]] = [
        partial(churn, "a"),
        partial(churn, "b"),
        move,
        match,
        match,
    ]
    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(each) for each in calls]:
            future.result()
    matcher._layout_thread.join()
    assert errors == []
    assert len(matcher.match(Event.of({"x": 6, "y": 1}), NOW)) == len(matcher)


def test_a_matcher_is_freed_at_once() -> None:
    matcher = filled()
    matcher._layout_thread.join()
    gc.disable()
    try:
        index = weakref.ref(matcher._indexes)
        assert isinstance(index(), IndexPair)
        del matcher
        assert index() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_begins_anew() -> None:
    matcher = filled()
    lock = matcher._lock
    with lock:
        matcher._indexes.abandon_build()
    begun, go = threading.Event(), threading.Event()
    index = FakeIndex(FakeBuild(begun.set, go.wait), FakeBuild(lambda: None))
    thread = started(index)
    assert begun.wait(20)
    child = os.fork()
    if not child:
        ok = False
        try:
            ok = index.abandoned == 1 and not layout_threads()
            thread.start()
            thread.join()
            ok = ok and index.builds == [] and len(matcher.match(X_IS_1, NOW)) == 60
        finally:
            os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert index.abandoned == 0


@pytest.mark.slow  # another interpreter
def test_the_interpreter_ends_while_a_part_is_built() -> None:
    program = """
import threading
from tidegate.matching.columnar.layout_thread import LayoutThread
from tidegate.matching.rows.locks import SharedLock

class Endless:
    def __len__(self):
        return 0
    def steps(self, lock, pause):
        begun.set()
        while True:
            pause()
            yield

class Index:
    def begin_build(self):
        return Endless()
    def abandon_build(self):
        print("abandoned")

begun, lock, index = threading.Event(), SharedLock(), Index()
thread = LayoutThread(lock, index)
with lock:
    thread.start()
begun.wait(20)
print("end")
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\nabandoned\n", "")
