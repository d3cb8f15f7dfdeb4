"""Addresses of a broker, and who can reach them."""

from __future__ import annotations

import socket

import pytest

from tidegate.errors import SettingsError
from tidegate.network.server.configuration.addresses import (
    check_reach,
    is_loopback,
    listen_address,
)


def test_hosts_and_ports() -> None:
    assert listen_address("localhost:0") == ("localhost", 0)
    assert listen_address("[::]:65535") == ("::", 65_535)


@pytest.mark.parametrize(
    "text",
    ["7070", "host:", "host:99999", ":1", "host:-1", "host:\u0661", "", "::1:7070", "[::1:7070"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(SettingsError, match=r"HOST:PORT|in brackets"):
        listen_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "0:0:0:0:0:0:0:1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
    check_reach(host, without_authentication=False)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "0", "192.168.1.7", "::ffff:0.0.0.0", "fe80::1%lo", "", "::ffff:192.168.1.7",
     "no-such-host.invalid", "a..b", "x" * 300],
)  # fmt: skip
def test_what_others_may_reach_is_refused(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(SettingsError, match="--without-authentication"):
        check_reach(host, without_authentication=False)
    check_reach(host, without_authentication=True)


def test_a_name_is_loopback_if_all_its_addresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*hosts: str) -> None:
        rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in hosts]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: rows)

    found("127.0.0.1", "::1")
    assert is_loopback("both")
    found("127.0.0.1", "192.168.1.7")
    assert not is_loopback("both")
    found()
    assert not is_loopback("nobody")
