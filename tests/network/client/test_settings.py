from __future__ import annotations

import math

import pytest

from tidegate.errors import NetworkError
from tidegate.network.client.address import BrokerAddress
from tidegate.network.client.settings import ClientSettings

BROKERS = [BrokerAddress.parse("tidegate://localhost")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"brokers": []}, "at least one broker"),
        ({"identity": ""}, "1 to 200 characters"),
        ({"identity": "x" * 201}, "1 to 200 characters"),
        ({"ack": "never"}, "'next' or 'manual'"),
        ({"epoch": -1}, "an epoch"),
        ({"timeout_s": 0}, "timeout"),
        ({"timeout_s": math.inf}, "timeout"),
        ({"heartbeat_s": 0.01}, "heartbeat"),
        ({"credit_events": 0}, "at least one event"),
        ({"slow": "latest"}, "slow_key"),
        ({"slow_key": "x"}, "slow_key"),
    ],
)
def test_settings_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        ClientSettings(**{"brokers": BROKERS, "identity": "desk", **options})  # type: ignore[arg-type]


def test_the_rest_has_defaults() -> None:
    settings = ClientSettings(BROKERS, "desk", slow="latest", slow_key="symbol")
    assert (settings.durable, settings.ack, settings.reconnect) == (False, "next", True)
