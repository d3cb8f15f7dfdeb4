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


class NullEnd:
    """A subscriber that handles and sends nothing."""

    def __init__(self) -> None:
        self.mailbox = Mailbox("NullEnd", self, 10)

    def renew(self, t: float) -> None: ...

    def handle(self, delivery: Delivery) -> None: ...

    async def handle_async(self, delivery: Delivery) -> None: ...


class CountingEngine(Engine):
    """An engine that records the updates of its subscriptions."""

    def __init__(self) -> None:
        super().__init__(clock=Clock())
        self.updates: list[Mapping[str, object]] = []

    def update(
        self, id: str, parameters: Mapping[str, object] | None = None, **more: object
    ) -> None:
        self.updates.append({**(parameters or {}), **more})
        super().update(id, parameters, **more)


def test_a_burst_of_updates_is_written_once_with_the_last_values() -> None:
    engine = CountingEngine()
    connection = EngineConnection(engine)
    requests = [Request(parse("x < :high")), Request(parse("x > :low")), Request(parse("x = 3"))]
    handle = connection.subscribe(requests, {"low": 0, "high": 0}, NullEnd())
    for number in range(1000):
        handle.update({"high": number})
        handle.update({"low": -number})
    assert engine.updates == []
    connection.match(Event.of({"x": 1}))
    assert engine.updates == [{"high": 999}, {"low": -999}]
    connection.match(Event.of({"x": 1}))
    assert len(engine.updates) == 2
    assert connection.updates == 2000


def test_others_may_use_the_engine_too() -> None:
    engine = Engine(clock=Clock())
    own = engine.subscribe("x > 0", id="own")
    connection = EngineConnection(engine)
    handle = connection.subscribe([Request(parse("x = 1"))], {}, NullEnd())
    assert len(connection.match(Event.of({"x": 1}))) == 1
    assert connection.match(Event.of({"x": 2})) == []
    handle.cancel()
    assert engine.match({"x": 1}) == [own.id]
    assert len(engine) == 1


def test_all_requests_are_taken_or_none() -> None:
    engine = Engine(clock=Clock())
    connection = EngineConnection(engine)
    good, bad = Request(parse("x < :high")), Request(parse("x = :low"))
    with pytest.raises(BadValueError, match=":low"):
        connection.subscribe([good, bad], {"high": 1, "low": [3]}, NullEnd())  # type: ignore[dict-item]
    assert len(engine) == 0


def test_the_evolve_mode_is_handed_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[object] = []
    subscribe = Engine.subscribe

    def recording(engine: Engine, filter: Filter, **more: object) -> EngineSubscription:
        modes.append(more.pop("evolve", None))
        return subscribe(engine, filter, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "subscribe", recording)
    connection = EngineConnection(Engine(clock=Clock()))
    static, evolving = Request(parse("x = 1")), Request(parse("x > t"), Periodic(2.0))
    connection.subscribe([static, evolving], {}, NullEnd())
    assert modes == [None, Periodic(2.0)]


def test_variables_are_those_of_the_moment() -> None:
    engine = Engine(clock=Clock())
    engine.set_variables(load=0.5)
    connection = EngineConnection(engine)
    connection.subscribe([Request(parse("x > @load"))], {}, NullEnd())
    ((_, delivery),) = connection.match(Event.of({"x": 1}))
    engine.set_variables(load=2)
    assert delivery.environments[0].variables["load"] == 0.5
    assert connection.match(Event.of({"x": 1})) == []


def test_without_a_clock_time_stands_still() -> None:
    connection = EngineConnection(Engine(clock=lambda: None))
    handle = connection.subscribe([Request(parse("x >= t"))], {}, NullEnd())
    assert handle.t() == 0
    ((_, delivery),) = connection.match(Event.of({"x": 0}))
    assert (delivery.environments[0].t, delivery.environments[0].now, delivery.event.time) == (
        0,
        None,
        None,
    )
