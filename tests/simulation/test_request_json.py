from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tidegate.errors import SimulationError
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.values import Value
from tidegate.routing import messages as m
from tidegate.simulation.request_json import request_from_json, request_to_json


def test_requests_are_read_as_they_were_written() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    values: dict[str, Value] = {"n": 1.5, "s": "a'b", "at": at, "yes": True, "many": 2**60}
    requests: list[m.Message] = [
        m.Subscribe(
            "x < :n + t and s = :s", "one", {"n": 1.5, "s": "a"}, Periodic(0.5), 3, 7, True
        ),
        m.Subscribe("x = :n and s = :s and d < :at and y = :yes and z = :many", "two", values),
        m.Subscribe("x < 1", "three"),
        m.Subscribe("d < timestamp '2026-01-02T03:04:05Z'"),
        m.Update("one", 4, {"n": None}),
        m.Update("two", 5, {"at": at}, "x = :n and d >= :at", confirm=True),
        m.Cancel("one"),
        m.Publish(Event.of({"d": at, "x": 1}, at)),
        m.Advertise("x = 1"),
        m.Unadvertise("x = 1"),
        m.Unsubscribe("x = 1"),
        m.Suspend(),
        m.Resume("b1", 2),
        m.Depart(),
        m.Subscribe("x = 1", space="trades"),
        m.Subscribe("x < 1", "four", space="trades"),
        m.Publish(Event.of({"x": 1}), "trades"),
        m.Advertise("x = 1", "trades"),
        m.Unadvertise("x = 1", "trades"),
        m.Unsubscribe("x = 1", "trades"),
    ]
    for request in requests:
        text = json.dumps(request_to_json(request))
        assert request_from_json(json.loads(text)) == request


def test_nested_objects_of_an_event_are_flattened() -> None:
    record = {"do": "publish", "event": {"at": {"x": 1, "us": 5}, "time": {"us": 5}}}
    request = request_from_json({**record, "time_us": None})
    assert isinstance(request, m.Publish)
    time = datetime(1970, 1, 1, microsecond=5, tzinfo=UTC)
    assert request.event.attributes == {"at.x": 1, "at.us": 5, "time": time}


def test_a_message_that_is_no_request_is_refused() -> None:
    with pytest.raises(SimulationError, match="a trace cannot hold the request Disconnect"):
        request_to_json(m.Disconnect())


def test_an_unknown_request_is_refused() -> None:
    with pytest.raises(SimulationError, match="there is no request 'sing'"):
        request_from_json({"do": "sing"})
