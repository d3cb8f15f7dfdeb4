"""Running a matcher so that all its kernels are compiled, which they then stay on disk.

Kernels are compiled when they are first needed. What is here needs them: subscriptions of all
workloads, of strings, lists and disjunctions, one by one and many; events one by one and in
batches; updates, cancellations, time that passes; versions of the past; and a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from numba.core import event

from tidegate import Engine
from tidegate.experiments.workloads import SINCE, WORKLOADS
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import Succession, Version, VersionDelta

SUBSCRIPTIONS = 3_000
"""More than the open part of an index takes, so that a part is laid out."""
EVENTS = 300

_FILTERS = [
    "s like 'a%' and x > :p",
    "s contains 'b' or x between 1 and :p",
    "s in ('a', 'b', 'c') and not x = :p",
    "s < 'm' and s >= :q",
    "x = :p and flag = true",
    "x > -3 + t and x < :p + sin(t)",
    "x > @load * :p",
    "at > timestamp '2026-01-01T00:00:00Z' and at < now()",
    "n > 9007199254740993",
]


class _Compiled(event.Listener):
    """Counts the functions that are compiled, not those that are loaded from disk."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, event: event.Event) -> None:  # noqa: ARG002 - Numba's signature
        self.count += 1

    def on_end(self, event: event.Event) -> None:
        """Called when a function is compiled."""


@dataclass(slots=True)
class Warmed:
    """The number of functions that were compiled."""

    compiled: int = 0


@contextmanager
def counted_compilations() -> Iterator[Warmed]:
    """Count what is compiled in a block."""
    listener, warmed = _Compiled(), Warmed()
    with event.install_listener("numba:compile", listener):
        try:
            yield warmed
        finally:
            warmed.compiled = listener.count


def warm(matcher: str) -> Iterator[str]:
    """Run one of the compiled matchers; yields what is done next."""
    for name, workload in WORKLOADS.items():
        yield f"{matcher}: {name}"
        engine = Engine(matcher=matcher, clock=lambda: SINCE)
        engine.subscribe_batch(workload.subscriptions(SUBSCRIPTIONS))
        engine.match_batch(workload.events(EVENTS))
    yield f"{matcher}: strings, lists and functions"
    _run_single(matcher)
    if matcher == "columnar":
        yield "versions of the past"
        _run_versions()


def _run_single(matcher: str) -> None:
    engine = Engine(matcher=matcher, clock=lambda: SINCE)
    engine.set_variables(load=0.5)
    for number in range(3):
        for index, filter in enumerate(_FILTERS):
            values = {name: 5 if name == "p" else "b" for name in "pq" if f":{name}" in filter}
            engine.subscribe(filter, id=f"{index}-{number}", parameters=values)
    attributes = {"s": "ab", "x": 2.5, "flag": True, "at": SINCE, "n": 2**60}
    for seconds in range(3):
        engine.match(attributes, time=SINCE + timedelta(hours=seconds))
        for index, filter in enumerate(_FILTERS):
            if ":p" in filter:
                engine.update(f"{index}-0", p=seconds)
    for index in range(len(_FILTERS)):
        engine.cancel(f"{index}-1")
    engine.match(attributes)
    if matcher == "columnar":
        with TemporaryDirectory() as folder:
            engine.snapshot(Path(folder) / "snapshot")
            Engine.restore(Path(folder) / "snapshot").match(attributes)


def _run_versions() -> None:
    later = SINCE + timedelta(hours=1)
    versions = [
        Version(str(n), "x > :p and y > t", {"p": n}, since=SINCE, until=later if n % 2 else None)
        for n in range(SUBSCRIPTIONS)
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "versions"
        AsOfMatcher(versions).save(path)
        matcher = AsOfMatcher.load(path)
        matcher.apply(VersionDelta([], [Succession("2", later, {"p": 3})], []))
        events = EventBatch.of(pa.table({"x": [1.0, 2.0], "y": [1.0, 1.0]}))
        matcher.match(events.at(later))
