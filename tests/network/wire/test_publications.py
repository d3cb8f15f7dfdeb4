from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.wire_messages import publications
from tidegate.errors import ProtocolError
from tidegate.language.events import Event
from tidegate.network.wire.event_shapes import ReceivedEventShapes, SentEventShapes
from tidegate.network.wire.publications import (
    IS_CONFIRMED,
    PublicationBlock,
    PublicationReader,
    check_indices,
)
from tidegate.routing import messages as m


def decoded(block: PublicationBlock) -> PublicationBlock:
    received = ReceivedEventShapes()
    found = SentEventShapes().numbers(block.events.shapes)
    assert found is not None
    for each in found[1]:
        received.define(memoryview(each))
    data = memoryview(b"".join(block.encode(found[0], None, [])))
    return PublicationReader(data, "a test").block(received)


@given(st.lists(publications(), max_size=6))
def test_publications_round_trip(batch: list[m.Publication]) -> None:
    block = decoded(PublicationBlock.of(batch, IS_CONFIRMED))
    assert block.publications() == tuple(batch)
    assert block.flags.tolist() == [IS_CONFIRMED] * len(batch)


@given(st.lists(publications(), max_size=6), st.data())
def test_some_publications_of_a_block(batch: list[m.Publication], data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(batch) - 1) if batch else st.nothing()))
    block = PublicationBlock.of(batch).select(np.array(indices, np.int64))
    assert block.publications() == tuple(batch[index] for index in indices)
    assert decoded(block).publications() == block.publications()


def block(**changes: object) -> PublicationBlock:
    stamps = [m.Stamp("a", 5, 1), m.Stamp("b", 6, 2)]
    made = PublicationBlock.of([m.Publication(Event({"x": 1}), each, "p") for each in stamps])
    columns = {name: getattr(made, name) for name in PublicationBlock.__dataclass_fields__}
    return PublicationBlock(**{**columns, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"origin_of": np.array([0, 2])}, "brokers of stamps: index 2 of 2"),
        ({"publisher_of": np.array([0, 1])}, "publishers: index 1 of 1"),
        ({"flags": np.array([0, 2])}, "a flag that has no meaning"),
        ({"publishers": [""]}, "the head is malformed"),
        ({"origins": [("a", 5), ("b", 2**64 - 1)]}, "the head is malformed"),
    ],
)
def test_malformed_columns_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decoded(block(**changes))


def test_stamps_must_be_as_many_as_events() -> None:
    one = block()
    with pytest.raises(ProtocolError, match="2 stamps, but 1 events"):
        decoded(_with_events(one, one.events.select(np.array([0]))))


def _with_events(made: PublicationBlock, events: object) -> PublicationBlock:
    class Uneven(PublicationBlock):
        __slots__ = ()

        def __len__(self) -> int:
            return 2

    columns = {name: getattr(made, name) for name in PublicationBlock.__dataclass_fields__}
    return Uneven(**{**columns, "events": events})


def test_indices() -> None:
    check_indices(np.zeros(0, np.int64), 0, "nothing")
    with pytest.raises(ProtocolError, match="a test: index 1 of 1"):
        check_indices(np.array([0, 1]), 1, "a test")
