"""What clients have done and seen, as they log it: a line of JSON for each step.

A client appends to a log of its own, with one system call a line, so what a killed process has
logged is there. Times are those of the machine's monotonic clock, which all processes share: a
record before a step (`Publish`, `Change`) has a time before it, a record after a step (`Confirmed`,
`InForce`, `Deliver`) one after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

Scalar = bool | int | float | str


class Record(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """One line of a log."""

    client: str
    at_ns: int = msgspec.field(default_factory=time.monotonic_ns)


class Began(Record, frozen=True, tag=True):
    """A process of the client begins."""


class Drained(Record, frozen=True, tag=True):
    """The client has had all that was published before; it takes no more."""


class Publish(Record, frozen=True, tag=True):
    """An event is about to be published; the same again if it was not confirmed."""

    number: int
    attributes: dict[str, Scalar]
    time_us: int


class Confirmed(Record, frozen=True, tag=True):
    """Publications up to a number are confirmed, except for those that were refused."""

    number: int


class NotPublished(Record, frozen=True, tag=True):
    """A publication was refused."""

    number: int


class Change(Record, frozen=True, tag=True):
    """A subscription is about to get this filter and these values."""

    name: str
    filter: str | None
    """None if it is about to end."""
    parameters: dict[str, Scalar] = {}
    evolve: str | None = None


class InForce(Record, frozen=True, tag=True):
    """The last change of a subscription is in force in the whole network."""

    name: str
    version: int
    origin_us: int | None = None


class Deliver(Record, frozen=True, tag=True):
    """An event was handed out, with the subscriptions and versions that it matched."""

    attributes: dict[str, Scalar]
    time_us: int
    matches: list[tuple[str, int]]
    position: int = 0
    """0 for a client that is not durable."""


class Ack(Record, frozen=True, tag=True):
    """A delivery is about to be acknowledged, with all before it."""

    position: int


AnyRecord = Began | Drained | Publish | Confirmed | NotPublished | Change | InForce | Deliver | Ack
_lines = msgspec.json.Decoder(AnyRecord)


class Log:
    """The log of one client, which a later process of it goes on with."""

    def __init__(self, path: Path, client: str) -> None:
        self.client = client
        self.before = read(path) if path.exists() else []
        """What earlier processes have logged."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, kind: type[Any], **fields: Any) -> None:
        """Append a record."""
        os.write(self._file, msgspec.json.encode(kind(client=self.client, **fields)) + b"\n")


def read(path: Path) -> list[AnyRecord]:
    """The records of a log; a last line that is cut off is left out."""
    lines = path.read_bytes().split(b"\n")[:-1]
    return [_lines.decode(each) for each in lines]


def merged(logs: Iterable[list[AnyRecord]]) -> list[AnyRecord]:
    """The records of several logs in the order of their times."""
    return sorted((each for log in logs for each in log), key=lambda each: each.at_ns)
