"""Engines under stress: threads that change and match, providers that call back, snapshots, forks.

Threads take turns as often as possible, and parts of the index are so small that they are built
anew all the time. Each thread has subscriptions of its own and an oracle of them, so it knows at
any moment which of them an event matches, whatever the others do. Beside these, all threads add and
cancel `Cached` subscriptions under the same few ids, where only errors would show.

`make hunt` runs it with other seeds.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.small_parts import small_matcher
from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import Value, to_us
from tidegate.matching import registry
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.engine import Engine
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.registry import MatcherEntry
from tidegate.matching.subscription import Moment, Subscription

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HANGS_S = 120.0
"""Far more than a run takes."""
THREADS, STEPS, OWN_IDS, SHARED_IDS = 4, 120, 24, 3
LIMIT = 5.0

FILTERS = (
    "x < :a",
    "s = :n and x >= :a",
    "s contains :n",
    "x > :a + t and x < :b + t",
    "x < :a or s in (:n, 'z')",
    "x < @limit + :a",
    "s like :n and y != :a",
)


def random_values(rng: Random) -> dict[str, float | str]:
    return {"a": rng.randrange(10) / 2, "b": rng.randrange(20) / 2, "n": rng.choice("abcdez%")}


def random_event(rng: Random) -> dict[str, Value]:
    return {"x": rng.randrange(12) / 2, "y": rng.randrange(4), "s": rng.choice(["a", "bad", "zz"])}


class Worker:
    """A thread's own subscriptions, and all that it does with an engine."""

    def __init__(self, engine: Engine, seed: int, folder: Path | None) -> None:
        self._engine = engine
        self._rng = Random(seed)
        self._name = f"w{seed % THREADS}"
        self._folder = folder
        self._second = 0.0
        self.own = NaiveMatcher()
        self.error: Exception | None = None

    def run(self) -> None:
        steps = [self.subscribe, self.subscribe, self.update, self.update, self.cancel]
        steps += [self.match, self.match, self.match_batch, self.explain, self.share, self.share]
        try:
            for step in range(STEPS):
                self._rng.choice(steps)()
                if step == STEPS // 2 and self._folder is not None:
                    self.restore(self._folder / self._name)
        except Exception as error:  # noqa: BLE001 (the test fails with it)
            self.error = error

    def subscribe(self) -> None:
        id = f"{self._name}.{self._rng.randrange(OWN_IDS)}"
        if id in self.own:
            return
        filter, values = parse(self._rng.choice(FILTERS)), random_values(self._rng)
        kept = {name: values[name] for name in filter.parameters}
        self._engine.subscribe(filter, id=id, since=NOON, parameters=kept)
        self.own.add([Subscription(id, filter, kept, to_us(NOON))])

    def _some_id(self) -> str | None:
        ids = [f"{self._name}.{each}" for each in range(OWN_IDS)]
        known = [each for each in ids if each in self.own]
        return self._rng.choice(known) if known else None

    def update(self) -> None:
        id = self._some_id()
        if id is not None:
            names = self.own.get(id).filter.parameters
            values = {name: random_values(self._rng)[name] for name in names[:1]}
            self._engine.update(id, values)
            self.own.update(id, values)

    def cancel(self) -> None:
        id = self._some_id()
        if id is not None:
            self._engine.cancel(id)
            self.own.remove(id)

    def share(self) -> None:
        """Add, update or cancel under an id that all threads use."""
        id = f"shared{self._rng.randrange(SHARED_IDS)}"
        with suppress(SubscriptionError):
            match self._rng.randrange(3):
                case 0:
                    evolve = Cached(0.02) if self._rng.random() < 0.5 else Periodic(0.01)
                    self._engine.subscribe("x < :a + t", id=id, a=1, since=NOON, evolve=evolve)
                case 1:
                    self._engine.update(id, a=self._rng.random())
                case _:
                    self._engine.cancel(id)
        self._engine.set_variables(**{self._name: self._rng.random()})

    def match(self) -> None:
        event, time = random_event(self._rng), self._time()
        self.compare(self._engine.match(event, time=time), event, time)

    def match_batch(self) -> None:
        events = [random_event(self._rng) for _ in range(5)]
        times = [self._time() for _ in events]
        table = pa.Table.from_pylist(events).append_column("at", pa.array(times))
        found = self._engine.match_batch(table, event_time="at").to_pylist()
        for number, (event, time) in enumerate(zip(events, times, strict=True)):
            matching = [each["subscription"] for each in found if each["event"] == number]
            self.compare(matching, {**event, "at": time}, time)

    def explain(self) -> None:
        id = self._some_id()
        if id is not None:
            event, time = random_event(self._rng), self._time()
            explained = self._engine.explain(id, event, time=time)
            assert explained.matches == (id in self.own.match(Event.of(event), _moment(time)))

    def restore(self, path: Path) -> None:
        self._engine.snapshot(path)
        restored = Engine.restore(path)
        restored.provide("limit", lambda _: LIMIT)
        event, time = random_event(self._rng), self._time()
        self.compare(restored.match(event, time=time), event, time)

    def compare(self, found: list[str], event: dict[str, Value], time: datetime) -> None:
        mine = sorted(each for each in found if each.startswith(self._name))
        assert mine == sorted(self.own.match(Event.of(event), _moment(time)))

    def _time(self) -> datetime:
        self._second += self._rng.random() / 50
        return NOON + timedelta(seconds=self._second)


def _moment(time: datetime) -> Moment:
    return Moment(to_us(time), {"limit": LIMIT})


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def make_small(matcher: str) -> MatcherEntry:
    sizes = IndexSizes(open_entries_max=4, at_once_entries_max=8, piece_entries=4)
    if matcher == "columnar":
        return MatcherEntry(lambda: ColumnarMatcher(sizes=sizes), parses_in_bulk=True)
    made = small_matcher(matcher)  # before the registry has this entry, as it may be asked for it
    return MatcherEntry(lambda: made)


def check_in_child(engine: Engine) -> None:
    """A forked child goes on with an engine of its own."""
    engine.update("stays", a=100)
    assert "stays" in engine.match({"x": 50}, time=NOON)
    engine.cancel("stays")
    assert "stays" not in engine.match({"x": 50}, time=NOON)


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("matcher", ["columnar", "naive", "poset", "rete", "summary", "tree"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=2)
def test_threads_with_oracles_of_their_own(matcher: str, seed: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(registry.MATCHERS, {matcher: make_small(matcher)}),
        switching_often(),
    ):
        engine = Engine(matcher=matcher)
        for id in ("stays", "follows"):
            engine.subscribe("x < :a", id=id, a=1, since=NOON)

        def limit(_: datetime | None) -> float:
            engine.update("follows", a=LIMIT)  # a provider may call the engine
            return LIMIT

        engine.provide("limit", limit)
        for_snapshots = Path(folder) if matcher == "columnar" else None
        workers = [Worker(engine, THREADS * seed + each, for_snapshots) for each in range(THREADS)]
        workers[0].run()  # alone, as kernels may be compiled, which takes long
        threads = [threading.Thread(target=each.run, daemon=True) for each in workers]
        for thread in threads:
            thread.start()
        fork = multiprocessing.get_context("fork")
        child = fork.Process(target=check_in_child, args=(engine,), daemon=True)
        child.start()
        for thread in threads:
            thread.join(HANGS_S)
        child.join(HANGS_S)
        assert not any(thread.is_alive() for thread in threads), "a call hangs"
        assert child.exitcode == 0
        for worker in workers:
            if worker.error is not None:
                raise worker.error
            for _ in range(5):
                worker.match()
        kept = sum(len(each.own) for each in workers)
        shared = sum(f"shared{each}" in engine for each in range(SHARED_IDS))
        assert len(engine) == kept + shared + 2
