from __future__ import annotations

from collections.abc import Mapping

import pytest

from support.ticking import Clock
from tidegate.errors import BadValueError
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.filters import Filter, parse
from tidegate.matching.engine import Engine, EngineSubscription
from tidegate.subscribers.connection import Request
from tidegate.subscribers.engine_connection import EngineConnection
from tidegate.subscribers.mailbox import Delivery, Mailbox


class Nobody:
    """A subscriber that is never asked anything."""

    def __init__(self) -> None:
        self.mailbox = Mailbox("Nobody", self, 10)

    def renew(self, t: float) -> None: ...

    def handle(self, delivery: Delivery) -> None: ...

    async def handle_async(self, delivery: Delivery) -> None: ...


class CountingEngine(Engine):
    """An engine that writes down what is changed."""

    def __init__(self) -> None:
        super().__init__(clock=Clock())
        self.changes: list[Mapping[str, object]] = []

    def update(
        self, id: str, parameters: Mapping[str, object] | None = None, **more: object
    ) -> None:
        self.changes.append({**(parameters or {}), **more})
        super().update(id, parameters, **more)


def test_a_burst_of_changes_is_written_once_with_the_last_values() -> None:
    engine = CountingEngine()
    connection = EngineConnection(engine)
    asked = [Request(parse("x < :high")), Request(parse("x > :low")), Request(parse("x = 3"))]
    seat = connection.subscribe(asked, {"low": 0, "high": 0}, Nobody())
    for number in range(1000):
        seat.update({"high": number})
        seat.update({"low": -number})
    assert engine.changes == []
    connection.judge(Event.of({"x": 1}))
    assert engine.changes == [{"high": 999}, {"low": -999}]
    connection.judge(Event.of({"x": 1}))
    assert len(engine.changes) == 2
    assert connection.updates == 2000


def test_others_may_use_the_engine_too() -> None:
    engine = Engine(clock=Clock())
    own = engine.subscribe("x > 0", id="own")
    connection = EngineConnection(engine)
    seat = connection.subscribe([Request(parse("x = 1"))], {}, Nobody())
    assert len(connection.judge(Event.of({"x": 1}))) == 1
    assert connection.judge(Event.of({"x": 2})) == []
    seat.cancel()
    assert engine.match({"x": 1}) == [own.id]
    assert len(engine) == 1


def test_all_requests_are_taken_or_none() -> None:
    engine = Engine(clock=Clock())
    connection = EngineConnection(engine)
    good, bad = Request(parse("x < :high")), Request(parse("x = :low"))
    with pytest.raises(BadValueError, match=":low"):
        connection.subscribe([good, bad], {"high": 1, "low": [3]}, Nobody())  # type: ignore[dict-item]
    assert len(engine) == 0


def test_when_a_filter_evolves_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    subscribe = Engine.subscribe

    def note(engine: Engine, filter: Filter, **more: object) -> EngineSubscription:
        asked.append(more.pop("evolve", None))
        return subscribe(engine, filter, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "subscribe", note)
    connection = EngineConnection(Engine(clock=Clock()))
    still, moving = Request(parse("x = 1")), Request(parse("x > t"), Periodic(2.0))
    connection.subscribe([still, moving], {}, Nobody())
    assert asked == [None, Periodic(2.0)]


def test_variables_are_those_of_the_moment() -> None:
    engine = Engine(clock=Clock())
    engine.set_variables(load=0.5)
    connection = EngineConnection(engine)
    connection.subscribe([Request(parse("x > @load"))], {}, Nobody())
    ((_, delivery),) = connection.judge(Event.of({"x": 1}))
    engine.set_variables(load=2)
    assert delivery.seen[0].variables["load"] == 0.5
    assert connection.judge(Event.of({"x": 1})) == []


def test_without_a_clock_time_stands_still() -> None:
    connection = EngineConnection(Engine(clock=lambda: None))
    seat = connection.subscribe([Request(parse("x >= t"))], {}, Nobody())
    assert seat.t() == 0
    ((_, delivery),) = connection.judge(Event.of({"x": 0}))
    assert (delivery.seen[0].t, delivery.seen[0].now, delivery.event.time) == (0, None, None)
