"""What a broker says of a batch becomes the messages that `Broker.handle` would have sent."""

from __future__ import annotations

import numpy as np

from tidegate.language.events import Event
from tidegate.network.server.routed_turn import by_client, joined_events, publications
from tidegate.network.wire.event_batches import batch_of
from tidegate.network.wire.event_block import EventBlock
from tidegate.routing import messages as m
from tidegate.routing.batching.incoming import IncomingEvents, PublishedFrame
from tidegate.routing.broker import Broker
from tidegate.routing.strategies import strategy


def test_deliveries_are_those_of_the_broker() -> None:
    broker = Broker("a", strategy("subscription"), substrate="columnar", begun_us=5)
    ann, bob, publisher = m.Client("ann"), m.Client("bob"), m.Client("pub")
    broker.handle_requests(
        [
            (ann, m.Subscribe("x < 10", "low", version=4)),
            (ann, m.Subscribe("x > 5", "high", version=2)),
            (ann, m.Subscribe("y = 1")),
            (bob, m.Subscribe("x < 3")),
            (bob, m.Subscribe("x = 7", "seven", version=1)),
        ],
        1,
    )
    blocks = [
        EventBlock.of([Event({"x": n}) for n in range(9)]),
        EventBlock.of([Event({"x": 7, "y": 1}), Event({"y": 1})]),
    ]
    events = joined_events(blocks)
    assert events.rows == [row for block in blocks for row in block.rows]
    frames = [PublishedFrame(publisher, 9), PublishedFrame(publisher, 2)]
    routed = broker.handle_events(IncomingEvents(batch_of(events), frames), 77)
    block = publications(events, routed, np.arange(11) % 2 == 0)
    expected: dict[m.Client, list[m.Deliver]] = {ann: [], bob: []}
    for client, message in routed.messages(broker.named.name_of):
        assert isinstance(client, m.Client)
        assert isinstance(message, m.Deliver)
        expected[client].append(message)
    found = {
        each.client: each for each in by_client(routed.deliveries, set(routed.deliveries.clients))
    }
    assert found.keys() == {ann, bob}
    for client, rows in found.items():
        deliver = rows.deliver(block, np.zeros(11, np.int64)[rows.events])
        assert list(deliver.publications.publications()) == [
            each.publication for each in expected[client]
        ]
        names = [
            (unnamed, {(broker.named.name_of(handle - 1), version) for handle, version in named})
            for unnamed, named in rows.matches()
        ]
        assert names == [
            (each.unnamed, {(match.name, match.version) for match in each.matches})
            for each in expected[client]
        ]
        assert deliver.publications.flags.tolist() == [1 - each % 2 for each in rows.events]
        odd = rows.only(rows.events % 2 == 1)
        assert list(odd.matches()) == [
            each for each, event in zip(rows.matches(), rows.events, strict=True) if event % 2
        ]
    assert block.origins == [("a", 5)]
