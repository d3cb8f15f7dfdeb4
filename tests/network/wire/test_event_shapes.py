from __future__ import annotations

import gc

import msgspec
import pytest

from tidegate.errors import EventError, ProtocolError
from tidegate.network.wire.event_shapes import (
    NAMES_BYTES_MAX,
    SHAPES_MAX,
    EventShape,
    ReceivedEventShapes,
    SentEventShapes,
)


def test_equal_shapes_are_one_object() -> None:
    assert EventShape.of(["a", "b"]) is EventShape.of(("a", "b"))
    assert EventShape.of(["a", "b"]) is not EventShape.of(["a", "b"], "")
    assert repr(EventShape.of(["a", "b"], "m")) == "EventShape(a, b, space='m')"


def test_numbers_of_shapes_are_not_used_again() -> None:
    number = EventShape.of(["gone"]).number
    gc.collect()
    assert EventShape.of(["gone"]).number > number


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"], [""], ["", "a"]])
def test_names_ascend_and_are_not_empty(names: list[str]) -> None:
    with pytest.raises(EventError):
        EventShape.of(names)


def test_a_shape_has_a_limited_size() -> None:
    with pytest.raises(EventError, match="4097 attributes"):
        EventShape.of([f"{number:05}" for number in range(4097)])
    with pytest.raises(EventError, match=f"{NAMES_BYTES_MAX} bytes"):
        EventShape.of(["x" * (NAMES_BYTES_MAX + 1)])


def test_what_is_sent_is_received() -> None:
    sent, received = SentEventShapes(), ReceivedEventShapes()
    shapes = [EventShape.of([]), EventShape.of(["a", "é"], "market"), EventShape.of(["a"], "")]
    found = sent.numbers(shapes)
    assert found is not None
    numbers, definitions = found
    for each in definitions:
        received.define(memoryview(each))
    assert [received[number] for number in numbers] == shapes
    assert sent.numbers(shapes[1:]) == (numbers[1:], [])


def test_a_full_table_is_followed_by_a_new_one() -> None:
    sent, received = SentEventShapes(), ReceivedEventShapes()
    numbers = []
    for number in range(2 * SHAPES_MAX + 1):
        shape = EventShape.of([f"a{number}"])
        found = sent.numbers([shape])
        assert found is not None
        numbers += found[0]
        for each in found[1]:
            received.define(memoryview(each))
        assert received[found[0][0]] is shape
    assert numbers == [*range(SHAPES_MAX), *range(SHAPES_MAX), 0]


def test_tables_are_bounded_by_bytes_too() -> None:
    sent, received = SentEventShapes(), ReceivedEventShapes()
    large = [EventShape.of([letter * (NAMES_BYTES_MAX - 10)]) for letter in "abcdef"]
    assert sent.numbers(large) is None
    for shape in large:
        found = sent.numbers([shape])
        assert found is not None
        for each in found[1]:
            received.define(memoryview(each))
        assert received[found[0][0]] is shape
    received = ReceivedEventShapes()
    definitions = [
        msgspec.msgpack.encode([number, None, ["x" * (NAMES_BYTES_MAX - 10)]])
        for number in range(5)
    ]
    for each in definitions[:4]:
        received.define(memoryview(each))
    with pytest.raises(ProtocolError, match="1048576 bytes"):
        received.define(memoryview(definitions[4]))


@pytest.mark.parametrize(
    "definition",
    [
        [0],
        [1, None, ["a"]],
        [-1, None, ["a"]],
        [0, None, ["b", "a"]],
        [0, None, [""]],
        [0, None, [1]],
        [0, 5, ["a"]],
        [0, None, ["a"], 1],
        {"number": 0},
    ],
)
def test_malformed_definitions_are_refused(definition: object) -> None:
    with pytest.raises(ProtocolError):
        ReceivedEventShapes().define(memoryview(msgspec.msgpack.encode(definition)))


def test_only_defined_shapes_can_be_used() -> None:
    received = ReceivedEventShapes()
    received.define(memoryview(msgspec.msgpack.encode([0, None, ["a"]])))
    with pytest.raises(ProtocolError, match="event shape 1 was not defined"):
        received[1]
    with pytest.raises(ProtocolError, match="where 1 is the next"):
        received.define(memoryview(msgspec.msgpack.encode([2, None, ["a"]])))


def test_a_table_takes_no_more_than_its_limit() -> None:
    received = ReceivedEventShapes()
    for number in range(SHAPES_MAX):
        received.define(memoryview(msgspec.msgpack.encode([number, None, [f"a{number}"]])))
    with pytest.raises(ProtocolError, match="at most 1024"):
        received.define(memoryview(msgspec.msgpack.encode([SHAPES_MAX, None, ["b"]])))
