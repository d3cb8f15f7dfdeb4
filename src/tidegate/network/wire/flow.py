"""Messages that keep a connection going: credits, acknowledgements, confirmations, heartbeats."""

from __future__ import annotations

import msgspec

from tidegate.network.wire.problems import Problem
from tidegate.network.wire.values import Number


class Heartbeat(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Nothing else was sent for a while; the sender is alive."""


class Credit(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """How much the peer may send on this connection, counted from its beginning.

    Both bounds hold; the event that reaches one may exceed it in bytes.
    """

    events: Number
    bytes: Number


class Ack(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A durable client has done with all deliveries up to a position."""

    position: Number


class LinkAck(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A broker has stored, or handled, all link messages up to a number."""

    number: Number


class Confirmed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """All publications up to a number that asked for it are safe, or were refused before."""

    number: Number


class NotPublished(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A publication was refused."""

    number: Number
    problem: Problem
