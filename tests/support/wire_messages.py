"""Generated messages of the wire protocol, and pairs of connections without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st

from support.strategies import times, values
from tidegate.language.events import Event
from tidegate.network.wire import flow, requests
from tidegate.network.wire.connection import Connection, Message
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.problems import Problem
from tidegate.network.wire.publications import PublicationBlock
from tidegate.network.wire.values import wire_value
from tidegate.routing import messages as m

numbers = st.sampled_from([0, 1, 127, 128, 2**31, 2**63 - 1])
integers = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)])
handles = st.sampled_from([0, 1, 255, 2**32 - 1])
names = st.sampled_from(["a", "desk-7", "né", "x" * 200])
optional_names = st.none() | names
texts = st.sampled_from(["price < :limit", "", "a = 'é'"])
wire_values = values.map(wire_value)
parameters = st.dictionaries(names, wire_values, max_size=2)
problems = st.builds(
    Problem, st.sampled_from(["routing", "filter"]), texts, texts, numbers, numbers
)
spaces = st.sampled_from([None, "", "market"])
evolves = st.sampled_from([None, "lazy", "periodic 1 s"])


@st.composite
def events(draw: st.DrawFn) -> Event:
    attributes = draw(st.dictionaries(st.sampled_from(["a", "b", "c.d", "é"]), values, max_size=4))
    return Event(dict(sorted(attributes.items())), draw(st.none() | times))


@st.composite
def publications(draw: st.DrawFn) -> m.Publication:
    event = draw(events())
    stamp = m.Stamp(draw(st.sampled_from(["a", "b"])), draw(integers), draw(numbers))
    return m.Publication(event, stamp, draw(names), draw(spaces))


@st.composite
def publishes(draw: st.DrawFn) -> Publish:
    batch = draw(st.lists(events(), max_size=5))
    first = draw(st.sampled_from([1, 2**40]))
    return Publish(first, EventBlock.of(batch, draw(spaces)), draw(st.booleans()))


@st.composite
def deliveries(draw: st.DrawFn) -> Deliver:
    block = PublicationBlock.of(draw(st.lists(publications(), max_size=5)), draw(st.booleans()))
    counts = [draw(st.integers(0, 3)) for _ in range(len(block))]
    total = sum(counts)
    return Deliver(
        block,
        np.array([draw(numbers) for _ in counts], np.int64),
        np.array(counts, np.int64),
        np.array([draw(handles) for _ in range(total)], np.int64),
        np.array([draw(integers) for _ in range(total)], np.int64),
    )


@st.composite
def sequences(draw: st.DrawFn) -> DeliverSequence:
    block = PublicationBlock.of(draw(st.lists(publications(), max_size=3)))
    return DeliverSequence(draw(handles), block)


from_clients = st.one_of(
    st.builds(
        requests.Subscribe,
        number=numbers,
        wanted=texts,
        name=optional_names,
        parameters=parameters,
        evolve=evolves,
        version=integers,
        origin_us=st.none() | integers,
        confirm=st.booleans(),
        space=spaces,
        replay_us=st.none() | integers,
    ),
    st.builds(
        requests.SubscribeRows,
        number=numbers,
        shape=numbers,
        names=st.lists(names, max_size=2),
        rows=st.lists(st.lists(wire_values, max_size=2), max_size=2),
        parameters=st.lists(parameters, max_size=2),
        evolve=evolves,
        first_version=integers,
        origin_us=st.none() | integers,
        confirm=st.booleans(),
        space=spaces,
    ),
    st.builds(
        requests.Update,
        number=numbers,
        handle=handles,
        version=integers,
        parameters=st.dictionaries(names, st.none() | wire_values, max_size=2),
        filter=st.none() | texts,
        confirm=st.booleans(),
    ),
    st.builds(requests.Cancel, numbers, handles),
    st.builds(requests.Unsubscribe, numbers, texts, spaces),
    st.builds(requests.Advertise, numbers, texts, spaces),
    st.builds(requests.Unadvertise, numbers, texts, spaces),
    st.builds(requests.Suspend, numbers),
    st.builds(requests.Resume, numbers, optional_names, numbers),
    st.builds(requests.Depart, numbers),
    st.builds(flow.Ack, numbers),
    st.builds(flow.Credit, numbers, numbers),
    publishes(),
)
held = st.builds(
    requests.HeldSubscription,
    handle=handles,
    name=names,
    filter=texts,
    parameters=parameters,
    evolve=evolves,
    version=integers,
    origin_us=st.none() | integers,
    space=spaces,
)
from_brokers = st.one_of(
    st.builds(
        requests.Done,
        numbers,
        st.lists(handles, max_size=3),
        st.lists(st.tuples(numbers, problems), max_size=2),
    ),
    st.builds(requests.Refused, numbers, problems),
    st.builds(requests.InForce, handles, integers),
    st.builds(requests.Held, st.lists(held, max_size=2), st.booleans()),
    st.builds(requests.Missed, numbers),
    st.builds(flow.Confirmed, numbers),
    st.builds(flow.NotPublished, numbers, problems),
    st.builds(flow.Credit, numbers, numbers),
    deliveries(),
    sequences(),
)


def handshake(client: Connection, broker: Connection, **welcome: Any) -> None:
    """Let both ends agree."""
    broker.receive(written(client))
    broker.welcome(Welcome("a", 1, **welcome))
    client.receive(written(broker))


def connected(**hello: Any) -> tuple[Connection, Connection]:
    """The two ends of a connection whose handshake is through: the initiator's, the broker's."""
    client = Connection.connecting(Hello("desk-7", 5, **hello))
    broker = Connection.accepting()
    handshake(client, broker)
    return client, broker


def written(connection: Connection) -> bytes:
    """The output of a connection."""
    return b"".join(connection.take_output())


def plain(message: object) -> object:
    """Everything of a message in Python's own types, to compare messages by."""
    match message:
        case Publish():
            block = message.events
            return "publish", message.first_number, message.confirm, _events(block)
        case Deliver():
            columns = [message.positions, message.match_counts, message.handles, message.versions]
            return "deliver", _publications(message.publications), [c.tolist() for c in columns]
        case DeliverSequence():
            return "sequence", message.handle, _publications(message.publications)
        case msgspec.Struct():
            fields = {name: plain(getattr(message, name)) for name in message.__struct_fields__}
            return type(message).__name__, fields
        case msgspec.msgpack.Ext():
            return message.code, bytes(message.data)
        case dict():
            return {name: plain(each) for name, each in message.items()}
        case list() | tuple():
            return [plain(each) for each in message]
    return type(message).__name__, message


def _events(block: EventBlock) -> object:
    shapes = [(shape.names, shape.space) for shape in block.shapes]
    return [
        (shapes[index], time, plain(row))
        for index, time, row in zip(
            block.shape_of.tolist(), block.times_us.tolist(), block.rows, strict=True
        )
    ]


def _publications(block: PublicationBlock) -> object:
    stamps = [tuple(block.stamp(index)) for index in range(len(block))]
    publishers = [block.publishers[index] for index in block.publisher_of]
    return _events(block.events), stamps, publishers, block.flags.tolist()


def all_plain(messages: Sequence[Message]) -> list[object]:
    """As ``plain``, of several."""
    return [plain(each) for each in messages]
