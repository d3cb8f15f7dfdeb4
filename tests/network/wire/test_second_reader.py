"""The bytes are what docs/protocol.md says: its example, and messages read by a second reader."""

from __future__ import annotations

import re
import struct
from datetime import datetime
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from support.pages import ROOT
from support.wire_links import notifications
from support.wire_messages import connected, from_brokers, from_clients, written
from support.wire_reader import NO_TIME, Reader
from tidegate.language.events import Event
from tidegate.language.values import to_us
from tidegate.network.wire import requests
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Ack
from tidegate.network.wire.frames import FrameType
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.links import Notifications
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing import messages as m


def test_the_example_of_the_page() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    example = bytes.fromhex(re.findall(r"```\n(0000.*?)```", text, re.DOTALL)[0])
    client, broker = connected()
    event = Event({"price": 9.5, "symbol": "IBM"})
    client.send(Publish(1, EventBlock.of([event]), confirm=True))
    client.send(Ack(7))
    assert written(client).hex() == example.hex()
    publish, ack = broker.receive(example)
    assert isinstance(publish, Publish)
    assert publish.events.events() == [event]
    assert ack == Ack(7)


def test_the_types_of_the_page() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9a-f]{2})(?:(?: to |, )([0-9a-f]{2}))? \| ([\w, ]+) \|", text, re.M)
    named: dict[int, str] = {}
    for first, last, names in rows:
        numbers = range(int(first, 16), int(last or first, 16) + 1)
        for number, name in zip(numbers, names.split(", "), strict=False):
            named.setdefault(number, name)
    snake = {n: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() for n, name in named.items()}
    assert {int(each): each.name for each in FrameType} == snake


@settings(max_examples=60)
@given(st.lists(from_clients | from_brokers, max_size=4))
def test_a_second_reader_finds_the_same(messages: list[Any]) -> None:
    sender, _ = connected()
    for message in messages:
        sender.send(message)
    found = Reader().read(written(sender))
    assert [repr(each) for _, each in found] == [repr(expected(each)) for each in messages]


@settings(max_examples=30)
@given(st.lists(notifications(), max_size=3))
def test_a_second_reader_finds_the_same_notifications(messages: list[Notifications]) -> None:
    sender, broker = Connection.connecting(Hello("b", 1, role="broker")), Connection.accepting()
    broker.receive(written(sender))
    broker.welcome(Welcome("a", 1))
    sender.receive(written(broker))
    for number, message in enumerate(messages):
        sender.send_link(number, message)
    found = Reader().read(written(sender))
    for number, ((_, (came, routes, stamps, events)), message) in enumerate(
        zip(found, messages, strict=True)
    ):
        assert came == number
        assert stamps == stamps_of(message.publications)
        assert repr(events) == repr(events_of(message.publications.events))
        for index, (tree, targets, examination) in enumerate(routes):
            notify = message.message(index)
            assert tree == notify.tree
            assert targets == (None if notify.targets is None else sorted(notify.targets))
            assert (examination is None) == (notify.examination is None)


def test_a_second_reader_finds_a_message_of_a_broker_and_its_events() -> None:
    sender, broker = Connection.connecting(Hello("b", 1, role="broker")), Connection.accepting()
    broker.receive(written(sender))
    broker.welcome(Welcome("a", 1))
    sender.receive(written(broker))
    stamp = m.Stamp("a", 5, 6)
    sender.send_link(3, m.NotifyChain(9, (m.Publication(Event({"x": 1}), stamp, "p", "market"),)))
    [(_, (number, message, published))] = Reader().read(written(sender))
    assert (number, message) == (3, [6, 9, 1])
    assert published == [(("a", 5, 6, "p", 0), ("market", NO_TIME, {"x": 1}))]


# -- what a message should be read as -------------------------------------------------------------


def expected(message: Any) -> Any:
    match message:
        case Publish():
            return message.first_number, message.confirm, events_of(message.events)
        case Deliver():
            block = message.publications
            columns = (message.positions, message.match_counts, message.handles, message.versions)
            lists = [column.tolist() for column in columns]
            return stamps_of(block), *lists, events_of(block.events)
        case DeliverSequence():
            block = message.publications
            return message.handle, stamps_of(block), events_of(block.events)
        case msgspec.Struct():
            return [expected(getattr(message, name)) for name in message.__struct_fields__]
        case msgspec.msgpack.Ext():
            return message.code, bytes(message.data)
        case dict():
            return {name: expected(each) for name, each in message.items()}
        case list() | tuple():
            return [expected(each) for each in message]
    return message


def stamps_of(block: PublicationBlock) -> list[Any]:
    return [
        (*block.stamp(i), block.publishers[block.publisher_of[i]], int(block.flags[i]))
        for i in range(len(block))
    ]


def events_of(block: EventBlock) -> list[Any]:
    found = []
    for index, row in enumerate(block.rows):
        shape = block.shapes[block.shape_of[index]]
        values = [
            (1, struct.pack(">q", to_us(value))) if isinstance(value, datetime) else value
            for value in row
        ]
        attributes = dict(zip(shape.names, values, strict=True))
        found.append((shape.space, int(block.times_us[index]), attributes))
    return found


def test_fields_at_the_end_may_be_left_out() -> None:
    data = msgspec.msgpack.encode([1, "x < 1"])
    assert msgspec.msgpack.decode(data, type=requests.Subscribe) == requests.Subscribe(1, "x < 1")
