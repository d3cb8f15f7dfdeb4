from __future__ import annotations

import ssl

import pytest

from tidegate.errors import NetworkError
from tidegate.network.client.address import BrokerAddress


@pytest.mark.parametrize(
    ("url", "text", "is_encrypted", "is_websocket"),
    [
        ("tidegate://localhost", "tidegate://localhost:7070", False, False),
        ("tidegates://a.example:7", "tidegates://a.example:7", True, False),
        ("ws://localhost:80/feed", "ws://localhost:80/feed", False, True),
        ("wss://[::1]:8", "wss://[::1]:8/", True, True),
    ],
)
def test_urls(url: str, text: str, is_encrypted: bool, is_websocket: bool) -> None:
    address = BrokerAddress.parse(url)
    assert str(address) == text
    assert (address.is_encrypted, address.is_websocket) == (is_encrypted, is_websocket)
    assert (address.tls(None) is not None) == is_encrypted


def test_a_context_of_the_program_is_used() -> None:
    context = ssl.create_default_context()
    assert BrokerAddress.parse("tidegates://a").tls(context) is context
    assert BrokerAddress.parse("tidegate://a").tls(context) is None


@pytest.mark.parametrize(
    "url", ["", "localhost:7070", "http://a", "tidegate://", "tidegate://a:x", "tidegate://a:99999"]
)
def test_other_texts_are_no_urls(url: str) -> None:
    with pytest.raises(NetworkError, match="is not the URL of a broker"):
        BrokerAddress.parse(url)


@pytest.mark.parametrize("url", ["tidegate://me:secret@a", "tidegate://a?x=1", "tidegate://a#b"])
def test_secrets_do_not_belong_into_a_url(url: str) -> None:
    with pytest.raises(NetworkError, match="a token is given as token"):
        BrokerAddress.parse(url)
