"""Askers: who has asked a broker for a filter, or has given it an advertisement.

A table of a broker (see `forwarding`) notes with each filter who asked for it: clients and monitors
of this broker, named subscriptions of its clients, and neighbours. An event that matches the filter
goes to them; the filter itself is forwarded away from them.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.routing.messages import Client, Key, Peer


class NamedAsker(NamedTuple):
    """A named subscription of a client, which is updated and cancelled by its name."""

    client: Client
    name: str


class MonitorAsker(NamedTuple):
    """A monitor of this broker, which asks for the events of some steps of a pattern."""

    number: int


class NeighbourAsker(NamedTuple):
    """A neighbour, with the key under which it has sent the filter."""

    peer: Peer
    key: Key


LocalAsker = Client | MonitorAsker | NamedAsker
"""Who asks at this broker itself; a bare client asks by subscriptions without a name."""
Asker = LocalAsker | NeighbourAsker
