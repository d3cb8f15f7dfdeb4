"""The handshake: who connects, by which version and within which limits.

    initiator                               acceptor
    Hello     ------------------------->
              <-------------------------    Welcome, or Goodbye

Until `Welcome` nothing else is sent, and no frame is larger than `HANDSHAKE_BYTES_MAX`. A client
and a broker that links to a neighbour both begin with `Hello`; `role` tells which it is.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tidegate.network.wire.problems import Problem
from tidegate.network.wire.values import Name, Number

VERSION = 1
"""The only version of the protocol so far."""
HANDSHAKE_BYTES_MAX = 1 << 16
FRAME_BYTES_MAX = 1 << 24

SlowPolicy = Literal["block", "drop-oldest", "drop-newest", "latest", "disconnect"]
"""What becomes of deliveries that a client does not take: see docs/protocol.md."""
_Text = Annotated[str, Meta(max_length=4_096)]
_FrameBytes = Annotated[int, Meta(ge=HANDSHAKE_BYTES_MAX, le=1 << 31)]


class Hello(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The first frame of an initiator."""

    identity: Name
    """The identity of the client, or the name of the broker."""
    session: Number
    """Chosen at random when the process begins; the same after each reconnection."""
    role: Literal["client", "broker"] = "client"
    token: _Text | None = None
    protocol: Literal["tidegate"] = "tidegate"
    versions: tuple[Number, Number] = (VERSION, VERSION)
    """The lowest and the highest version that the initiator speaks."""
    is_durable: bool = False
    """Whether the broker keeps subscriptions and undelivered events while the client is away."""
    epoch: Number = 0
    """Publications are numbered within an epoch; a broker stores each number once."""
    answered: Number = 0
    """All requests of this session up to this number are answered."""
    received: Number = 0
    """The position of the last delivery, or the number of the last link message, that came."""
    slow_policy: SlowPolicy = "drop-oldest"
    slow_key: Name | None = None
    """For `latest`: the attribute of which only the last event of each value is kept."""
    queue_max: Number = 0
    """Deliveries that the broker keeps beyond the credit; 0 for the broker's own bound."""
    frame_bytes_max: _FrameBytes = FRAME_BYTES_MAX
    """The largest frame that the initiator takes."""
    credit_events: Number = 0
    """Deliveries (of a link: events) that the acceptor may send at first; see `Credit`."""
    credit_bytes: Number = 0
    heartbeat_ms: Annotated[int, Meta(ge=100, le=600_000)] = 10_000
    """The initiator is never silent for longer; three times this long means that it is gone."""
    software: _Text = ""

    def __repr__(self) -> str:
        """Without the token, which must not get into a log."""
        return f"Hello({self.identity!r}, session={self.session}, role={self.role!r})"


class Welcome(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The acceptor admits the initiator."""

    broker: Name
    session: Number
    """Chosen at random when the broker's process begins."""
    is_resumed: bool = False
    """Whether the session goes on: its subscriptions are there, and requests are not repeated."""
    version: Number = VERSION
    handled: Number = 0
    """The last request of the session that was handled; answers after `Hello.answered` follow."""
    published: Number = 0
    """The last publication of the epoch that is stored; repeating it has no effect."""
    received: Number = 0
    """Of a link: the number of the last message that came."""
    requests_max: Number = 10_000
    """The requests of a client that may be without an answer at a time."""
    frame_bytes_max: _FrameBytes = FRAME_BYTES_MAX
    credit_events: Number = 0
    credit_bytes: Number = 0
    heartbeat_ms: Annotated[int, Meta(ge=100, le=600_000)] = 10_000
    time_us: Number = 0
    """The clock of the acceptor."""
    software: _Text = ""
    queued: Number = 0
    """The position of the last event that waits for a durable client; 0 if none does."""


class Goodbye(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The last frame of either side: why it closes the connection."""

    problem: Problem
    retry_ms: Number | None = None
    """When to connect again; None if that would be of no use."""
