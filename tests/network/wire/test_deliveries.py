from __future__ import annotations

import numpy as np
import pytest

from support.wire_messages import connected, written
from tidegate.errors import ProtocolError
from tidegate.language.events import Event
from tidegate.network.wire.connection import Broken
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.event_shapes import ReceivedEventShapes
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing import messages as m


def publication(number: int) -> m.Publication:
    return m.Publication(Event({"x": number}), m.Stamp("a", 1, number), "p")


DELIVERIES = [
    m.Deliver(publication(1), (m.MatchedVersion("one", 3),), unnamed=False),
    m.Deliver(publication(2), (), unnamed=True),
    m.Deliver(publication(3), (m.MatchedVersion("one", 4), m.MatchedVersion("two", 9))),
]


def test_deliveries_of_a_broker_become_columns() -> None:
    block = Deliver.of(DELIVERIES, {"one": 5, "two": 6}, [7, 8, 9])
    assert block.positions.tolist() == [7, 8, 9]
    assert block.match_counts.tolist() == [1, 1, 3]
    assert block.handles.tolist() == [5, 0, 5, 6, 0]
    assert block.versions.tolist() == [3, 0, 4, 9, 0]
    assert block.publications.publications() == tuple(each.publication for each in DELIVERIES)


def test_a_part_has_its_own_matches() -> None:
    part = Deliver.of(DELIVERIES, {"one": 5, "two": 6}).part(1, 3)
    assert part.match_counts.tolist() == [1, 3]
    assert part.handles.tolist() == [0, 5, 6, 0]
    assert [part.publications.stamp(index).number for index in range(2)] == [2, 3]


def test_numbers_of_publications_go_on_in_a_part() -> None:
    block = EventBlock.of([Event({"x": number}) for number in range(4)])
    part = Publish(10, block, confirm=True).part(1, 3)
    assert (part.first_number, part.confirm, len(part)) == (11, True, 2)
    assert [event["x"] for event in part.events.events()] == [1, 2]


def test_matches_must_fit_their_counts() -> None:
    made = Deliver.of(DELIVERIES, {"one": 5, "two": 6})
    fields = {name: getattr(made, name) for name in Deliver.__dataclass_fields__}
    client, broker = connected()
    broker.send(Deliver(**{**fields, "match_counts": np.array([1, 1, 2])}))
    [broken] = client.receive(written(broker))
    assert isinstance(broken, Broken)
    assert "5 matches, not the 4" in str(broken.error)


def test_the_flags_of_a_publication_are_known() -> None:
    data = bytearray(b"".join(Publish(1, EventBlock.of([]), confirm=True).encode([])))
    data[8] = 2
    with pytest.raises(ProtocolError, match="0 or 1, not 2"):
        Publish.decode(memoryview(data), ReceivedEventShapes())


def test_numbers_of_publications_fit_in_63_bits() -> None:
    data = b"".join(Publish(2**63 - 1, EventBlock.of([Event({})])).encode([0]))
    received = ReceivedEventShapes()
    received.define(memoryview(b"\x93\x00\xc0\x90"))
    with pytest.raises(ProtocolError, match="larger than"):
        Publish.decode(memoryview(data), received)


def test_a_sequence_has_the_handle_of_its_pattern() -> None:
    client, broker = connected()
    broker.send(DeliverSequence(7, PublicationBlock.of([publication(1), publication(2)])))
    [sequence] = client.receive(written(broker))
    assert isinstance(sequence, DeliverSequence)
    assert sequence.handle == 7
    assert [each.event["x"] for each in sequence.publications.publications()] == [1, 2]
