from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import HttpRequestError
from tidegate.network.admin.bodies import events_of

CLOUD_EVENT = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
BINARY = {f"ce-{name}": value for name, value in CLOUD_EVENT.items()}


def attributes(content_type: str, body: object, **headers: str) -> list[dict[str, object]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    events = events_of({"content-type": content_type, **headers}, data, 10)
    return [dict(each.attributes) for each in events]


def test_plain_events() -> None:
    assert attributes("application/json", {"a": {"b": 1}}) == [{"a.b": 1}]
    assert attributes("application/json; charset=utf-8", [{"a": 1}, {}]) == [{"a": 1}, {}]
    assert attributes("application/x-ndjson", b'{"a": 1}\n\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]


def test_all_modes_of_cloud_events_are_the_same_event() -> None:
    expected = {"ce_id": "1", "ce_source": "s", "ce_type": "t", "x": 1}
    structured = {**CLOUD_EVENT, "data": {"x": 1}}
    assert attributes("application/cloudevents+json", structured) == [expected]
    assert attributes("application/cloudevents-batch+json", [structured] * 2) == [expected] * 2
    assert attributes("application/json", {"x": 1}, **BINARY) == [expected]


def test_text_is_one_attribute() -> None:
    assert attributes("text/plain", "größer".encode(), **BINARY)[0]["data"] == "größer"
    assert "data" not in attributes("text/plain", b"", **BINARY)[0]


@pytest.mark.parametrize(
    ("content_type", "body", "status", "reason"),
    [
        ("text/html", b"<p>", 415, "taken are application/json"),
        ("", b"{}", 415, "taken are"),
        ("application/json; charset=latin-1", b"{}", 415, "UTF-8 is taken"),
        ("application/json", b"{", 400, "not valid JSON"),
        ("application/json", b'{"a": 1, "a": 2}', 400, "occurs twice"),
        ("application/json", b'"\xff"', 400, "not UTF-8"),
        ("application/json", b"[" * 100_000, 400, "nested too deeply"),
        ("application/json", b"5", 422, "an event is a JSON object, not 5"),
        ("application/json", b"[{}, 5, {}]", 422, "1 of 3 events are wrong; none was published"),
        ("application/json", json.dumps([{}] * 11).encode(), 413, "at most 10"),
        ("application/cloudevents-batch+json", b"{}", 400, "is a JSON array"),
        ("application/cloudevents+json", b"[]", 422, "an event is a JSON object"),
    ],
)
def test_wrong_bodies(content_type: str, body: bytes, status: int, reason: str) -> None:
    with pytest.raises(HttpRequestError, match=reason) as caught:
        attributes(content_type, body)
    assert caught.value.status == status


def test_wrong_bodies_of_binary_events() -> None:
    with pytest.raises(HttpRequestError, match="not as headers"):
        attributes("application/cloudevents+json", {}, **BINARY)
    with pytest.raises(HttpRequestError, match="'image/png'"):
        attributes("image/png", b"PNG", **BINARY)


def test_errors_name_each_event() -> None:
    with pytest.raises(HttpRequestError) as caught:
        attributes("application/x-ndjson", b'{"a": 1}\n{"a": [1]}\n{"a"')
    assert [index for index, _ in caught.value.errors] == [1, 2]


@given(
    st.sampled_from(
        ["application/json", "application/x-ndjson", "application/cloudevents+json",
         "application/cloudevents-batch+json", "text/plain", "image/png", "json;charset", ""]
    ),
    st.binary(max_size=60) | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each),
    ).map(lambda each: json.dumps(each).encode()),
    st.dictionaries(st.sampled_from(sorted(BINARY)), st.text(max_size=5)),
)  # fmt: skip
def test_any_body_is_taken_or_refused(
    content_type: str, body: bytes, headers: dict[str, str]
) -> None:
    status, found = 200, 0
    try:
        found = len(events_of({"content-type": content_type, **headers}, body, 10))
    except HttpRequestError as error:
        status = error.status
    assert status == 200 or 400 <= status < 500
    assert found <= 10
