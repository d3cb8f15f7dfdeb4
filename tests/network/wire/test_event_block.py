from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.wire_messages import events
from tidegate.errors import ProtocolError
from tidegate.language.events import Event
from tidegate.matching.arrays import NO_TIME
from tidegate.network.wire.event_block import EVENTS_MAX, EventBlock
from tidegate.network.wire.event_shapes import EventShape, ReceivedEventShapes, SentEventShapes
from tidegate.network.wire.values import encode_body


def encoded(block: EventBlock) -> tuple[bytes, ReceivedEventShapes]:
    """The bytes of a block, and the table with its shapes."""
    received = ReceivedEventShapes()
    found = SentEventShapes().numbers(block.shapes)
    assert found is not None
    for each in found[1]:
        received.define(memoryview(each))
    return b"".join(block.encode(found[0])), received


def decoded(data: bytes, received: ReceivedEventShapes) -> EventBlock:
    return EventBlock.decode(memoryview(data), received)


@given(st.lists(events(), max_size=8), st.sampled_from([None, "market"]))
def test_blocks_round_trip(batch: list[Event], space: str | None) -> None:
    block = decoded(*encoded(EventBlock.of(batch, space)))
    assert block.events() == batch
    assert {shape.space for shape in block.shapes} <= {space}


@given(st.lists(events(), max_size=8), st.data())
def test_some_events_of_a_block_are_a_block(batch: list[Event], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(batch) - 1) if batch else st.nothing()))
    block = EventBlock.of(batch).select(np.array(indices, np.int64))
    assert block.events() == [batch[index] for index in indices]
    assert decoded(*encoded(block)).events() == block.events()


@given(st.lists(st.lists(events(), max_size=3), max_size=3))
def test_blocks_can_be_joined(batches: list[list[Event]]) -> None:
    block = EventBlock.joined([EventBlock.of(each) for each in batches])
    assert block.events() == [event for batch in batches for event in batch]
    assert decoded(*encoded(block)).events() == block.events()


def test_order_of_attributes_does_not_matter() -> None:
    block = EventBlock.of([Event({"b": 1, "a": 2}), Event({"a": 3, "b": 4})])
    assert block.shapes == (EventShape.of(["a", "b"]),)
    assert block.rows == [[2, 1], [3, 4]]


def test_other_times() -> None:
    block = decoded(*encoded(EventBlock.of([Event({"a": 1}), Event({"a": 2})])))
    assert block.times_us.tolist() == [NO_TIME, NO_TIME]
    timed = block.with_times(np.array([1, 2], np.int64))
    assert [event.time is not None for event in timed.events()] == [True, True]
    assert timed.rows is block.rows


def test_nan_is_absent() -> None:
    assert EventBlock.of([Event({"a": math.nan, "b": 1})]).event(0) == Event({"b": 1})


BLOCK = EventBlock.of([Event({"a": 1, "b": "x"}), Event({"a": 2, "b": "yz"}), Event({"c": 3.5})])


def test_every_truncation_is_refused() -> None:
    data, received = encoded(BLOCK)
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            decoded(data[:end], received)
    with pytest.raises(ProtocolError):
        decoded(data + b"\0", received)


def test_a_count_that_is_not_there_takes_no_memory() -> None:
    with pytest.raises(ProtocolError, match="cut off"):
        decoded(EVENTS_MAX.to_bytes(4, "little"), ReceivedEventShapes())
    with pytest.raises(ProtocolError, match=f"at most {EVENTS_MAX}"):
        decoded((EVENTS_MAX + 1).to_bytes(4, "little"), ReceivedEventShapes())


def altered(at: int, column: bytes) -> bytes:
    data, _ = encoded(BLOCK)
    return data[:at] + column + data[at + len(column) :]


def test_sizes_must_fit_the_bodies() -> None:
    _, received = encoded(BLOCK)
    sizes = np.array(BLOCK.sizes)
    at_sizes = 4 + 3 * (4 + 8)
    with pytest.raises(ProtocolError, match="that their sizes say"):
        decoded(altered(at_sizes, (sizes + 1).astype("<u4").tobytes()), received)
    shifted = sizes + np.array([1, -1, 0])
    with pytest.raises(ProtocolError, match="malformed"):
        decoded(altered(at_sizes, shifted.astype("<u4").tobytes()), received)


def test_shapes_must_be_defined_and_have_as_many_names() -> None:
    _, received = encoded(BLOCK)
    with pytest.raises(ProtocolError, match="event shape 7 was not defined"):
        decoded(altered(4, (7).to_bytes(4, "little")), received)
    with pytest.raises(ProtocolError, match="another number of values"):
        decoded(altered(4, (1).to_bytes(4, "little")), received)


@pytest.mark.parametrize("time", [NO_TIME + 1, 2**62, -(10**17)])
def test_times_must_be_times(time: int) -> None:
    _, received = encoded(BLOCK)
    with pytest.raises(ProtocolError, match="years 1 to 9999"):
        decoded(altered(4 + 3 * 4, int(time).to_bytes(8, "little", signed=True)), received)


def test_bodies_are_copied_as_they_are() -> None:
    data, received = encoded(BLOCK)
    assert data.endswith(encode_body([1, "x"]) + encode_body([2, "yz"]) + encode_body([3.5]))
    assert bytes(decoded(data, received).select(np.array([1])).bodies) == encode_body([2, "yz"])


def test_no_events_are_a_block() -> None:
    block = decoded(*encoded(EventBlock.of([])))
    assert (len(block), block.events(), block.shapes) == (0, [], ())
