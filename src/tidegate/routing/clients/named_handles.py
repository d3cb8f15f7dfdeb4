"""Handles of named subscriptions: small numbers, with columns of what deliveries need to know."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I32, I64, Bools
from tidegate.routing.askers import NamedAsker

_FIRST_COUNT = 16


class NamedHandles:
    """The named subscriptions of a broker by number; the numbers of cancelled ones are reused.

    >>> from tidegate.routing.messages import Client
    >>> handles, cheap = NamedHandles(), NamedAsker(Client("ann"), "cheap")
    >>> handles.put(cheap, client=3, version=7, evolves=False)
    >>> handle = handles.of(cheap)
    >>> handle, handles.clients.item(handle), handles.versions.item(handle)
    (0, 3, 7)
    """

    def __init__(self) -> None:
        self.clients: I32 = np.zeros(_FIRST_COUNT, np.int32)
        """The number of the session of the subscriber, by handle."""
        self.versions: I64 = np.zeros(_FIRST_COUNT, np.int64)
        """The present version, by handle."""
        self.evolving: Bools = np.zeros(_FIRST_COUNT, np.bool_)
        """Whether an event that matches in the table must be evaluated once more, by handle."""
        self._handles: dict[NamedAsker, int] = {}
        self._askers: list[NamedAsker] = []
        """By handle; that of a free handle is the last one that had it."""
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._handles)

    def of(self, asker: NamedAsker) -> int:
        """The handle of a subscription; raises KeyError."""
        return self._handles[asker]

    def asker(self, handle: int) -> NamedAsker:
        """The subscription that has a handle."""
        return self._askers[handle]

    def put(self, asker: NamedAsker, client: int, version: int, evolves: bool) -> None:
        """Give a subscription a handle unless it has one, and note its present version."""
        handle = self._handles.get(asker)
        if handle is None:
            handle = self._free.pop() if self._free else len(self._askers)
            self._handles[asker] = handle
            self._askers[handle : handle + 1] = [asker]
            if handle >= len(self.clients):
                self._grow()
        self.clients[handle] = client
        self.versions[handle] = version
        self.evolving[handle] = evolves

    def release(self, asker: NamedAsker) -> None:
        """Free the handle of a subscription; raises KeyError if it has none."""
        self._free.append(self._handles.pop(asker))

    def _grow(self) -> None:
        self.clients = np.concatenate([self.clients, np.zeros_like(self.clients)])
        self.versions = np.concatenate([self.versions, np.zeros_like(self.versions)])
        self.evolving = np.concatenate([self.evolving, np.zeros_like(self.evolving)])
