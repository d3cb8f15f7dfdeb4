"""The settings of a broker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tidegate.errors import SettingsError
from tidegate.language.spaces import Space
from tidegate.network.server.access.settings import AuthSettings, TlsSettings
from tidegate.network.server.configuration.addresses import listen_address
from tidegate.network.server.configuration.listeners import AdminTable, WebSocketTable
from tidegate.network.store.retention import Retention
from tidegate.routing.broker import BrokerLimits
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.settings_file import Within

Count = Annotated[int, Within(1)]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How much a broker takes from one client, and keeps for it."""

    connections_max: Count = 10_000
    """Connections of all clients and neighbours together."""
    connections_per_address_max: Count = 10_000
    handshakes_max: Count = 1_000
    """Connections whose handshake is not through."""
    requests_max: Count = 1_000
    """Requests of one client without an answer."""
    frame_bytes_max: Annotated[int, Within(1 << 16, 1 << 31)] = 1 << 24
    publish_events_max: Count = 65_536
    """Events of one client that came and were not handled yet; likewise bytes."""
    publish_bytes_max: Count = 1 << 24
    event_bytes_max: Count = 1 << 24
    """Of the body of one event."""
    event_rate_max: Annotated[float, Within(1)] | None = None
    """Events in a second that an identity may publish; likewise requests."""
    request_rate_max: Annotated[float, Within(1)] | None = None
    over_rate: Literal["slow", "refuse"] = "slow"
    """What becomes of more: they wait, or are refused."""
    queue_events_max: Count = 100_000
    """Deliveries that wait in memory for one client."""
    durable_queue_events_max: Count = 10_000_000
    """Deliveries on disk for one durable client."""
    block_s: Annotated[float, Within(0)] = 5.0
    """How long a subscriber with the policy `block` may hold back those who publish to it."""
    handshake_s: Annotated[float, Within(0.1)] = 10.0
    """How long a connection may take to say who it is."""
    heartbeat_ms: Annotated[int, Within(100, 600_000)] = 10_000
    grace_s: Annotated[float, Within(0)] = 30.0
    """How long the session of a client outlives its connection; a durable one does not end."""
    drain_s: Annotated[float, Within(0)] = 10.0
    """How long a broker that stops may take to handle what has come."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Where a neighbour listens to which this broker connects."""

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    tls: bool = False

    @classmethod
    def parse(cls, url: str) -> PeerAddress:
        """Read a URL; raises SettingsError.

        >>> PeerAddress.parse("tidegate://127.0.0.1:7070").port
        7070
        """
        scheme, separator, address = url.partition("://")
        try:
            if not separator or scheme not in ("tidegate", "tidegates"):
                raise SettingsError("the scheme is wrong")
            return cls(*listen_address(address), tls=scheme == "tidegates")
        except SettingsError:
            raise SettingsError(
                f"a neighbour is tidegate://HOST:PORT, or tidegates:// for TLS, not {url!r}"
            ) from None


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
    store: Retention = field(default_factory=Retention)
    summaries: SummarySettings | None = None
    """Of the routing by summaries, the same at all brokers of the network."""
    substrate: str = "columnar"
    """What finds the filters that an event matches."""
    spaces: tuple[Space, ...] = ()
    """Either all brokers of a network have spaces, or none has."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Values of `@name` in the filters of this broker's clients."""
    tls: TlsSettings | None = None
    auth: AuthSettings | None = None
    admin: AdminTable | None = None
    websocket: WebSocketTable | None = None
    without_authentication: bool = False
    """Whether anyone may connect who reaches an address beyond this machine."""

    @property
    def is_hierarchical(self) -> bool:
        """Whether a broker connects to its master."""
        return self.architecture == "hierarchical"
