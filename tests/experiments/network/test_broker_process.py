from __future__ import annotations

import socket

import pytest

from tidegate.errors import NetworkError
from tidegate.experiments.network.broker_process import BrokerProcess


@pytest.mark.slow
def test_a_broker_listens_until_it_is_left() -> None:
    with BrokerProcess("a") as broker:
        socket.create_connection(("127.0.0.1", broker.port), 10).close()
        assert broker.resident_bytes > 1 << 20
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", broker.port), 10)


@pytest.mark.slow
def test_a_broker_that_does_not_start_says_why() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = BrokerProcess("a", port=taken.getsockname()[1])
        with pytest.raises(NetworkError, match="cannot listen at"), broker:
            pass
