from __future__ import annotations

import pytest

from tidegate.errors import NetworkError
from tidegate.experiments.network.broker_process import BrokerProcess
from tidegate.experiments.network.load import Wanted
from tidegate.experiments.network.receivers import Expect, Receivers, Update


@pytest.mark.slow
def test_subscribers_update_and_count() -> None:
    wanted = [[Wanted(0, "volume > :least", 1)], [Wanted(1, "volume > :least", 2)]]
    with BrokerProcess() as broker:
        receivers = Receivers(broker.port, wanted)
        assert receivers.wait_until_subscribed() > 0
        receivers.tell(Update(500))
        receivers.tell(Expect(1, 0.2))
        updated = receivers.updated()
        assert set(updated.least) <= {0, 1}
        count = receivers.count()
        assert (count.deliveries, count.matches, count.missed) == (0, 0, 0)
        receivers.close()


@pytest.mark.slow
def test_what_the_broker_refuses_ends_the_process() -> None:
    with BrokerProcess() as broker:
        receivers = Receivers(broker.port, [[Wanted(0, "a = 1 or b = 2", 1)]])
        with pytest.raises(NetworkError, match="has failed"):
            receivers.wait_until_subscribed()
        receivers.close()
