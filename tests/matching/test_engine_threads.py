"""Engines that several threads use, and users' functions that call the engine they serve."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy, deepcopy
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.matching.engine import Engine
from tidegate.matching.evolving.cached import CachedMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.records import SubscriptionRecord
from tidegate.matching.registry import MATCHERS
from tidegate.matching.subscription import Moment, Subscription

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HANGS_S = 60.0
"""Far more than any of these calls takes."""


@pytest.fixture(autouse=True)
def switches_often() -> Iterator[None]:
    """Threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def finish(*calls: Callable[[], object]) -> None:
    """Run calls in a thread each; fails if one raises or does not return."""
    errors: list[Exception] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 (reported below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_S)
    assert not any(thread.is_alive() for thread in threads), "a call hangs"
    assert not errors, errors


# -- functions of users ---------------------------------------------------------------------------


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize("filter", ["x < @limit", "x < @limit + t", "s > @limit or x < @limit"])
def test_a_provider_may_call_the_engine(matcher: str, filter: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe(filter, id="a", since=NOON)
    engine.subscribe("x < :l", id="b", since=NOON, l=1)

    def limit(_time: datetime | None) -> float:
        engine.update("b", l=5)
        engine.subscribe("y = 1").cancel()
        return float(len(engine.get("b").parameters)) + 1

    engine.provide("limit", limit)
    found: list[list[str]] = []
    finish(lambda: found.append(sorted(engine.match({"x": 1}, time=NOON))))
    assert found == [["a", "b"]]
    pairs: list[set[object]] = []
    finish(lambda: pairs.append(set(engine.match_batch([{"x": 1}])["subscription"].to_pylist())))
    assert pairs == [{"a", "b"}]


def test_a_provider_may_wait_for_a_thread_that_updates() -> None:
    engine = Engine()
    engine.subscribe("x < @limit", id="a")
    engine.subscribe("x < :l", id="b", l=1)
    lock, asked = threading.Lock(), threading.Event()

    def limit(_time: datetime | None) -> float:
        asked.set()
        with lock:
            return 2.0

    def update() -> None:
        with lock:
            asked.wait(HANGS_S)
            engine.update("b", l=5)

    engine.provide("limit", limit)
    finish(update, lambda: engine.match({"x": 1}))
    finish(update, lambda: engine.match_batch([{"x": 1}]))


def test_a_provider_is_called_only_if_a_filter_uses_its_variable() -> None:
    engine = Engine()
    asked: list[str] = []
    engine.provide("used", lambda _: asked.append("used") or 1.0)  # type: ignore[func-returns-value]
    engine.provide("unused", lambda _: asked.append("unused") or 1.0)  # type: ignore[func-returns-value]
    engine.subscribe("x = @used")
    engine.match({"x": 1})
    engine.match_batch([Event.of({"x": 1}, NOON), Event.of({"x": 2}, NOON)])
    assert asked == ["used", "used"]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_records_may_come_from_a_generator_that_subscribes(matcher: str) -> None:
    engine = Engine(matcher=matcher)

    def records() -> Iterator[SubscriptionRecord]:
        for number in range(3):
            engine.subscribe("x = 1", id=f"inner{number}")
            yield SubscriptionRecord(f"outer{number}", "x < 5 + t")

    finish(lambda: engine.subscribe_records(records()))
    assert len(engine) == 6


def test_a_snapshot_taken_while_subscriptions_are_added_has_none_of_them(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("x = 1", id="before")

    def records() -> Iterator[SubscriptionRecord]:
        for number in range(5_000):  # more than are staged at a time
            yield SubscriptionRecord(f"new{number}", "x = 1")
        engine.snapshot(tmp_path / "snapshot")

    engine.subscribe_records(records())
    restored = Engine.restore(tmp_path / "snapshot")
    assert len(restored) == 1
    assert restored.match({"x": 1}) == ["before"]
    assert "new0" not in restored
    restored.subscribe("x = 1", id="new0")
    assert sorted(restored.match({"x": 1})) == ["before", "new0"]


# -- changes at the same time ---------------------------------------------------------------------


def test_no_change_of_a_variable_is_lost() -> None:
    engine = Engine()

    def change(name: str) -> None:
        for value in range(200):
            engine.set_variables(**{name: value})
            assert engine.moment().variables[name] == value

    finish(*(partial(change, name) for name in "abcd"))


@pytest.mark.parametrize("matcher", MATCHERS)
def test_ids_that_are_made_are_distinct(matcher: str) -> None:
    engine = Engine(matcher=matcher)

    def subscribe() -> None:
        for _ in range(60):
            engine.subscribe("x = 1")

    def take_ids() -> None:
        for number in range(1, 60, 3):
            with suppress(SubscriptionError):
                engine.subscribe("x = 1", id=f"s{number}")

    finish(subscribe, subscribe, take_ids)
    found = engine.match({"x": 1})
    assert len(found) == len(set(found)) == len(engine) >= 120


class RemovingMatcher(NaiveMatcher):
    """A matcher in which another thread removes what was just added."""

    outer: CachedMatcher

    def add(self, subscriptions: object) -> None:
        super().add(subscriptions)  # type: ignore[arg-type]
        self.outer.remove("a")


def test_a_subscription_that_is_removed_while_it_is_added_leaves_nothing_behind() -> None:
    inner = RemovingMatcher()
    inner.outer = matcher = CachedMatcher(inner)
    matcher.add([Subscription("a", parse("x < t"), since=0, evolve=Cached(1.0))])
    assert matcher.match(Event.of({"x": 1}), Moment(10_000_000)) == []


def test_cached_subscriptions_come_and_go_while_events_are_matched() -> None:
    engine = Engine()
    engine.subscribe("x < t", id="stays", since=NOON, evolve=Cached(1.0))

    def subscribe() -> None:
        for _ in range(200):
            with suppress(SubscriptionError):
                engine.subscribe("x < 3 + t", id="a", evolve=Cached(1.0), since=NOON)

    def cancel() -> None:
        for _ in range(200):
            with suppress(SubscriptionError):
                engine.cancel("a")

    def match() -> None:
        for second in range(200):
            engine.match({"x": -1}, time=NOON.replace(second=second % 60))

    finish(subscribe, cancel, cancel, match)
    assert "stays" in engine.match({"x": -1}, time=NOON.replace(minute=5))


# -- copies and forks -----------------------------------------------------------------------------


@pytest.mark.parametrize("make_copy", [copy, deepcopy, pickle.dumps])
def test_an_engine_is_not_copied(make_copy: Callable[[Engine], object]) -> None:
    with pytest.raises(TypeError, match="neither copied nor pickled; write it to a file with snap"):
        make_copy(Engine())


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_child_that_is_forked_while_threads_use_the_engine(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    for number in range(30):
        engine.subscribe("x < :l + t", id=f"a{number}", l=number, since=NOON, evolve=Cached(0.5))
    stop = threading.Event()

    def use(id: str) -> None:
        second = 0
        while not stop.is_set():
            second = (second + 1) % 60
            engine.update(id, l=second)
            engine.set_variables(v=second)
            engine.match({"x": 20}, time=NOON.replace(second=second))

    def check() -> None:
        engine.update("a5", l=100)
        engine.set_variables(v=0)
        assert "a5" in engine.match({"x": 20}, time=NOON.replace(minute=1))
        engine.cancel("a5")
        assert "a5" not in engine.match({"x": 20}, time=NOON.replace(minute=2))

    threads = [threading.Thread(target=use, args=(f"a{each}",)) for each in range(3)]
    for thread in threads:
        thread.start()
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=check, daemon=True) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(HANGS_S)
    stop.set()
    for thread in threads:
        thread.join()
    assert [child.exitcode for child in children] == [0] * 4
