"""What a client can be told when it connects."""

from __future__ import annotations

import math
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tidegate.errors import NetworkError
from tidegate.network.client.address import BrokerAddress
from tidegate.network.wire.handshake import SlowPolicy

AckMode = Literal["next", "manual"]
"""When an event of a durable client is acknowledged: when the next one is asked for, or by
`event.ack()`."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a client; see `tidegate.connect`."""

    brokers: Sequence[BrokerAddress]
    identity: str
    token: str | None = field(default=None, repr=False)
    durable: bool = False
    ack: AckMode = "next"
    epoch: int | None = None
    tls: ssl.SSLContext | None = None
    timeout_s: float = 30.0
    reconnect: bool = True
    credit_events: int = 10_000
    credit_bytes: int = 1 << 26
    slow: SlowPolicy = "drop-oldest"
    slow_key: str | None = None
    queue_max: int = 0
    heartbeat_s: float = 10.0

    def __post_init__(self) -> None:
        if not self.brokers:
            raise NetworkError("a client needs the URL of at least one broker")
        if not 0 < len(self.identity) <= 200:
            raise NetworkError("the identity of a client has 1 to 200 characters")
        if self.ack not in ("next", "manual"):
            raise NetworkError(f"ack is 'next' or 'manual', not {self.ack!r}")
        if self.epoch is not None and not 0 <= self.epoch < 2**63:
            raise NetworkError("an epoch is a number from 0 to 2**63 - 1")
        if not self.timeout_s > 0 or math.isinf(self.timeout_s):
            raise NetworkError(f"timeout is a number of seconds above 0, not {self.timeout_s!r}")
        if not 0.1 <= self.heartbeat_s <= 600:
            raise NetworkError(f"heartbeat is from 0.1 to 600 seconds, not {self.heartbeat_s!r}")
        if self.credit_events < 1 or self.credit_bytes < 1:
            raise NetworkError("a client must take at least one event and one byte at a time")
        if (self.slow == "latest") != (self.slow_key is not None):
            raise NetworkError(
                "slow='latest' goes with slow_key, the attribute that tells events apart"
            )
