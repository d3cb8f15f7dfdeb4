"""Frames must fit the batch that holds their events."""

from __future__ import annotations

import pytest

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.matching.batches import EventBatch
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.batching.incoming import IncomingEvents, NotifiedFrame, PublishedFrame
from tidegate.routing.messages import Client, Stamp

TWO = EventBatch.of_events([Event({"x": 1}), Event({"x": 2})])


def notified(length: int, publishers: int) -> NotifiedFrame:
    return NotifiedFrame(
        "peer",
        StampColumns.of([Stamp("far", 1, number) for number in range(length)]),
        Coded.constant("pub", publishers),
        Coded.constant(None, length),
        Coded.constant(None, length),
    )


def test_frames_that_make_up_the_batch_are_taken() -> None:
    IncomingEvents(TWO, [PublishedFrame(Client("ann"), 1), notified(1, 1)]).check()


def test_frames_with_other_lengths_are_not() -> None:
    with pytest.raises(RoutingError, match="the frames have 3 events and the batch has 2"):
        IncomingEvents(TWO, [PublishedFrame(Client("ann"), 3)]).check()
    with pytest.raises(RoutingError, match="'peer' has 2 events and columns of"):
        IncomingEvents(TWO, [notified(2, 1)]).check()
