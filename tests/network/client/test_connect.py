from __future__ import annotations

import pytest

from tidegate.errors import NetworkError
from tidegate.network.client.connect import connect


def test_a_client_is_made_without_a_connection() -> None:
    client = connect("tidegate://localhost:1", identity="desk")
    assert (client.identity, client.is_connected) == ("desk", False)
    assert connect().identity != connect().identity


def test_durable_clients_have_an_identity() -> None:
    with pytest.raises(NetworkError, match="needs an identity"):
        connect(durable=True)


def test_urls_are_checked_at_once() -> None:
    with pytest.raises(NetworkError, match="is not the URL"):
        connect(["tidegate://localhost", "nowhere"])
