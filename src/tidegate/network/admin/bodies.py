"""The events in the body of an HTTP request: JSON, JSON Lines, or CloudEvents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidegate.errors import BadValueError, EventError, HttpRequestError, TidegateError
from tidegate.language.events import Event
from tidegate.matching.json_lines import non_blank_lines
from tidegate.matching.records import decode_json
from tidegate.network.admin.cloudevents import (
    BATCH,
    STRUCTURED,
    binary_event,
    is_json,
    structured_event,
)

T = TypeVar("T")
_KINDS = {dict: "JSON object", str: "string", bool: "boolean"}

JSON_LINES = ("application/x-ndjson", "application/jsonl")
TAKEN = f"application/json, {', '.join(JSON_LINES)}, {STRUCTURED}, {BATCH}"


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """The event that is to be traced, as whose, and whether it is published too."""

    event: Event
    identity: str
    space: str | None
    publish: bool


def trace_request(body: bytes, identity: str) -> TraceRequest:
    """The body of a request for a trace; ``identity`` is that of the admin port itself.

    >>> trace_request(b'{"event": {"x": 1}, "identity": "feed"}', "http").identity
    'feed'
    """
    asked = _decoded(body)
    known = {"event": dict, "identity": str, "space": str, "publish": bool}
    if not isinstance(asked, dict) or "event" not in asked:
        raise HttpRequestError(400, "a trace is asked for with an object that has an `event`")
    for name, value in asked.items():
        kind = known.get(name)
        if kind is None:
            raise HttpRequestError(400, f"there is no {name!r:.100}; there are {', '.join(known)}")
        if type(value) is not kind:
            raise HttpRequestError(400, f"`{name}` is no {_KINDS[kind]}")
    publish, who = asked.get("publish", False), asked.get("identity", identity)
    if publish and who != identity:
        raise HttpRequestError(400, f"an event that is published is one of {identity!r}")
    [event] = _checked([asked["event"]], Event.of)
    return TraceRequest(event, who, asked.get("space"), publish)


def events_of(headers: Mapping[str, str], body: bytes, events_max: int) -> list[Event]:
    """The events of a request; raises HttpRequestError with what is wrong of each.

    ``headers`` have names in lower case.

    >>> events_of({"content-type": "application/json"}, b'{"price": 9.5}', 10)
    [Event(attributes={'price': 9.5}, time=None)]
    """
    content_type = headers.get("content-type")
    bare = (content_type or "").partition(";")[0].strip().lower()
    _check_charset(content_type)
    if "ce-specversion" in headers or "ce-id" in headers:
        if bare in (STRUCTURED, BATCH):
            raise HttpRequestError(400, f"{bare} has its attributes in the body, not as headers")
        return _checked([body], lambda data: binary_event(headers, content_type, _data(bare, data)))
    if bare == STRUCTURED:
        return _checked([_decoded(body)], lambda each: structured_event(_object(each)))
    if bare == BATCH:
        events = _decoded(body)
        if not isinstance(events, list):
            raise HttpRequestError(400, "a batch of CloudEvents is a JSON array")
        return _checked(_few(events, events_max), lambda each: structured_event(_object(each)))
    if bare in JSON_LINES:
        lines = [line for _, line in non_blank_lines(body.split(b"\n"))]
        return _checked(_few(lines, events_max), lambda line: Event.of(_object(_decoded(line))))
    if bare == "application/json":
        decoded = _decoded(body)
        events = decoded if isinstance(decoded, list) else [decoded]
        return _checked(_few(events, events_max), lambda each: Event.of(_object(each)))
    raise HttpRequestError(415, f"the content type is {content_type!r}; taken are {TAKEN}")


def _check_charset(content_type: str | None) -> None:
    parameters = (content_type or "").lower().partition(";")[2]
    name, _, value = parameters.strip().partition("=")
    if name == "charset" and value.strip('"') not in ("utf-8", "us-ascii", "utf8"):
        raise HttpRequestError(415, f"the charset is {value!r}; UTF-8 is taken")


def _few(events: Sequence[T], events_max: int) -> Sequence[T]:
    if len(events) > events_max:
        raise HttpRequestError(
            413, f"{len(events):,} events in one request; at most {events_max:,} are taken"
        )
    return events


def _data(content_type: str, body: bytes) -> object:
    """The data of a CloudEvent in binary mode."""
    if not body:
        return None
    if is_json(content_type):
        return _decoded(body)
    if content_type.startswith("text/"):
        return _text(body)
    raise HttpRequestError(
        415, f"the data is {content_type!r}; an event takes JSON, or text as one string"
    )


def _decoded(body: bytes) -> object:
    try:
        return decode_json(_text(body))
    except BadValueError as error:
        raise HttpRequestError(400, f"the body: {error}") from None


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise HttpRequestError(400, "the body is not UTF-8") from None


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise EventError(f"an event is a JSON object, not {json.dumps(value)[:100]}")
    return value


def _checked(sources: Sequence[T], event_of: Callable[[T], Event]) -> list[Event]:
    """The events of all sources, or an error that names each that is wrong."""
    events, errors = [], []
    for index, source in enumerate(sources):
        try:
            events.append(event_of(source))
        except HttpRequestError as error:
            if error.status != 400 or len(sources) == 1:
                raise
            errors.append((index, error.detail))
        except TidegateError as error:
            errors.append((index, str(error)))
    if errors:
        count = len(errors)
        raise HttpRequestError(
            422,
            errors[0][1]
            if len(sources) == 1
            else f"{count} of {len(sources)} events are wrong; none was published",
            errors[:100],
        )
    return events
