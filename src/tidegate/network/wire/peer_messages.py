"""Messages between brokers in MessagePack: arrays whose first element is the kind of the message.

Each class here is the wire form of the routing message of the same name, and says what its fields
are; `to_wire` and `from_wire` convert. Events are not in these arrays: those of a message follow it
in one block of publications (see `links`), and the array says how many it takes.

Filters. A conjunction is the number of its shape and its row. Any other filter is its text: as a
shape it would be multiplied out, and the receiver could find too long what the sender did not.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.network.wire.problems import Reason
from tidegate.network.wire.values import Int64, Name, Number, SpaceName, WireValue

_Bits = Annotated[bytes, Meta(max_length=1 << 16)]
WireStamp = tuple[Name, Int64, Number]
WireKey = tuple[Number, Name | None]
_Digest = Annotated[bytes, Meta(min_length=8, max_length=8)]


class WireFilter(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A filter: the number of its shape and its row, or its text and no row."""

    body: Number | str
    row: list[WireValue] = []
    origin_us: Int64 | None = None
    """The time from which `t` counts; nil for a filter that does not evolve."""
    evolve: Int64 = 0
    """0 for none, else as `language.evolve.evolve_to_int` has it."""


class WireExamination(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.Examination`; bit 0 of the first byte is the first broker."""

    examiner: Name
    examined: _Bits
    brokers: _Digest


class WireAnnouncement(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `overlay.graph.Announcement`."""

    broker: Name
    version: Number
    costs_us: list[tuple[Name, Number]]


class WireNamed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """As `routing.messages.NamedSubscription`."""

    name: Name
    filter: WireFilter
    parameters: dict[Name, WireValue]
    since_us: Int64 | None
    version: Int64
    space: SpaceName | None


class WireKept(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A delivery of a `HandOver`: of one event, or of the events of a pattern."""

    pattern: str | None
    events: Number
    matches: list[tuple[Name, Int64]] = []
    unnamed: bool = False


class FilterDelta(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=1):
    """Filters that are added, removed, and updated cell by cell."""

    added: list[tuple[WireKey, WireFilter]]
    removed: list[WireKey]
    updated: list[tuple[WireKey, list[tuple[Number, WireValue]]]]


class AdvertisementDelta(
    msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=2
):
    """Advertisements, as text."""

    added: list[tuple[WireKey, str]]
    removed: list[WireKey]


class Notify(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=3):
    """One event, which follows. Many of them are a `Notifications`."""

    tree: Name | None
    targets: list[Name] | None
    examination: WireExamination | None


class Delegate(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=4):
    """A pattern, as text."""

    number: Number
    pattern: str
    levels: Number


class Undelegate(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=5):
    """The end of a delegation."""

    number: Number


class NotifyChain(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=6):
    """A chain of events, which follow."""

    number: Number
    events: Number


class Connect(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=7):
    """A request to become neighbours."""

    domain: str
    cost_us: Number
    master: bool
    announcements: list[WireAnnouncement]
    has_spaces: bool


class Accept(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=8):
    """The answer to `Connect`."""

    domain: str
    cost_us: Number
    announcements: list[WireAnnouncement]


class Disconnect(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=9):
    """The end of the link."""


class Announce(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=10):
    """News of the links of the domain."""

    announcements: list[WireAnnouncement]


class Probe(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=11):
    """A wave goes out."""

    origin: Name
    number: Number
    tree: Name | None


class Echo(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=12):
    """A wave comes back."""

    origin: Name
    number: Number


class Seek(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=13):
    """A client is looked for at its old broker."""

    origin: Name
    number: Number
    client: Name
    home: Name
    tree: Name | None
    moves: Number


class SeekReply(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=14):
    """Whether the client was found, and what it has; its patterns and advertisements as text."""

    origin: Name
    number: Number
    is_found: bool
    filters: list[WireFilter]
    patterns: list[str]
    advertisements: list[str]
    named: list[WireNamed]


class Release(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=15):
    """The new broker of a client has everything from now on."""

    origin: Name
    number: Number


class HandOver(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=16):
    """What was kept for the client; the events follow."""

    origin: Name
    number: Number
    kept: list[WireKept]
    missed: Number
    seen: list[WireStamp]


class SummaryUpdate(
    msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=17
):
    """A merged summary; the tables are those of docs/summaries.md."""

    number: Number
    brokers: list[Name]
    validity: list[tuple[Name, Int64, Int64]]
    tables: bytes
    is_urgent: bool


class SummaryWithdrawal(
    msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=18
):
    """The end of a summary."""

    number: Number


class SummaryReceived(
    msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=19
):
    """Summaries up to a number have come."""

    number: Number


class Drain(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=20):
    """All brokers are asked for `Drained`."""

    origin: Name
    number: Number
    tree: Name | None


class Drained(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=21):
    """No earlier event of a broker is on its way."""

    number: Number
    broker: Name
    stops: list[Name]


class Sync(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=23):
    """All filters and advertisements of a sender that has restarted; nil for those that are held,
    of which the digest is."""

    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    filters: list[tuple[WireKey, WireFilter]] | None
    advertisements: list[tuple[WireKey, str]] | None


class Trace(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=24):
    """An event is traced as if this were a `Notify`; the event follows."""

    origin: Name
    number: Number
    tree: Name | None
    targets: list[Name] | None
    examination: WireExamination | None


class Traced(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=25):
    """The report of a broker on a traced event, as JSON."""

    origin: Name
    number: Number
    report: Annotated[str, Meta(max_length=1 << 20)]


Plain = (
    FilterDelta | AdvertisementDelta | Sync | Notify | Delegate | Undelegate | NotifyChain | Connect
    | Accept | Disconnect | Announce | Probe | Echo | Seek | SeekReply | Release | HandOver
    | SummaryUpdate | SummaryWithdrawal | SummaryReceived | Drain | Drained
    | Trace | Traced
)  # fmt: skip


class Refused(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, tag=22):
    """A message that could not be accepted, and why; its events follow."""

    request: Plain
    reason: Reason


WireMessage = Plain | Refused
