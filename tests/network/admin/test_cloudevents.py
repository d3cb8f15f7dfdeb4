"""CloudEvents become events; the examples are those of the specification, 1.0.2."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tidegate.errors import EventError
from tidegate.network.admin.cloudevents import binary_event, structured_event

EXAMPLE = {
    "specversion": "1.0",
    "type": "com.example.someevent",
    "source": "/mycontext",
    "subject": None,
    "id": "C234-1234-1234",
    "time": "2018-04-05T17:31:00Z",
    "comexampleextension1": "value",
    "comexampleothervalue": 5,
    "datacontenttype": "application/json",
    "data": {"appinfoA": "abc", "appinfoB": 123, "appinfoC": True},
}


def test_structured_event_of_the_specification() -> None:
    event = structured_event(EXAMPLE)
    assert event.time == datetime(2018, 4, 5, 17, 31, tzinfo=UTC)
    assert event.attributes == {
        "ce_type": "com.example.someevent",
        "ce_source": "/mycontext",
        "ce_id": "C234-1234-1234",
        "ce_comexampleextension1": "value",
        "ce_comexampleothervalue": 5,
        "appinfoA": "abc",
        "appinfoB": 123,
        "appinfoC": True,
    }


def test_binary_event_of_the_specification() -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-type": "com.example.someevent",
        "ce-time": "2018-04-05T03:56:24Z",
        "ce-id": "1234-1234-1234",
        "ce-source": "/mycontext/subcontext",
        "ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80",
        "host": "example.org",
    }
    event = binary_event(headers, "application/json; charset=utf-8", {"price": {"usd": 9.5}})
    assert event.time == datetime(2018, 4, 5, 3, 56, 24, tzinfo=UTC)
    assert event.attributes == {
        "ce_type": "com.example.someevent",
        "ce_id": "1234-1234-1234",
        "ce_source": "/mycontext/subcontext",
        "ce_subject": "Euro € 😀",
        "price.usd": 9.5,
    }


def test_trace_context_keeps_its_names() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    event = structured_event({**EXAMPLE, "traceparent": parent, "tracestate": "a=b"})
    assert (event["traceparent"], event["tracestate"]) == (parent, "a=b")


@pytest.mark.parametrize("data", ["text", 5, True])
def test_data_that_is_no_object_is_one_attribute(data: object) -> None:
    assert structured_event({**EXAMPLE, "data": data})["data"] == data


def test_without_data_and_time() -> None:
    event = structured_event({"specversion": "1.0", "id": "1", "source": "s", "type": "t"})
    assert event.time is None
    assert set(event) == {"ce_id", "ce_source", "ce_type"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"specversion": "0.3"}, "`specversion` is '0.3'"),
        ({"specversion": None}, "`specversion` is missing"),
        ({"id": ""}, "`id` must be a string that is not empty"),
        ({"source": 7}, "`source` must be a string"),
        ({"time": "yesterday"}, "`time` must be a timestamp"),
        ({"time": "2018-13-05T17:31:00Z"}, "`time`"),
        ({"time": "2018-04-05"}, "`time` must be a timestamp"),
        ({"data_base64": "AQI="}, "binary"),
        ({"datacontenttype": "application/xml", "data": {}}, "application/xml"),
        ({"datacontenttype": 3}, "`datacontenttype` must be a string"),
        ({"Bad-Name": "x"}, "'Bad-Name' is no name"),
        ({"ext": {"a": 1}}, "`ext` must be a string, a number or a boolean"),
        ({"data": {"a": [1]}}, "attribute 'a': a list is not a value"),
        ({"data": [1]}, "attribute 'data': a list is not a value"),
        ({"data": {"ce_id": 1}}, "'ce_id' is the name of a CloudEvents attribute"),
    ],
)
def test_wrong_events_say_what_is_wrong(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        structured_event({**EXAMPLE, **changes})


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"ce-datacontenttype": "text/plain"}, "is the header Content-Type"),
        ({"ce-data": "x"}, "`data` is the body"),
        ({"ce-subject": "%ff"}, "'ce-subject' is not UTF-8"),
        ({"ce-x_y": "x"}, "'x_y' is no name"),
    ],
)
def test_wrong_headers_say_what_is_wrong(headers: dict[str, str], reason: str) -> None:
    required = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"}
    with pytest.raises(EventError, match=reason):
        binary_event({**required, **headers}, "application/json", None)
