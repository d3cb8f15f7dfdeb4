"""How much clients may publish: a window that moves on as the broker takes what they send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.network.wire.flow import Credit

if TYPE_CHECKING:
    from tidegate.network.server.served_connection import ServedConnection
    from tidegate.network.wire.deliveries import Publish


class PublishCredit:
    """Grants each connection credit for what it publishes."""

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._taken: dict[ServedConnection, list[int]] = {}
        """By connection: events and bytes taken, and those up to which credit was granted."""

    def connected(self, connection: ServedConnection) -> None:
        """Begin with the credit that `Welcome` has granted."""
        self._taken[connection] = [0, 0, 0, 0]

    def ended(self, connection: ServedConnection) -> None:
        self._taken.pop(connection, None)

    def took(self, connection: ServedConnection, publish: Publish) -> None:
        """Take events off a connection; grants more when half of the window is used."""
        taken = self._taken.get(connection)
        if taken is None:
            return
        taken[0] += len(publish)
        taken[1] += int(publish.events.sizes.sum())
        used_events, used_bytes = taken[0] - taken[2], taken[1] - taken[3]
        if used_events * 2 >= self._events_max or used_bytes * 2 >= self._bytes_max:
            taken[2:] = taken[:2]
            connection.send(Credit(taken[0] + self._events_max, taken[1] + self._bytes_max))
