"""The entrance of a broker: how many connections there may be before anybody is asked who it is.

What a connection may send before its handshake is through is bounded by the protocol (one frame of
64 KB), so the limit on handshakes bounds the memory that strangers can take.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tidegate.errors import LimitError
from tidegate.network.server.settings import ClientLimits


class Entrance:
    """Counts connections, and says whether one more may come."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._hosts: dict[Any, str] = {}
        """By connection: the address of its machine."""
        self._by_host: Counter[str] = Counter()
        self._strangers: set[Any] = set()
        """Connections whose handshake is not through."""

    def __len__(self) -> int:
        return len(self._hosts)

    def enter(self, connection: Any, address: str) -> LimitError | None:
        """Count a connection; returns why it may not stay. It must leave in any case."""
        host, limits = address.rpartition(":")[0], self._limits
        problem = None
        if len(self._hosts) >= limits.connections_max:
            problem = LimitError(
                "the broker takes no more connections", "connections_max", limits.connections_max
            )
        elif self._by_host[host] >= limits.connections_per_address_max:
            problem = LimitError(
                f"the broker takes no more connections from {host}",
                "connections_per_address_max",
                limits.connections_per_address_max,
            )
        elif len(self._strangers) >= limits.handshakes_max:
            problem = LimitError(
                "too many connections have not said yet who they are",
                "handshakes_max",
                limits.handshakes_max,
            )
        self._hosts[connection] = host
        self._by_host[host] += 1
        self._strangers.add(connection)
        return problem

    def introduced(self, connection: Any) -> None:
        """Note that the handshake of a connection is through."""
        self._strangers.discard(connection)

    def leave(self, connection: Any) -> None:
        """Count a connection no more."""
        host = self._hosts.pop(connection, None)
        if host is not None:
            self._by_host[host] -= 1
            if not self._by_host[host]:
                del self._by_host[host]
            self._strangers.discard(connection)
