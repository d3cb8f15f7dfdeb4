"""Addresses in the settings of a broker: where it listens, and where its neighbours do."""

from __future__ import annotations

import ipaddress
import socket

from tidegate.errors import SettingsError


def listen_address(text: str) -> tuple[str, int]:
    """Host and port of a listener; an IPv6 host is in brackets.

    >>> listen_address("127.0.0.1:7070"), listen_address("[::1]:7071")
    (('127.0.0.1', 7070), ('::1', 7071))
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise SettingsError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:7070")
    if host.startswith("[") != host.endswith("]") or (":" in host and host[0] != "["):
        raise SettingsError(f"{text!r}: an IPv6 address is in brackets, as [::1]:7070")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; of a name, all that it stands for.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("::")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False  # who cannot be found may be anyone later
    addresses = [str(each[4][0]) for each in found]
    return bool(addresses) and all(ipaddress.ip_address(each).is_loopback for each in addresses)


def check_reach(host: str, without_authentication: bool) -> None:
    """Refuse a listener that anyone on the network could use, unless it was asked for by name."""
    if without_authentication or is_loopback(host):
        return
    raise SettingsError(
        f"{host} can be reached from other machines, and this broker asks nobody who they are; "
        "listen at 127.0.0.1, give the file of the broker a table [auth], or say "
        "--without-authentication"
    )
