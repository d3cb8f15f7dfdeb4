from __future__ import annotations

import pytest

from tidegate.errors import NetworkError
from tidegate.experiments.network.broker_process import BrokerProcess
from tidegate.experiments.network.publisher import Publisher, confirmed_one_by_one, cut
from tidegate.language.events import Event
from tidegate.network.wire.event_block import EventBlock

EVENTS = EventBlock.of([Event({"a": each}) for each in range(5)])


def test_cut() -> None:
    rows = [each.rows for each in cut(EVENTS, 2)]
    assert rows == [[[0], [1]], [[2], [3]], [[4]]]


@pytest.mark.slow
def test_a_publisher_numbers_its_events_and_notices_a_refusal() -> None:
    with BrokerProcess() as broker:
        publisher = Publisher(broker.port)
        publisher.publish(EVENTS, 2)
        publisher.wait_until_taken()
        assert publisher.published == 5
        assert publisher.publish_at(EVENTS, 1_000, 0.02, 0.005) == 20
        publisher.wait_until_taken()
        publisher.publish(EVENTS, 2, confirm=True)  # a broker without a store confirms nothing
        with pytest.raises(NetworkError, match="refused"):
            publisher.wait_until_confirmed()
        publisher.close()
        with pytest.raises(NetworkError, match="refused"):
            confirmed_one_by_one(broker.port, EVENTS, 2, 5.0)
