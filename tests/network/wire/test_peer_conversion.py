from __future__ import annotations

import pytest
from hypothesis import given, settings

from support.strategies import filters
from support.wire_links import comparable, peer_messages
from tidegate.errors import ProtocolError
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import DEFAULT_LIMITS
from tidegate.network.wire import peer_messages as w
from tidegate.network.wire.filter_shapes import ReceivedFilterShapes, SentFilterShapes
from tidegate.network.wire.peer_conversion import (
    PeerReader,
    PeerWriter,
    examination_of,
    wire_examination,
)
from tidegate.routing import messages as m
from tidegate.routing.validation import size_problem


def crossed(message: m.PeerMessage | m.Refused) -> m.PeerMessage | m.Refused:
    """A message after both conversions."""
    writer, received = PeerWriter(SentFilterShapes()), ReceivedFilterShapes()
    wire = writer.write(message)
    for each in writer.definitions:
        received.define(memoryview(each))
    return PeerReader(received).read(wire, iter(writer.publications))


@settings(max_examples=50)
@given(peer_messages)
def test_messages_survive_both_conversions(message: m.PeerMessage | m.Refused) -> None:
    assert comparable(crossed(message)) == comparable(message)


@given(filters)
def test_a_neighbour_finds_a_filter_too_large_only_where_its_sender_does(filter: Filter) -> None:
    message = crossed(m.FilterDelta(((m.Key(1, None), filter),)))
    assert isinstance(message, m.FilterDelta)
    [(_, came)] = message.added
    assert isinstance(came, Filter)
    assert came.shape_and_row == filter.shape_and_row
    # the order of a conjunction may differ, and so may parentheses that are not needed
    assert len(str(came)) <= len(str(filter))


def test_a_long_disjunction_is_not_multiplied_out() -> None:
    terms = " and ".join(f"({'x' * 500}{n} = 1 or {'y' * 500}{n} = 2)" for n in range(8))
    filter = parse(terms)
    message = crossed(m.FilterDelta(((m.Key(1, None), filter),)))
    assert isinstance(message, m.FilterDelta)
    came = message.added[0][1]
    assert isinstance(came, Filter)
    assert size_problem(came, DEFAULT_LIMITS) is None
    assert len(str(Filter.of_shape(*filter.shape_and_row))) > DEFAULT_LIMITS.length_chars_max


def test_events_that_belong_to_no_message_are_refused() -> None:
    publication = m.Publication(Event({"x": 1}), m.Stamp("a", 1, 1), "p")
    reader = PeerReader(ReceivedFilterShapes())
    with pytest.raises(ProtocolError, match="Echo has more events than it says"):
        reader.read(w.Echo("a", 1), iter([publication]))


@pytest.mark.parametrize(
    "examination", [None, m.Examination("a", 0, 0), m.Examination("b", 2**300 + 1, 2**64 - 1)]
)
def test_examinations_may_have_many_brokers(examination: m.Examination | None) -> None:
    assert examination_of(wire_examination(examination)) == examination
