"""Addresses on the command line: where a broker listens, and who can reach it."""

from __future__ import annotations

import ipaddress

import click

from tidegate.errors import TidegateError


def parse_address(text: str, option: str = "--listen") -> tuple[str, int]:
    """Host and port of an address; an IPv6 host is in brackets.

    >>> parse_address("127.0.0.1:7070"), parse_address("[::1]:7071")
    (('127.0.0.1', 7070), ('::1', 7071))
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise click.UsageError(f"{option} takes HOST:PORT, such as 127.0.0.1:7070, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_reach(host: str, without_authentication: bool) -> None:
    """Refuse a listener that anyone on the network could use, unless it was asked for by name."""
    if is_loopback(host) or without_authentication:
        return
    raise TidegateError(
        f"{host} can be reached from other machines, and this broker asks nobody who they are; "
        "listen at 127.0.0.1, or say --without-authentication"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name, which may stand for any address
