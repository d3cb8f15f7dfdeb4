"""The settings of a broker process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tidegate.network.store.retention import Retention
from tidegate.routing.broker import BrokerLimits


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How much a broker takes from one client, and keeps for it."""

    connections_max: int = 10_000
    """Connections of all clients and neighbours together."""
    requests_max: int = 1_000
    """Requests of one client without an answer."""
    frame_bytes_max: int = 1 << 24
    publish_events_max: int = 65_536
    """Events of one client that came and were not handled yet; likewise bytes."""
    publish_bytes_max: int = 1 << 24
    queue_events_max: int = 100_000
    """Deliveries that wait in memory for one client."""
    durable_queue_events_max: int = 10_000_000
    """Deliveries on disk for one durable client."""
    block_s: float = 5.0
    """How long a subscriber with the policy `block` may hold back those who publish to it."""
    handshake_s: float = 10.0
    """How long a connection may take to say who it is."""
    heartbeat_ms: int = 10_000
    grace_s: float = 30.0
    """How long the session of a client outlives its connection; a durable one does not end."""
    drain_s: float = 10.0
    """How long a broker that stops may take to handle what has come."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Where a neighbour listens to which this broker connects."""

    host: str
    port: int
    token: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What a broker process is started with."""

    name: str
    host: str = "127.0.0.1"
    port: int = 7070
    """0 for a free port."""
    data: Path | None = None
    """The folder of the store; without one nothing is durable, and confirmations are refused."""
    routing: str = "subscription"
    architecture: str = "acyclic"
    """How the brokers of the network are connected, the same at all of them."""
    domain: str = "main"
    peers: tuple[PeerAddress, ...] = ()
    """The neighbours to which this broker connects; others connect to it. In a hierarchy the
    master."""
    link_cost_us: int = 1_000
    limits: ClientLimits = field(default_factory=ClientLimits)
    broker_limits: BrokerLimits = field(default_factory=BrokerLimits)
    retention: Retention = field(default_factory=Retention)

    @property
    def is_hierarchical(self) -> bool:
        """Whether a broker connects to its master."""
        return self.architecture == "hierarchical"
