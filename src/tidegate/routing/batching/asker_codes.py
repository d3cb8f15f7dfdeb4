"""Codes of askers: an integer for each, with its kind in the lowest bits.

Arrays of codes say who has asked for the filters that the events of a batch match.

    kind          number above it
    NAMED         the handle of a named subscription (`NamedSubscriptions.handle`)
    UNNAMED       the number of the client's session (`Sessions.number`)
    NEIGHBOUR     a neighbour and a spanning tree, as `hop_askers` lists them
    MONITOR       the number of a monitor of patterns
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from tidegate.matching.arrays import I32, I64
from tidegate.routing.askers import MonitorAsker, NamedAsker, NeighbourAsker
from tidegate.routing.clients.named_subscriptions import NamedSubscriptions
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.messages import Client, Key, Peer

NAMED, UNNAMED, NEIGHBOUR, MONITOR = range(4)
KIND_BITS = 2
KIND_MASK = (1 << KIND_BITS) - 1


AskerPairs = tuple[I32, I64]
"""Pairs of an event and an asker: the numbers of the events, and the codes of the askers."""


class AskerCodes:
    """The codes of the askers of one broker."""

    def __init__(self, named: NamedSubscriptions, sessions: Sessions) -> None:
        self._named = named
        self._sessions = sessions
        self._hop_numbers: dict[tuple[Peer, Peer | None], int] = {}
        self.hop_askers: list[NeighbourAsker] = []
        """An asker for each neighbour and tree; which of its filters matched does not matter."""

    def of(self, askers: Iterable[Hashable]) -> I64:
        """The codes of some askers."""
        return np.array([self.code(each) for each in askers], np.int64)

    def code(self, asker: Hashable) -> int:
        """The code of an asker that has asked for something at present."""
        match asker:
            case NamedAsker(client, name):
                return self._named.handle(client, name) << KIND_BITS | NAMED
            case NeighbourAsker(peer, key):
                return self._hop_number(peer, key.tree) << KIND_BITS | NEIGHBOUR
            case MonitorAsker(number):
                return number << KIND_BITS | MONITOR
            case Client():
                return self._sessions.number(asker) << KIND_BITS | UNNAMED
        raise TypeError(f"{asker!r} is no asker")

    def _hop_number(self, peer: Peer, tree: Peer | None) -> int:
        number = self._hop_numbers.setdefault((peer, tree), len(self.hop_askers))
        if number == len(self.hop_askers):
            self.hop_askers.append(NeighbourAsker(peer, Key(0, tree)))
        return number
