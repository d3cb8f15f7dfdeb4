from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.wire_messages import (
    all_plain,
    connected,
    from_brokers,
    from_clients,
    handshake,
    plain,
    written,
)
from tidegate.errors import EventError, NetworkError, TidegateError
from tidegate.language.events import Event
from tidegate.network.wire import flow, requests
from tidegate.network.wire.connection import Broken, Connection
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.event_shapes import SHAPES_MAX
from tidegate.network.wire.frames import FrameType, frame_header
from tidegate.network.wire.handshake import Goodbye, Hello, Welcome
from tidegate.network.wire.problems import Problem


def publish(*attributes: Mapping[str, object], first: int = 1) -> Publish:
    return Publish(first, EventBlock.of([Event.of(each) for each in attributes]))


# -- handshake ------------------------------------------------------------------------------------


def test_the_handshake_opens_both_ends() -> None:
    client = Connection.connecting(Hello("desk-7", 5, token="secret"))
    broker = Connection.accepting()
    [hello] = broker.receive(written(client))
    assert isinstance(hello, Hello)
    assert (hello.identity, hello.token) == ("desk-7", "secret")
    assert not broker.is_open
    broker.welcome(Welcome("a", 9))
    assert client.receive(written(broker)) == [Welcome("a", 9)]
    assert client.is_open
    assert broker.is_open


def test_a_broker_may_refuse_a_client() -> None:
    client = Connection.connecting(Hello("desk-7", 5))
    broker = Connection.accepting()
    broker.receive(written(client))
    broker.goodbye(Problem("access", "no such token"), retry_ms=None)
    [goodbye] = client.receive(written(broker))
    assert goodbye == Goodbye(Problem("access", "no such token"))
    assert client.is_closed
    with pytest.raises(NetworkError, match="not open"):
        client.send(flow.Ack(1))


def test_nothing_but_hello_is_taken_first() -> None:
    client, _ = connected()
    client.send(flow.Ack(1))
    broker = Connection.accepting()
    [broken] = broker.receive(written(client))
    assert isinstance(broken, Broken)
    assert "ACK is not expected" in str(broken.error)


def test_nothing_is_taken_between_hello_and_welcome() -> None:
    client = Connection.connecting(Hello("desk-7", 5))
    other, _ = connected()
    other.send(flow.Ack(1))
    messages = Connection.accepting().receive(written(client) + written(other))
    assert [type(each) for each in messages] == [Hello, Broken]


def test_versions_must_overlap() -> None:
    client = Connection.connecting(Hello("desk-7", 5, versions=(2, 3)))
    broker = Connection.accepting()
    [broken] = broker.receive(written(client))
    assert isinstance(broken, Broken)
    assert "version 1 of the protocol is spoken here, not 2 to 3" in str(broken.error)
    [goodbye] = client.receive(written(broker))
    assert isinstance(goodbye, Goodbye)
    assert goodbye.problem.code == "protocol"


def test_the_broker_must_choose_a_version_that_was_offered() -> None:
    client = Connection.connecting(Hello("desk-7", 5))
    broker = Connection.accepting()
    broker.receive(written(client))
    broker.welcome(Welcome("a", 1, version=2))
    [broken] = client.receive(written(broker))
    assert isinstance(broken, Broken)


def test_frames_are_small_until_the_handshake_is_through() -> None:
    [broken] = Connection.accepting().receive(b"\x00\x01\x00\x01")
    assert isinstance(broken, Broken)
    assert "65536" in str(broken.error)


def test_another_protocol_is_told_apart() -> None:
    [broken] = Connection.accepting().receive(b"GET / HTTP/1.1\r\n\r\n")
    assert isinstance(broken, Broken)
    assert "another protocol" in str(broken.error)


def test_nothing_comes_out_after_goodbye() -> None:
    client, broker = connected()
    broker.send(flow.Confirmed(1))
    broker.goodbye(Problem("network", "draining"), retry_ms=100)
    output = written(broker)
    broker.goodbye(Problem("network", "again"))
    assert not broker.has_output
    messages = client.receive(output + output)
    assert messages == [flow.Confirmed(1), Goodbye(Problem("network", "draining"), 100)]
    assert client.receive(output) == []


# -- every message --------------------------------------------------------------------------------


@given(st.lists(from_clients, max_size=4))
def test_messages_of_clients_come_out_as_they_went_in(messages: list[object]) -> None:
    client, broker = connected()
    for message in messages:
        client.send(message)  # type: ignore[arg-type]
    assert all_plain(broker.receive(written(client))) == [plain(each) for each in messages]


@given(st.lists(from_brokers, max_size=4))
def test_messages_of_brokers_come_out_as_they_went_in(messages: list[object]) -> None:
    client, broker = connected()
    for message in messages:
        broker.send(message)  # type: ignore[arg-type]
    assert all_plain(client.receive(written(broker))) == [plain(each) for each in messages]


@given(st.lists(from_clients, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_input_may_come_in_any_pieces(messages: list[object], random: Random) -> None:
    client, broker = connected()
    for message in messages:
        client.send(message)  # type: ignore[arg-type]
    data, received, position = written(client), [], 0
    while position < len(data):
        size = random.choice([1, 2, 3, 7, 1000])
        received += broker.receive(data[position : position + size])
        position += size
    assert all_plain(received) == [plain(each) for each in messages]


@settings(max_examples=30)
@given(from_clients)
def test_a_message_that_is_cut_off_does_not_come_out(message: object) -> None:
    """The bytes that are missing are taken from the body, and the length says so."""
    client, _ = connected()
    client.send(message)  # type: ignore[arg-type]
    *definitions, (type, body) = frames_of(written(client))
    before = b"".join(frame_header(each, len(data)) + data for each, data in definitions)
    for end in range(len(body)):
        _, broker = connected()
        messages = broker.receive(before + frame_header(type, end) + body[:end])
        assert len(messages) == 1
        assert isinstance(messages[0], Broken), f"cut off at {end} of {len(body)} bytes"


def frames_of(data: bytes) -> list[tuple[FrameType, bytes]]:
    frames = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        frames.append((FrameType(data[4]), data[5:end]))
        data = data[end:]
    return frames


@given(st.lists(from_clients | from_brokers, min_size=1, max_size=3), st.data())
def test_mutated_bytes_never_raise(messages: list[object], data: st.DataObject) -> None:
    sender, _ = connected()
    for message in messages:
        sender.send(message)  # type: ignore[arg-type]
    output = bytearray(written(sender))
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(output) - 1))
        output[index] = data.draw(st.integers(0, 255))
    for end in connected():
        received = end.receive(bytes(output))
        is_broken = [isinstance(each, Broken) for each in received]
        assert not any(is_broken[:-1])
        assert end.is_closed == any(is_broken) or any(isinstance(e, Goodbye) for e in received)
        all_plain(received)


@given(st.binary(max_size=300))
def test_garbage_never_raises(data: bytes) -> None:
    for end in (*connected(), Connection.accepting(), Connection.connecting(Hello("a", 1))):
        for message in end.receive(data):
            plain(message)


def test_a_side_takes_only_what_the_other_may_send() -> None:
    client, broker = connected()
    client.send(flow.Confirmed(1))  # only a broker confirms
    [broken] = broker.receive(written(client))
    assert isinstance(broken, Broken)
    assert "CONFIRMED is not expected" in str(broken.error)


def test_heartbeats_are_taken_in_silence() -> None:
    client, broker = connected()
    client.send(flow.Heartbeat())
    client.send(flow.Ack(3))
    assert broker.receive(written(client)) == [flow.Ack(3)]


# -- blocks ---------------------------------------------------------------------------------------


def test_a_shape_is_defined_once() -> None:
    client, broker = connected()
    client.send(publish({"price": 1}))
    first = written(client)
    client.send(publish({"price": 2}, first=2))
    second = written(client)
    assert b"price" in first
    assert b"price" not in second
    [one, other] = broker.receive(first + second)
    assert isinstance(one, Publish)
    assert isinstance(other, Publish)
    assert (one.events.rows, other.events.rows) == ([[1]], [[2]])


def test_a_full_table_of_shapes_begins_anew() -> None:
    client, broker = connected()
    for number in range(SHAPES_MAX + 10):
        client.send(publish({f"a{number}": 1, "b": 2}))
    client.send(publish({"a0": 5, "b": 6}))
    messages = broker.receive(written(client))
    assert len(messages) == SHAPES_MAX + 11
    assert isinstance(messages[-1], Publish)
    assert messages[-1].events.event(0) == Event({"a0": 5, "b": 6})


def test_a_block_with_more_shapes_than_a_table_takes_is_split() -> None:
    client, broker = connected()
    client.send(publish(*({f"a{number}": number} for number in range(SHAPES_MAX + 1))))
    parts = broker.receive(written(client))
    assert [each.first_number for each in parts if isinstance(each, Publish)] == [1, 513]
    events = [each for part in parts if isinstance(part, Publish) for each in part.events.events()]
    assert events == [Event({f"a{number}": number}) for number in range(SHAPES_MAX + 1)]


def test_a_block_that_is_larger_than_a_frame_is_split() -> None:
    client = Connection.connecting(Hello("desk-7", 5))
    broker = Connection.accepting()
    handshake(client, broker, frame_bytes_max=65_536)
    client.send(publish(*({"text": "x" * 30_000, "number": number} for number in range(5))))
    parts = [each for each in broker.receive(written(client)) if isinstance(each, Publish)]
    assert [(each.first_number, len(each)) for each in parts] == [(1, 2), (3, 1), (4, 2)]


def test_an_event_that_is_larger_than_a_frame_is_refused() -> None:
    client = Connection.connecting(Hello("desk-7", 5))
    broker = Connection.accepting()
    handshake(client, broker, frame_bytes_max=65_536)
    with pytest.raises(EventError, match="takes frames of 65536 bytes"):
        client.send(publish({"text": "x" * 70_000}))
    client.send(publish({"text": "x"}))
    assert len(broker.receive(written(client))) == 1


def test_a_request_that_is_larger_than_a_frame_is_refused() -> None:
    client = Connection.connecting(Hello("desk-7", 5))
    broker = Connection.accepting()
    handshake(client, broker, frame_bytes_max=65_536)
    with pytest.raises(TidegateError, match="ADVERTISE has"):
        client.send(requests.Advertise(1, "x" * 65_536))
