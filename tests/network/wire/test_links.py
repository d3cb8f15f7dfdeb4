from __future__ import annotations

from typing import cast

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.wire_links import comparable, link_messages, messages_of
from support.wire_messages import handshake, plain, written
from tidegate.errors import NetworkError, ProtocolError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.network.wire import flow
from tidegate.network.wire.connection import Broken, Connection
from tidegate.network.wire.event_shapes import SHAPES_MAX
from tidegate.network.wire.handshake import Hello
from tidegate.network.wire.links import (
    ANOTHER_FOLLOWS,
    GOES_ON,
    PIECE_HEADER,
    Linked,
    LinkMessage,
    Notifications,
    PieceJoiner,
    Route,
)
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing import messages as m


def linked(frame_bytes_max: int = 1 << 24) -> tuple[Connection, Connection]:
    """The two ends of a link."""
    one = Connection.connecting(Hello("b", 1, role="broker", frame_bytes_max=frame_bytes_max))
    other = Connection.accepting()
    handshake(one, other, frame_bytes_max=frame_bytes_max)
    return one, other


def publication(number: int, **attributes: int | str) -> m.Publication:
    return m.Publication(Event(dict(attributes)), m.Stamp("a", 1, number), "p")


def notifications(*published: m.Publication) -> Notifications:
    block = PublicationBlock.of(published)
    return Notifications(block, [Route("a")], np.zeros(len(block), np.int64))


@settings(max_examples=50)
@given(st.lists(link_messages, max_size=4))
def test_messages_come_out_as_they_went_in(messages: list[LinkMessage]) -> None:
    for sender, receiver in (linked(), linked()[::-1]):
        for number, message in enumerate(messages, 5):
            sender.send_link(number, message)
        sender.send(flow.LinkAck(4))
        *came, ack = receiver.receive(written(sender))
        assert ack == flow.LinkAck(4)
        assert messages_of(cast("list[object]", came)) == [comparable(each) for each in messages]
        numbers = [(each.number, each.is_last) for each in came if isinstance(each, Linked)]
        assert numbers == [(number, True) for number in range(5, 5 + len(messages))]


@settings(max_examples=20)
@given(link_messages)
def test_a_message_that_is_cut_off_does_not_come_out(message: LinkMessage) -> None:
    sender, _ = linked()
    sender.send_link(1, message)
    data = written(sender)
    begin = data.index(PIECE_HEADER.pack(1, 0)) - 5
    body = data[begin + 5 :]
    for end in range(len(body)):
        _, receiver = linked()
        cut = (end + 1).to_bytes(4, "big") + data[begin + 4 : begin + 5] + body[:end]
        [broken] = receiver.receive(data[:begin] + cut)
        assert isinstance(broken, Broken), f"cut off at {end} of {len(body)} bytes"


@given(st.lists(link_messages, min_size=1, max_size=3), st.data())
def test_mutated_bytes_never_raise(messages: list[LinkMessage], data: st.DataObject) -> None:
    sender, receiver = linked()
    for number, message in enumerate(messages):
        sender.send_link(number, message)
    output = bytearray(written(sender))
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(output) - 1))
        output[index] = data.draw(st.integers(0, 255))
    for each in receiver.receive(bytes(output)):
        if isinstance(each, Linked):
            comparable(each.message)
        else:
            plain(each)


def test_a_filter_shape_crosses_the_link_once() -> None:
    sender, receiver = linked()
    sizes = []
    for number in range(3):
        added = ((m.Key(number, None), parse(f"price < {number} and symbol = 'IBM'")),)
        sender.send_link(number, m.FilterDelta(added))
        data = written(sender)
        sizes.append((b"price" in data, len(data) < 60))
        assert messages_of(cast("list[object]", receiver.receive(data)))
    assert sizes == [(True, False), (False, True), (False, True)]


def test_a_disjunction_keeps_its_form() -> None:
    """Multiplied out it could be longer than the receiver's limit."""
    sender, receiver = linked()
    wanted = parse("(a = 1 or b = 2) and (c = 3 or d = 4)")
    sender.send_link(1, m.FilterDelta(((m.Key(1, None), wanted),)))
    [came] = receiver.receive(written(sender))
    assert isinstance(came, Linked)
    assert isinstance(came.message, m.FilterDelta)
    assert came.message.added[0][1] == wanted
    assert wanted.shape_and_row == came.message.added[0][1].shape_and_row  # type: ignore[union-attr]


def test_a_large_message_is_cut_into_frames() -> None:
    sender, receiver = linked(65_536)
    added = tuple((m.Key(n, None), parse(f"symbol = '{'x' * 100}{n}'")) for n in range(3000))
    sender.send_link(7, m.FilterDelta(added))
    data = written(sender)
    assert len(data) > 300_000
    [came] = receiver.receive(data)
    assert isinstance(came, Linked)
    assert came.message == m.FilterDelta(added)


def test_more_shapes_than_a_table_takes_go_in_several_payloads() -> None:
    sender, receiver = linked()
    published = [publication(n, **{f"a{n}": n}) for n in range(1, 2 * SHAPES_MAX)]
    sender.send_link(3, notifications(*published))
    sender.send_link(4, notifications(publication(1, b=1)))
    came = [each for each in receiver.receive(written(sender)) if isinstance(each, Linked)]
    assert [(each.number, each.is_last) for each in came] == [(3, False), (3, True), (4, True)]
    stamps = [
        each.message.publications.stamp(index).number
        for each in came[:2]
        if isinstance(each.message, Notifications)
        for index in range(len(each.message))
    ]
    assert stamps == list(range(1, 2 * SHAPES_MAX))


def test_a_hand_over_may_have_more_shapes_than_a_table_takes() -> None:
    sender, receiver = linked()
    kept = tuple(m.Deliver(publication(n, **{f"a{n}": n})) for n in range(2 * SHAPES_MAX))
    sender.send_link(1, m.HandOver("a", 1, kept))
    [came] = receiver.receive(written(sender))
    assert isinstance(came, Linked)
    assert came.message == m.HandOver("a", 1, kept)


def test_a_client_cannot_send_link_messages() -> None:
    sender, _ = linked()
    sender.send_link(1, m.Disconnect())
    client = Connection.connecting(Hello("desk-7", 1))
    broker = Connection.accepting()
    handshake(client, broker)
    [broken] = broker.receive(written(sender))
    assert isinstance(broken, Broken)
    assert "LINK_MESSAGE is not expected" in str(broken.error)


def test_only_what_neighbours_send_is_sent() -> None:
    sender, _ = linked()
    with pytest.raises(NetworkError, match="never sends Suspend"):
        sender.send_link(1, m.Refused(m.Suspend(), "no"))


# -- pieces ---------------------------------------------------------------------------------------


def body(number: int, flags: int, piece: bytes) -> memoryview:
    return memoryview(PIECE_HEADER.pack(number, flags) + piece)


def test_pieces_are_joined() -> None:
    joiner = PieceJoiner()
    assert joiner.add(body(1, GOES_ON, b"ab")) is None
    assert joiner.add(body(1, GOES_ON | ANOTHER_FOLLOWS, b"cd")) is None
    assert joiner.add(body(1, ANOTHER_FOLLOWS, b"ef")) == (1, memoryview(b"abcdef"), False)
    assert joiner.add(body(1, 0, b"gh")) == (1, memoryview(b"gh"), True)
    assert joiner.add(body(2, 0, b"")) == (2, memoryview(b""), True)


def test_pieces_of_two_messages_are_not_mixed() -> None:
    joiner = PieceJoiner()
    joiner.add(body(1, ANOTHER_FOLLOWS, b"ab"))
    with pytest.raises(ProtocolError, match="link message 1 goes on, but 2 came"):
        joiner.add(body(2, 0, b"cd"))


def test_a_payload_has_a_limit() -> None:
    joiner = PieceJoiner(payload_bytes_max=5)
    joiner.add(body(1, GOES_ON, b"abc"))
    with pytest.raises(ProtocolError, match="more than 5 bytes"):
        joiner.add(body(1, GOES_ON, b"def"))


@pytest.mark.parametrize(("number", "flags"), [(2**63, 0), (1, 4)])
def test_numbers_and_flags_have_ranges(number: int, flags: int) -> None:
    with pytest.raises(ProtocolError, match="out of range"):
        PieceJoiner().add(body(number, flags, b""))


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x03", b"\x02", b"\x01\x00\x00\x00\x00"])
def test_other_payloads_are_refused(payload: bytes) -> None:
    _, receiver = linked()
    piece = bytes(body(1, 0, payload))
    [broken] = receiver.receive((len(piece) + 1).to_bytes(4, "big") + b"\x41" + piece)
    assert isinstance(broken, Broken)


def message_with(*fields: object) -> bytes:
    head = msgspec.msgpack.encode(fields)
    piece = bytes(body(1, 0, b"\x02" + len(head).to_bytes(4, "little") + head))
    return (len(piece) + 1).to_bytes(4, "big") + b"\x41" + piece


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((1, [[[1, None], [0, [1]]]], [], []), "filter shape 0 was not defined"),
        ((1, [[[1, None], ["a <"]]], [], []), "the filter of a neighbour"),
        ((1, [[[1, None], ["a < 1", [1]]]], [], []), "a text has no row"),
        ((1, [[[1, None], ["a < t", [], 1, 2**62]]], [], []), "the evolve mode of a neighbour"),
        ((2, [[[1, None], "a < :b"]], []), "the advertisement of a neighbour"),
        ((4, 1, "a then", 1), "the pattern of a neighbour"),
        ((3, None, None, None), "1 events are announced, 0 follow"),
        ((6, 1, 2**40), "events are announced, 0 follow"),
        ((16, "a", 1, [[None, 0]], 0, []), "has one event, not 0"),
        ((22, [22, [9], "no"], "no"), "malformed"),
        ((99,), "malformed"),
        ((9, 1), "malformed"),
    ],
)
def test_malformed_messages_are_refused(fields: tuple[object, ...], message: str) -> None:
    _, receiver = linked()
    [broken] = receiver.receive(message_with(*fields))
    assert isinstance(broken, Broken)
    assert message in str(broken.error)
