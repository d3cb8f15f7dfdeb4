"""The settings of a broker are safe by default."""

from __future__ import annotations

from tidegate.network.server.settings import BrokerSettings, ClientLimits


def test_defaults_are_safe() -> None:
    settings = BrokerSettings("a")
    assert settings.host == "127.0.0.1"
    assert settings.data is None
    limits = ClientLimits()
    assert limits.handshake_s <= 10
    assert limits.requests_max <= 10_000
