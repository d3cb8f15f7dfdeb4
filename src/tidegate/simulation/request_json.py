"""Requests of clients as JSON objects, in traces and in scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.errors import BadValueError, SimulationError
from tidegate.language.events import Event
from tidegate.language.evolve import parse_evolve
from tidegate.language.json_values import value_from_json, values_to_json
from tidegate.language.values import from_us, to_us
from tidegate.routing import messages as m
from tidegate.routing.messages import Message

_InSpace = m.Subscribe | m.Unsubscribe | m.Advertise | m.Unadvertise | m.Publish
"""The requests that may name a space."""

Record = Mapping[str, Any]
"""A decoded JSON object."""


def request_to_json(message: Message) -> Record:
    """The JSON object of a request; raises SimulationError if clients do not send such messages.

    >>> request_to_json(m.Subscribe("price < 10"))
    {'do': 'subscribe', 'filter': 'price < 10'}
    """
    if isinstance(message, _InSpace) and message.space is not None:
        return {**request_to_json(replace(message, space=None)), "space": message.space}
    match message:
        case m.Publish(event):
            time_us = None if event.time is None else to_us(event.time)
            attributes = values_to_json(event.attributes)
            return {"do": "publish", "event": attributes, "time_us": time_us}
        case m.Subscribe(wanted, name=None):
            return {"do": "subscribe", "filter": str(wanted)}
        case m.Subscribe():
            return {"do": "subscribe", "filter": str(message.wanted), **_named_to_json(message)}
        case m.Update(name, version, parameters, filter, confirm):
            text = None if filter is None else str(filter)
            return {"do": "update", "name": name, "version": version, "confirm": confirm,
                    "params": values_to_json(parameters), "filter": text}  # fmt: skip
        case m.Cancel(name):
            return {"do": "cancel", "name": name}
        case m.Unsubscribe(wanted):
            return {"do": "unsubscribe", "filter": str(wanted)}
        case m.Advertise(offered):
            return {"do": "advertise", "filter": str(offered)}
        case m.Unadvertise(offered):
            return {"do": "unadvertise", "filter": str(offered)}
        case m.Suspend():
            return {"do": "suspend"}
        case m.Resume(home, moves):
            return {"do": "resume", "home": home, "moves": moves}
        case m.Depart():
            return {"do": "depart"}
    raise SimulationError(f"a trace cannot hold the request {type(message).__name__}")


def request_from_json(record: Record) -> Message:
    """The request of a JSON object; raises SimulationError if its ``do`` is unknown."""
    if "space" in record:
        request = request_from_json({k: each for k, each in record.items() if k != "space"})
        return replace(request, space=record["space"]) if isinstance(request, _InSpace) else request
    match record["do"]:
        case "publish":
            time_us = record["time_us"]
            time = None if time_us is None else from_us(time_us)
            return m.Publish(Event.of(_values(record["event"]), time))
        case "subscribe" if "name" not in record:
            return m.Subscribe(record["filter"])
        case "subscribe":
            return _named_from_json(record)
        case "update":
            return m.Update(
                record["name"], record["version"], _values(record["params"]), record["filter"],
                record["confirm"],
            )  # fmt: skip
        case "cancel":
            return m.Cancel(record["name"])
        case "unsubscribe":
            return m.Unsubscribe(record["filter"])
        case "advertise":
            return m.Advertise(record["filter"])
        case "unadvertise":
            return m.Unadvertise(record["filter"])
        case "suspend":
            return m.Suspend()
        case "resume":
            return m.Resume(record.get("home"), record.get("moves", 0))
        case "depart":
            return m.Depart()
    raise SimulationError(f"there is no request {record['do']!r}")


def _named_to_json(message: m.Subscribe) -> Record:
    return {
        "name": message.name,
        "params": values_to_json(message.parameters),
        "evolve": None if message.evolve is None else str(message.evolve),
        "version": message.version,
        "origin_us": message.origin_us,
        "confirm": message.confirm,
    }


def _named_from_json(record: Record) -> Message:
    evolve = record["evolve"]
    return m.Subscribe(
        record["filter"],
        record["name"],
        _values(record["params"]),
        None if evolve is None else parse_evolve(evolve),
        record["version"],
        record["origin_us"],
        record["confirm"],
    )


def _values(decoded: Any) -> Any:
    """Values by name; whatever is none is left for the message to check.

    Users write events of scripts, which may be nested. `Event.of` flattens those.
    """
    if not isinstance(decoded, dict):
        return decoded
    return {name: _value(each) for name, each in decoded.items()}


def _value(decoded: Any) -> Any:
    if not isinstance(decoded, dict):
        return decoded
    try:
        return value_from_json(decoded)
    except BadValueError:
        return decoded
