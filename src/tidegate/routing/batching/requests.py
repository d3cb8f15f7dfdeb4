"""The answer to a batch of requests of clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.errors import TidegateError
from tidegate.routing.messages import Outgoing


@dataclass(frozen=True, slots=True)
class HandledRequests:
    """What became of a batch of requests."""

    errors: Mapping[int, TidegateError]
    """Why a request was refused, by its place in the batch; it has changed nothing."""
    sent: Outgoing
    """Messages in the order in which they must be sent, without a `Refused` for each error."""
