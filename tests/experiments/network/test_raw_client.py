from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.experiments.network.raw_client import Received
from tidegate.language.events import Event
from tidegate.network.wire import requests as wire
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing.messages import Publication, Stamp


def stream() -> bytes:
    """What a broker sends: three deliveries of two events, an answer, and `Missed`."""
    client = Connection.connecting(Hello("x", 1))
    broker = Connection.accepting()
    broker.receive(b"".join(client.take_output()))
    broker.welcome(Welcome("b", 1))
    broker.take_output()
    publications = [
        Publication(Event.of({"a": each}, None), Stamp("b", 1, 10 + each), "p") for each in (0, 1)
    ]
    for _ in range(3):
        broker.send(
            Deliver(
                PublicationBlock.of(publications), np.zeros(2, np.int64),
                np.array([2, 1]), np.array([7, 8, 7]), np.array([1, 1, 1]),
            )
        )  # fmt: skip
        broker.send(wire.Done(1))
    broker.send(wire.Missed(4))
    return b"".join(broker.take_output())


@given(st.lists(st.integers(1, 200)))
def test_counts_do_not_depend_on_how_bytes_come(sizes: list[int]) -> None:
    data, received, others = stream(), Received(), []
    received.pairs, received.times_us = [], []
    for size in [*sizes, len(data)]:
        others += received.feed(data[:size])
        data = data[size:]
    assert (received.deliveries, received.matches, received.answers) == (6, 9, 3)
    numbers, handles = (np.concatenate(each) for each in zip(*received.pairs, strict=True))
    assert numbers.tolist() == [10, 10, 11] * 3
    assert handles.tolist() == [7, 8, 7] * 3
    assert sum(map(len, received.times_us)) == 6
    assert len(others) == 2  # the shape of the events, and `Missed`
