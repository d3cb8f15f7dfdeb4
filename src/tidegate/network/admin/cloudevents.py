"""CloudEvents 1.0 as events: structured, binary and in batches, all as JSON.

    CloudEvent                                       event
    time                                             the publication time
    id, source, type, subject, dataschema            attributes ce_id, ce_source, ...
    an extension, such as region                     attribute ce_region
    traceparent, tracestate                          attributes of these names
    data, an object                                  its members; those of objects in it as a.b
    data, a string, number or boolean                attribute data

What cannot become an event is refused with what was wrong: lists in the data, data that is not
JSON or text, and members of the data that have the name of one of these attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from tidegate.errors import EventError, TidegateError
from tidegate.language.events import Event
from tidegate.language.values import parse_timestamp

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
REQUIRED = ("id", "source", "type")
TRACE_ATTRIBUTES = ("traceparent", "tracestate")
"""The distributed tracing extension."""
_NAME = re.compile(r"[a-z0-9]{1,64}\Z")
_NOT_ATTRIBUTES = frozenset(["specversion", "time", "datacontenttype", "data", "data_base64"])
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII
)


def structured_event(source: Mapping[str, object]) -> Event:
    """The event of a CloudEvent in the JSON format; raises EventError.

    >>> event = structured_event(
    ...     {"specversion": "1.0", "id": "7", "source": "/desk", "type": "tick",
    ...      "time": "2026-01-02T03:04:05Z", "data": {"price": 9.5}})
    >>> dict(event.attributes)
    {'ce_id': '7', 'ce_source': '/desk', 'ce_type': 'tick', 'price': 9.5}
    """
    if "data_base64" in source:
        raise EventError("`data_base64` is binary, and an event has no binary values")
    content_type = source.get("datacontenttype")
    if content_type is not None and not isinstance(content_type, str):
        raise EventError("`datacontenttype` must be a string")
    data = source.get("data")
    if data is not None and not isinstance(data, str):
        _check_json(content_type)
    return _event(source, data)


def binary_event(headers: Mapping[str, str], content_type: str | None, data: object) -> Event:
    """The event of a CloudEvent whose attributes are HTTP headers; raises EventError.

    ``headers`` have names in lower case; ``data`` is what was decoded of the body.
    """
    attributes: dict[str, object] = {}
    for header, value in headers.items():
        if header.startswith("ce-"):
            attributes[header.removeprefix("ce-")] = _decoded(header, value)
    if "datacontenttype" in attributes:
        raise EventError("the content type of the data is the header Content-Type")
    if "data" in attributes or "data_base64" in attributes:
        raise EventError("`data` is the body, not a header")
    return _event({**attributes, "datacontenttype": content_type}, data)


def is_json(content_type: str | None) -> bool:
    """Whether a media type is one of JSON.

    >>> [is_json(each) for each in ("application/json", "application/vnd.x+json", "text/plain")]
    [True, True, False]
    """
    bare = (content_type or "application/json").partition(";")[0].strip().lower()
    return bare.endswith(("/json", "+json"))


def _check_json(content_type: str | None) -> None:
    if not is_json(content_type):
        raise EventError(
            f"the data is {content_type!r}; an event takes JSON, or text as one string"
        )


def _decoded(header: str, value: str) -> str:
    """The value of a header, whose characters beyond ASCII are percent-encoded."""
    try:
        return unquote(value.strip('"'), errors="strict")
    except UnicodeDecodeError:
        raise EventError(f"the header {header!r} is not UTF-8") from None


def _event(source: Mapping[str, object], data: object) -> Event:
    version = source.get("specversion")
    if version != "1.0":
        wrong = "is missing" if version is None else f"is {version!r}"
        raise EventError(f"`specversion` {wrong}; CloudEvents 1.0 are taken")
    for name in REQUIRED:
        value = source.get(name)
        if not isinstance(value, str) or not value:
            raise EventError(f"`{name}` must be a string that is not empty")
    attributes: dict[str, Any] = {}
    for name, value in source.items():
        if name in _NOT_ATTRIBUTES or value is None:
            continue
        if not _NAME.match(name):
            raise EventError(
                f"{name!r} is no name of a CloudEvents attribute, which has lower-case letters and "
                "digits only"
            )
        if isinstance(value, dict | list):
            raise EventError(f"`{name}` must be a string, a number or a boolean")
        attributes[name if name in TRACE_ATTRIBUTES else f"ce_{name}"] = value
    if isinstance(data, dict):
        members = Event.of(data).attributes
        twice = next((name for name in members if name in attributes), None)
        if twice is not None:
            raise EventError(f"data: {twice!r} is the name of a CloudEvents attribute here")
        attributes |= members
    elif data is not None:
        attributes["data"] = data
    try:
        checked = Event.of(attributes).attributes
    except TidegateError as error:
        raise EventError(str(error)) from None
    return Event(checked, _time(source.get("time")))


def _time(value: object) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _DATE_TIME.match(value):
        raise EventError(f"`time` must be a timestamp as 2026-01-02T03:04:05Z, not {value!r:.100}")
    try:
        return parse_timestamp(value.upper())
    except TidegateError as error:
        raise EventError(f"`time`: {error}") from None
