from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.wire_messages import events
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.network.wire.event_batches import batch_of
from tidegate.network.wire.event_block import EventBlock


@given(st.lists(events(), max_size=6))
def test_a_batch_has_the_events_of_the_block(batch: list[Event]) -> None:
    columns = batch_of(EventBlock.of(batch))
    assert columns.length == len(batch)
    for index, event in enumerate(batch):
        found = columns.event(index).attributes
        assert found == event.attributes
        assert {n: type(v) for n, v in found.items()} == {
            n: type(v) for n, v in event.attributes.items()
        }
        time_us = columns.time(index)
        assert (None if time_us is None else from_us(time_us)) == event.time


def test_types_of_one_attribute_are_apart() -> None:
    batch = batch_of(EventBlock.of([Event({"a": 1}), Event({"a": True}), Event({"a": 2})]))
    assert [(name, column.to_pylist()) for name, column in batch.columns] == [
        ("a", [None, True, None]),
        ("a", [1, None, 2]),
    ]
